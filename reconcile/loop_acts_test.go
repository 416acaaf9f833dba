package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitring/gitring/ring"
)

func TestLoopCarriesOutWhatAPersonDoes(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "shop/web=v1", "shop/db=d1"))
		await(t, l, ring.SyncSynced, time.Minute)
		done, err := l.Do(t.Context(), Act{Verb: HoldIt, App: "shop", Actor: "alice", Reason: "a test", For: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if want := time.Now().Add(time.Hour); done.Until.Sub(want).Abs() > time.Minute || done.Says == "" {
			t.Errorf("it said %q, until %s", done.Says, done.Until)
		}
		// When Do returns, a look has ended that knew of it.
		if st, _ := l.Status(); len(st.Overrides) != 1 || st.Sources[0].Sync != ring.SyncHeld || st.ExitCode() != 9 {
			t.Errorf("the status says %+v, %s", st.Overrides, st.Sources[0].Sync)
		}
		steps := h.made(ring.DoCreate) + h.made(ring.DoRemove)
		offer(t, l, tree("c2", "shop/web=v2", "shop/db=d1"))
		time.Sleep(10 * time.Minute)
		if n := h.made(ring.DoCreate) + h.made(ring.DoRemove); n != steps {
			t.Errorf("%d steps on what is held", n-steps)
		}
		if _, err := l.Do(t.Context(), Act{Verb: Release, App: "shop", Actor: "alice", Reason: "a test"}); err != nil {
			t.Fatal(err)
		}
		await(t, l, ring.SyncSynced, time.Minute)
		var u *Unfit
		if _, err := l.Do(t.Context(), Act{Verb: Release, App: "shop", Actor: "alice", Reason: "a test"}); !errors.As(err, &u) || u.Hint == "" {
			t.Errorf("a second release: %v", err)
		}
		if _, err := l.Do(t.Context(), Act{Verb: Retry, App: "shp", Actor: "alice", Reason: "a test"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("an app that is not there: %v", err)
		}
	})
}

// A yes that nobody asked for is not written down, by whichever way it comes.
func TestLoopTakesNoApprovalThatNothingWaitsFor(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		p := tree("c1", "shop/web=v1", "shop/db=d1", "shop/cache=k1")
		offer(t, l, p)
		await(t, l, ring.SyncSynced, time.Minute)
		if err := l.Approve(t.Context(), string(p.Tip), "alice", "why not"); !errors.Is(err, ErrNothingToApprove) {
			t.Errorf("a plan in force: %v", err)
		}
		h.with(func() {
			if len(h.facts.Approvals) > 0 {
				t.Errorf("it was written down: %v", h.facts.Approvals)
			}
		})
		less := tree("c2", "shop/web=v1")
		offer(t, l, less)
		await(t, l, ring.SyncHeld, time.Minute)
		if err := l.Approve(t.Context(), string(less.Tip), "alice", "yes"); err != nil {
			t.Errorf("a plan that waits: %v", err)
		}
		await(t, l, ring.SyncSynced, time.Minute)
	})
}

// Whoever waits for a look, or for the loop at all, is answered when it ends: no
// request hangs until its own patience is over.
func TestLoopAnswersWhoeverWaitsWhenItEnds(t *testing.T) {
	playEnding(t, func(t *testing.T, h *stuckHost, l *Loop, end func()) {
		offer(t, l, tree("c1", "shop/web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		patient := context.WithoutCancel(t.Context())
		waits := map[string]func() error{
			"looked":  func() error { return l.Looked(patient) },
			"approve": func() error { return l.Approve(patient, "c1", "alice", "") },
			"offer":   func() error { return l.Offer(patient, Source{Name: "s"}, true) },
			"do": func() error {
				_, err := l.Do(patient, Act{Verb: HoldIt, App: "shop", Actor: "alice", Reason: "a test", For: time.Hour})
				return err
			},
		}
		end()
		for name, ask := range waits {
			if err := ask(); !errors.Is(err, ErrOver) || !errors.Is(err, context.Canceled) {
				t.Errorf("%s after the end: %v", name, err)
			}
		}
	})
}

// And so is one that was taken before the end.
func TestLoopAnswersAtItsEndWhoWaitsForALook(t *testing.T) {
	playEnding(t, func(t *testing.T, h *stuckHost, l *Loop, end func()) {
		offer(t, l, tree("c1", "shop/web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		h.stuck.Store(true)
		answers := make(chan error, 1)
		go func() { answers <- l.Looked(context.WithoutCancel(t.Context())) }()
		time.Sleep(time.Second)
		end()
		select {
		case err := <-answers:
			if !errors.Is(err, ErrOver) {
				t.Errorf("it was told %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("it waits still")
		}
	})
}

// stuckHost is one whose looks end with their context alone, once it is stuck.
type stuckHost struct {
	*host
	stuck atomic.Bool
}

func (h *stuckHost) Look(ctx context.Context) (ring.Seen, error) {
	if h.stuck.Load() {
		<-ctx.Done()
		return ring.Seen{}, ctx.Err()
	}
	return h.host.Look(ctx)
}

// playEnding is playLoop whose body ends the loop itself.
func playEnding(t *testing.T, body func(t *testing.T, h *stuckHost, l *Loop, end func())) {
	synctest.Test(t, func(t *testing.T) {
		h := &stuckHost{host: newHost()}
		l := New(Options{
			Host: "sim", Gitring: "test", Engine: h, Health: h, Memory: h, Log: slog.New(slog.DiscardHandler),
		}, []Source{{Name: "s", Branch: "main", FreshFor: 5 * time.Minute}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		end := sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		defer end()
		body(t, h, l, end)
	})
}
