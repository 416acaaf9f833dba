package gitsync

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gitring/gitring/ring"
)

// clockwork is a remote without a branch that notes when it was looked at.
type clockwork struct {
	took time.Duration // of one look

	mu   sync.Mutex // guards err and seen
	err  error
	seen []time.Time
}

func (c *clockwork) looks() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen)
}

func (c *clockwork) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *clockwork) rest() {}

func (c *clockwork) look(ctx context.Context) (*view, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, time.Now())
	if c.took > 0 {
		c.mu.Unlock()
		time.Sleep(c.took) // inside a synctest bubble
		c.mu.Lock()
	}
	if c.err != nil {
		return nil, c.err
	}
	return &view{tip: plumbing.ZeroHash, missing: "no branch", close: func() {}}, nil
}

// paced runs a follower of the clockwork for a while of fake time.
func paced(t *testing.T, poll string, c *clockwork, while time.Duration, meanwhile func(*Follower)) []ring.Report {
	t.Helper()
	f, err := New(Config{
		Name: "prod", URL: "file:///srv/x", Branch: "main", Poll: poll,
		Trust: TrustConfig{Mode: Disabled}, Dir: filepath.Join(t.TempDir(), "m"),
	}, &ledger{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	f.remote = c
	ctx, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	var reports []ring.Report
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := f.Run(ctx, func(_ context.Context, r ring.Report) { reports = append(reports, r) }); err != nil {
			t.Error(err)
		}
	}()
	meanwhile(f)
	<-ended
	return reports
}

func nothing(*Follower) {}

func gaps(looks []time.Time) []time.Duration {
	var out []time.Duration
	for i := 1; i < len(looks); i++ {
		out = append(out, looks[i].Sub(looks[i-1]))
	}
	return out
}

func TestPollsAreSpreadAroundTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := &clockwork{}, time.Now()
		reports := paced(t, "60s", c, time.Hour, nothing)
		require.Equal(t, began, c.looks()[0], "the first look is at once")
		require.InDelta(t, 60, len(c.looks()), 5)
		require.Len(t, reports, len(c.looks()), "every look is reported")
		for _, g := range gaps(c.looks()) {
			require.InDelta(t, 60, g.Seconds(), 6)
		}
		require.Greater(t, slices.Max(gaps(c.looks()))-slices.Min(gaps(c.looks())), 2*time.Second)
	})
}

func TestACronExpressionPollsAtItsTimesForThreeDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockwork{} // the bubble begins at midnight UTC, 2000-01-01
		paced(t, "0 3 * * *", c, 72*time.Hour, nothing)
		require.Len(t, c.looks(), 4)
		for _, at := range c.looks()[1:] {
			require.Equal(t, 3, at.UTC().Hour())
			require.Zero(t, at.Minute())
		}
	})
}

func TestV59AThousandPokesAreOneLookASecondAndOneAfterTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockwork{took: 5 * time.Millisecond}
		var last time.Time
		paced(t, "1h", c, 30*time.Second, func(f *Follower) {
			time.Sleep(10 * time.Second)
			for range 1000 {
				f.Poke()
				last = time.Now()
				time.Sleep(4500 * time.Microsecond) // 4.5 s of pokes
			}
			require.True(t, f.Checking())
		})
		looks := c.looks()[1:] // after the one at the start
		require.Equal(t, 10*time.Second, looks[0].Sub(c.looks()[0]), "the first poke is answered at once")
		require.Len(t, looks, 6)
		for _, g := range gaps(looks) {
			require.GreaterOrEqual(t, g, time.Second)
		}
		require.False(t, looks[len(looks)-1].Before(last), "no look after the last poke")
	})
}

func TestAPokeDuringALookIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockwork{took: 3 * time.Second}
		paced(t, "1h", c, 30*time.Second, func(f *Follower) {
			time.Sleep(time.Second) // inside the first look
			require.True(t, f.Checking())
			f.Poke()
			f.Poke()
			time.Sleep(10 * time.Second)
			require.False(t, f.Checking())
		})
		require.Len(t, c.looks(), 2)
		require.Equal(t, 3*time.Second, c.looks()[1].Sub(c.looks()[0]))
	})
}

func TestARemoteThatFailsIsTriedLessAndLessButAPokeTriesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockwork{err: errors.New("connection refused")}
		reports := paced(t, "60s", c, 3*time.Hour, func(f *Follower) {
			time.Sleep(2*time.Hour + time.Minute)
			n, now := len(c.looks()), time.Now()
			f.Poke()
			synctest.Wait()
			require.Len(t, c.looks(), n+1)
			require.Equal(t, now, c.looks()[n])
		})
		between := gaps(c.looks())
		require.InDelta(t, 5, between[0].Seconds(), 0.51)
		for i, g := range between[:7] {
			require.InDelta(t, 5*float64(int(1)<<i), g.Seconds(), 0.11*5*float64(int(1)<<i))
		}
		require.LessOrEqual(t, slices.Max(between), 15*time.Minute)
		require.Greater(t, slices.Max(between), 13*time.Minute)
		require.ErrorContains(t, reports[0].Err, "connection refused")
	})
}

func TestAMissingBranchIsLookedForAtTheUsualPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockwork{}
		reports := paced(t, "10s", c, 10*time.Minute, nothing)
		require.InDelta(t, 60, len(c.looks()), 6)
		require.Contains(t, reports[len(reports)-1].Reason, "RefMissing: no branch; push a signed commit to it")
	})
}

func TestAFailureThatIsOverIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockwork{err: errors.New("away")}
		paced(t, "60s", c, 2*time.Hour, func(f *Follower) {
			time.Sleep(time.Hour)
			c.fail(nil)
			f.Poke()
			time.Sleep(10 * time.Minute)
			n := len(c.looks())
			require.InDelta(t, 10, n-slices.IndexFunc(c.looks(), func(at time.Time) bool { return at.Sub(c.looks()[0]) >= time.Hour }), 2)
		})
	})
}

func TestRunEndsWithAllItStarted(t *testing.T) {
	o := newOrigin(t)
	o.signed("one")
	remotes := map[string]func(*Config){"file": func(*Config) {}, "http": at(serve(t, o.httpBackend()) + "/remote.git")}
	if os.Geteuid() == 0 {
		remotes["ssh"] = startSSHD(t).follow(o.bare)
	}
	for name, remote := range remotes {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			f := o.follow(&ledger{}, remote)
			reports, stop := running(t, f)
			defer stop()
			next(t, reports, func(r ring.Report) bool { return r.Commit != nil })
			require.Equal(t, time.Minute, f.Interval())
			two := o.signed("for " + name)
			f.Poke()
			next(t, reports, func(r ring.Report) bool { return r.Commit != nil && r.Commit.SHA == two })
			stop()
			f.mirror.mu.Lock()
			defer f.mirror.mu.Unlock()
			require.Nil(t, f.mirror.sto, "the mirror is open though nothing reads it")
		})
	}
}
