package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// wire is a forge inside a bubble, where no real connection can be.
type wire struct {
	mu   sync.Mutex
	do   func(*http.Request) (*http.Response, error) // nil takes everything
	took []string                                    // "<context> <state>"
	at   []time.Time                                 // of every request
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var m plainStatus
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	w.at = append(w.at, time.Now())
	do := w.do
	w.mu.Unlock()
	if do != nil {
		res, err := do(r)
		if res != nil || err != nil {
			return res, err
		}
	}
	w.mu.Lock()
	w.took = append(w.took, m.Context+" "+m.State)
	w.mu.Unlock()
	return says(http.StatusCreated, nil), nil
}

func says(code int, h map[string]string) *http.Response {
	res := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"id":1}`))}
	for k, v := range h {
		res.Header.Set(k, v)
	}
	return res
}

func (w *wire) behave(do func(*http.Request) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.do = do
}

func (w *wire) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.took...)
}

func (w *wire) times() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Time{}, w.at...)
}

// desktop is a Sender that runs in a bubble with a forge for "prod" and one
// for "other".
type desktop struct {
	*Sender
	outbox      *ledger
	prod, other *wire
}

func bubble(t *testing.T, story func(t *testing.T, d *desktop)) {
	t.Helper()
	token := tokenFile(t, secret)
	synctest.Test(t, func(t *testing.T) {
		d := &desktop{outbox: newLedger(), prod: &wire{}, other: &wire{}}
		forge := func(w *wire) Forge {
			return Forge{Kind: GitHub, APIURL: "https://forge.example.org/api/v3", Repo: "acme/infra", TokenFile: token, Client: &http.Client{Transport: w}}
		}
		d.Sender = New(d.outbox, map[string]Forge{"prod": forge(d.prod), "other": forge(d.other)}, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.Run(ctx) }()
		defer func() {
			cancel()
			require.NoError(t, <-done)
		}()
		story(t, d)
	})
}

func (d *desktop) say(posts ...ring.Post) {
	for _, p := range posts {
		d.outbox.put(p)
	}
	d.Poke()
	synctest.Wait()
}

func after(t time.Duration) {
	time.Sleep(t)
	synctest.Wait()
}

func away(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

func TestAPokeIsSaidAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		p := post("gitring/edge-1", ring.PostPending, "verified by alice")
		d.say(p)
		after(maxSpread + time.Second)
		require.Equal(t, []string{"gitring/edge-1 pending"}, d.prod.taken())
		require.True(t, d.outbox.row(p).said)
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy"))
		require.Equal(t, []string{"gitring/edge-1 pending", "gitring/edge-1 success"}, d.prod.taken())
		after(time.Hour)
		require.Len(t, d.prod.taken(), 2)
	})
}

// Six hosts of twenty apps hear of a commit in the same second.
func TestProgressIsSpreadAndAnOutcomeIsNot(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		began := time.Now()
		var posts []ring.Post
		for i := range 120 {
			posts = append(posts, post(fmt.Sprintf("gitring/edge-%d/app%d", i%6, i/6), ring.PostPending, "0/2 ready"))
		}
		d.say(posts...)
		require.Empty(t, d.prod.times(), "all at once")
		after(maxSpread + time.Second)
		require.Len(t, d.prod.taken(), 120)
		seconds := map[int]int{}
		for _, at := range d.prod.times() {
			seconds[int(at.Sub(began)/time.Second)]++
		}
		require.Greater(t, len(seconds), 1)
		d.say(post("gitring/edge-1", ring.PostPending, "0/2 ready"))
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy 2/2"))
		require.Equal(t, "gitring/edge-1 success", d.prod.taken()[120], "the outcome waited for the turn of progress")
		require.Len(t, d.prod.taken(), 121, "what is over is told once")
	})
}

// What was put off may have been told meanwhile, as part of something newer. Nobody is then
// asked for it again, and again, for ever.
func TestWhatWasPutOffAndToldMeanwhileIsNotWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.say(post("gitring/edge-1", ring.PostPending, "0/2 ready"))
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy 2/2"))
		require.Equal(t, []string{"gitring/edge-1 success"}, d.prod.taken(), "the progress was not put off, so this shows nothing")
		after(maxSpread + time.Second)
		before, _ := d.outbox.calls()
		after(time.Minute)
		dues, _ := d.outbox.calls()
		require.LessOrEqual(t, dues-before, int(time.Minute/idle)+1, "it spins")
	})
}

func TestWhatWasNotSaidForGoodIsShownAfterARestart(t *testing.T) {
	s := New(newLedger(), map[string]Forge{"prod": {}}, slog.New(slog.DiscardHandler))
	s.Recall(map[string]string{"prod": "the forge answered 401", "gone": "the forge answered 403"}, map[string]string{"prod": "nobody asks for deployments"})
	require.Equal(t, map[string]string{"prod": "the forge answered 401"}, s.Trouble())
}

func TestWhatIsDueIsSaidWithoutAPoke(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		synctest.Wait()
		d.outbox.put(post("gitring/edge-1", ring.PostSuccess, "healthy"))
		after(11 * time.Second)
		require.Len(t, d.prod.taken(), 1)
	})
}

func TestASourceWithoutAForgeHasNothingToSay(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		p := post("gitring/edge-1", ring.PostSuccess, "healthy")
		p.Source = "quiet"
		d.say(p)
		require.True(t, d.outbox.row(p).said)
		require.Empty(t, d.Trouble())
		require.Empty(t, d.prod.times())
	})
}

func TestWhatTheForgeWasToldIsNotSaidAgain(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy"))
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy"))
		require.Len(t, d.prod.taken(), 1)
		require.True(t, d.outbox.row(post("gitring/edge-1", "", "")).said)
	})
}

// A rollout of ten minutes while the forge is away: progress every few seconds
// in three contexts, then the outcome.
func TestTenMinutesAwayLeaveOneClosingStatusEach(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.prod.behave(away)
		contexts := []string{"gitring/edge-1", "gitring/edge-1/db", "gitring/edge-1/web"}
		for i := range 120 {
			for _, c := range contexts {
				d.say(post(c, ring.PostPending, fmt.Sprintf("%d/120 ready", i)))
			}
			after(5 * time.Second)
		}
		require.Less(t, len(d.prod.times()), 14, "the forge was asked too often")
		require.Equal(t, map[string]string{"prod": "cannot reach the forge: dial: connection refused"}, d.Trouble())
		for _, c := range contexts {
			d.say(post(c, ring.PostSuccess, "healthy 4/4"))
		}
		d.prod.behave(nil)
		after(11 * time.Minute)
		require.ElementsMatch(t, []string{"gitring/edge-1 success", "gitring/edge-1/db success", "gitring/edge-1/web success"}, d.prod.taken())
		require.Empty(t, d.Trouble())
		after(time.Hour)
		require.Len(t, d.prod.taken(), 3)
	})
}

func TestRetriesSlowDown(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.prod.behave(func(*http.Request) (*http.Response, error) { return says(500, nil), nil })
		p := post("gitring/edge-1", ring.PostSuccess, "healthy")
		d.say(p)
		after(2 * time.Hour)
		times := d.prod.times()
		require.Greater(t, len(times), 12)
		want := firstWait
		for i := 1; i < len(times); i++ {
			gap := times[i].Sub(times[i-1])
			require.GreaterOrEqual(t, gap, want*8/10, "gap %d", i)
			require.LessOrEqual(t, gap, want+2*time.Second, "gap %d", i)
			want = min(2*want, longWait)
		}
		require.Equal(t, "the forge answered 500", d.outbox.row(p).errors[0])
	})
}

func TestAPostIsGivenUpAfterADay(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.prod.behave(away)
		first, second := post("gitring/edge-1", ring.PostSuccess, "healthy"), post("gitring/edge-1/web", ring.PostSuccess, "healthy")
		d.say(first, second)
		after(23 * time.Hour)
		require.Empty(t, d.outbox.row(first).dead)
		after(90 * time.Minute)
		require.Contains(t, d.outbox.row(first).dead, "given up")
		require.Contains(t, d.outbox.row(second).dead, "given up")
		n := len(d.prod.times())
		after(48 * time.Hour)
		require.Len(t, d.prod.times(), n)
		d.prod.behave(nil)
		d.say(post("gitring/edge-1", ring.PostFailure, "web unhealthy"))
		after(11 * time.Minute)
		require.Equal(t, []string{"gitring/edge-1 failure"}, d.prod.taken())
	})
}

func TestTheForgesWordOnTimeIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.prod.behave(func(*http.Request) (*http.Response, error) {
			return says(429, map[string]string{"Retry-After": "300"}), nil
		})
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy"), post("gitring/edge-1/web", ring.PostSuccess, "healthy"))
		require.Len(t, d.prod.times(), 1, "the second was asked although the first was told to wait")
		d.prod.behave(nil)
		after(299 * time.Second)
		d.say(post("gitring/edge-1/db", ring.PostSuccess, "healthy"))
		require.Len(t, d.prod.times(), 1, "something new does not make the limit go away")
		after(3 * time.Second)
		require.Len(t, d.prod.taken(), 3)
	})
}

func TestAPermanentNoIsToldAndNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.prod.behave(func(*http.Request) (*http.Response, error) { return says(401, nil), nil })
		p := post("gitring/edge-1", ring.PostPending, "verified")
		d.say(p)
		after(time.Hour)
		require.Len(t, d.prod.times(), 1)
		require.Contains(t, d.outbox.row(p).dead, "the token is not valid")
		require.Contains(t, d.Trouble()["prod"], "the token is not valid")
		d.prod.behave(nil)
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy"))
		require.Equal(t, []string{"gitring/edge-1 success"}, d.prod.taken(), "a new token is tried with the next post")
		require.Empty(t, d.Trouble())
	})
}

func TestAForgeThatHangsDelaysNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.prod.behave(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		p := post("gitring/edge-1", ring.PostSuccess, "healthy")
		o := p
		o.Source, o.Context = "other", "gitring/edge-1/other"
		d.say(p)
		d.say(o)
		require.Len(t, d.other.taken(), 1, "it waited for another forge")
		after(timeout)
		require.Equal(t, "cannot reach the forge: no answer within 10s", d.Trouble()["prod"])
		d.prod.behave(nil)
		after(5 * time.Second)
		require.Len(t, d.prod.taken(), 1)
	})
}

func TestTheEndCutsAHangingPostShort(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.prod.behave(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		begin := time.Now()
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy"))
		t.Cleanup(func() {
			require.Less(t, time.Since(begin), time.Second)
			require.Empty(t, d.outbox.row(post("gitring/edge-1", "", "")).errors, "our own end is not the forge's fault")
		})
	})
}

// Faults in pairs: the outbox fails before, or after, the forge was told.
func TestAnOutboxThatCannotNoteIsNotSaidTwice(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.outbox.fail(nil, errors.New("disk full"))
		p := post("gitring/edge-1", ring.PostSuccess, "healthy")
		d.say(p)
		after(5 * time.Minute)
		require.Len(t, d.prod.taken(), 1)
		_, notes := d.outbox.calls()
		require.LessOrEqual(t, notes, 31, "it spins")
		d.outbox.fail(nil, nil)
		after(11 * time.Second)
		require.True(t, d.outbox.row(p).said)
		require.Len(t, d.prod.taken(), 1)
	})
}

func TestAnOutboxThatCannotBeReadIsReadLater(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		d.outbox.fail(errors.New("busy"), nil)
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy"))
		after(5 * time.Minute)
		dues, _ := d.outbox.calls()
		require.LessOrEqual(t, dues, 33, "it spins")
		d.outbox.fail(nil, nil)
		after(11 * time.Second)
		require.Len(t, d.prod.taken(), 1)
	})
}

func TestANewerPostInTheMiddleOfAnOlderIsSaidToo(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		gate := make(chan struct{})
		d.prod.behave(func(*http.Request) (*http.Response, error) { <-gate; return nil, nil })
		d.say(post("gitring/edge-1", ring.PostPending, "rolling"))
		after(maxSpread + time.Second)
		d.say(post("gitring/edge-1", ring.PostSuccess, "healthy"))
		close(gate)
		synctest.Wait()
		require.Equal(t, []string{"gitring/edge-1 pending", "gitring/edge-1 success"}, d.prod.taken())
	})
}

func TestManyPostsInOneGo(t *testing.T) {
	bubble(t, func(t *testing.T, d *desktop) {
		var posts []ring.Post
		for i := range 500 {
			posts = append(posts, post(fmt.Sprintf("gitring/edge-1/app%d", i), ring.PostSuccess, "healthy"))
		}
		d.say(posts...)
		require.Len(t, d.prod.taken(), 500)
	})
}

func TestBackoff(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 2 * time.Second, 1: 2 * time.Second, 2: 4 * time.Second, 8: 256 * time.Second, 9: 512 * time.Second, 10: longWait, 1000: longWait} {
		for range 50 {
			d := backoff(n)
			require.LessOrEqual(t, d, want)
			require.Greater(t, d, want*79/100)
		}
	}
}
