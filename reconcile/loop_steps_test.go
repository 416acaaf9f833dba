package reconcile

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitring/gitring/ring"
)

// slowHost is a host that takes its time to be looked at.
type slowHost struct {
	*host
	slow time.Duration // guarded by host.mu
	most int           // guarded by host.mu: ends of steps in one transaction
}

func (h *slowHost) Look(ctx context.Context) (ring.Seen, error) {
	var d time.Duration
	h.with(func() { d = h.slow })
	time.Sleep(d)
	return h.host.Look(ctx)
}

func (h *slowHost) Record(ctx context.Context, facts []ring.Fact, events []ring.Event) error {
	n := 0
	for _, e := range events {
		if e.Kind == ring.InstanceStep {
			n++
		}
	}
	h.with(func() { h.most = max(h.most, n) })
	return h.host.Record(ctx, facts, events)
}

// playSlow is playLoop on a slow host, with so many steps at a time.
func playSlow(t *testing.T, steps int, body func(t *testing.T, h *slowHost, l *Loop)) {
	synctest.Test(t, func(t *testing.T) {
		h := &slowHost{host: newHost()}
		l := New(Options{
			Host: "sim", Engine: h, Health: h, Memory: h, Log: slog.New(slog.DiscardHandler), Steps: steps,
		}, []Source{{Name: "s", Branch: "main", FreshFor: 5 * time.Minute}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.Run(ctx) }()
		body(t, h, l)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// creating offers three services, and returns when each waits for its place to
// be created and the first one has it, for 200 ms. They are of one app, so that one look
// decides all three: apps would each wait for questions and a network of their own.
func creating(t *testing.T, h *slowHost, l *Loop) {
	t.Helper()
	h.with(func() {
		h.takes = func(a ring.Action) time.Duration {
			if a.Kind == ring.DoCreate {
				return 200 * time.Millisecond
			}
			return time.Millisecond
		}
	})
	offer(t, l, tree("c1", "shop/a=v1", "shop/b=v1", "shop/c=v1"))
	for range 1000 {
		if h.made(ring.DoCreate) > 0 {
			time.Sleep(100 * time.Millisecond)
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("nothing is created within a second")
}

func TestLoopStepsDoNotWaitForALook(t *testing.T) {
	playSlow(t, 1, func(t *testing.T, h *slowHost, l *Loop) {
		creating(t, h, l)
		h.with(func() { h.slow = 10 * time.Second })
		l.Poke()
		time.Sleep(time.Second)
		if n := h.made(ring.DoCreate); n != 3 {
			t.Errorf("%d of 3 steps began while the loop looks", n)
		}
	})
}

func TestLoopRecordsAtOnceWhatEndedTogether(t *testing.T) {
	playSlow(t, 3, func(t *testing.T, h *slowHost, l *Loop) {
		creating(t, h, l)
		h.with(func() { h.slow, h.most = 10*time.Second, 0 })
		l.Poke()
		time.Sleep(time.Second)
		h.with(func() { h.slow = 0 })
		await(t, l, ring.SyncSynced, time.Minute)
		if n := h.made(ring.DoCreate); n != 3 || h.most != 3 {
			t.Errorf("of the ends of %d steps, at most %d in one transaction", n, h.most)
		}
	})
}

func TestLoopRestsOnlyAfterALook(t *testing.T) {
	playSlow(t, 3, func(t *testing.T, h *slowHost, l *Loop) {
		h.with(func() { h.slow = time.Second })
		if err := l.Looked(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.with(func() { h.slow = 0 })
		time.Sleep(5 * time.Second) // long after the look and its rest
		var before, after int
		h.with(func() { before = h.looks })
		l.Poke()
		time.Sleep(time.Millisecond)
		h.with(func() { after = h.looks })
		if after != before+1 {
			t.Errorf("%d looks a moment after a hint", after-before)
		}
		l.Poke()
		time.Sleep(time.Millisecond)
		h.with(func() { after = h.looks })
		if after != before+1 {
			t.Errorf("%d looks at once", after-before)
		}
	})
}
