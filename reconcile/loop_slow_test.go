package reconcile

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitring/gitring/ring"
)

// slowly has the steps of a kind take so long, and all others none.
func (h *host) slowly(k ring.ActionKind, d time.Duration) {
	h.with(func() {
		h.takes = func(a ring.Action) time.Duration {
			if a.Kind == k {
				return d
			}
			return time.Millisecond
		}
	})
}

// condemned are the services of which a version failed.
func (h *host) condemned() (out []string) {
	h.with(func() {
		for _, e := range h.journal {
			if e.Kind == ring.RolloutFailed {
				out = append(out, e.App+": "+e.Reason)
			}
		}
	})
	return out
}

func TestLoopWhatIsSlowToStopKeepsNobodyElseWaiting(t *testing.T) {
	playSlow(t, 1, func(t *testing.T, h *slowHost, l *Loop) {
		h.slowly(ring.DoRemove, 15*time.Minute)
		offer(t, l, tree("c1", "a=v1", "b=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		offer(t, l, tree("c2", "a=v2", "b=v1"))
		time.Sleep(time.Minute)
		if n := h.made(ring.DoRemove); n != 1 {
			t.Fatalf("%d instances are being stopped", n)
		}
		runs := func() (n int) {
			h.with(func() {
				for _, b := range h.engine.boxes {
					if b.App == "b" {
						n++
					}
				}
			})
			return n
		}
		h.with(func() {
			for _, id := range h.engine.each() {
				if b := h.engine.boxes[id]; b.App == "b" {
					h.engine.drop(b)
				}
			}
		})
		if runs() != 0 {
			t.Fatal("nobody removed what is to be healed")
		}
		l.Poke()
		time.Sleep(10 * time.Second)
		if runs() != 1 {
			t.Error("it is not healed while another one is stopping")
		}
	})
}

func TestLoopTheTimeThatAnOldInstanceTakesToStopIsNotTheNewVersions(t *testing.T) {
	playSlow(t, 8, func(t *testing.T, h *slowHost, l *Loop) {
		h.slowly(ring.DoRemove, 25*time.Minute)
		offer(t, l, tree("c1", "a=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		offer(t, l, tree("c2", "a=v2"))
		time.Sleep(26 * time.Minute)
		await(t, l, ring.SyncSynced, time.Minute)
		if bad := h.condemned(); len(bad) > 0 {
			t.Errorf("condemned: %s", bad)
		}
	})
}

func TestLoopTheTimeUntilAStepHasItsTurnIsNotTheVersions(t *testing.T) {
	playSlow(t, 1, func(t *testing.T, h *slowHost, l *Loop) {
		h.slowly(ring.DoCreate, 4*time.Minute)
		offer(t, l, tree("c1", "a=v1", "b=v1", "c=v1", "d=v1"))
		time.Sleep(17 * time.Minute)
		await(t, l, ring.SyncSynced, time.Minute)
		if bad := h.condemned(); len(bad) > 0 {
			t.Errorf("condemned: %s", bad)
		}
		if n := h.made(ring.DoCreate); n != 4 {
			t.Errorf("%d creates", n)
		}
	})
}

// On the way to a new version what only asks changes nothing that a look sees, so the look
// before it serves; a hint in between, and whatever changes something, wants a new one.
func TestLoopLooksOnceUntilAnAppIsInForce(t *testing.T) {
	for _, hint := range []bool{false, true} {
		playSlow(t, 8, func(t *testing.T, h *slowHost, l *Loop) {
			offer(t, l, tree("c1", "a=v1"))
			await(t, l, ring.SyncSynced, time.Minute)
			time.Sleep(25 * time.Second)
			h.with(func() {
				h.takes = func(a ring.Action) time.Duration {
					if hint && a.Kind == ring.DoAdmit {
						l.Poke()
					}
					return 20 * time.Millisecond
				}
			})
			var before, until int
			h.with(func() { before = h.looks })
			offer(t, l, tree("c2", "a=v2"))
			until = h.looksUntil(2) - before
			want := 1
			if hint {
				want = 2
			}
			if h.made(ring.DoCreate) != 2 || until != want {
				t.Errorf("%d creates after %d looks, want 2 after %d (hint: %t)", h.made(ring.DoCreate), until, want, hint)
			}
			await(t, l, ring.SyncSynced, time.Minute)
		})
	}
}

// looksUntil is how many looks there were when so many instances had been created, after a second at most.
func (h *slowHost) looksUntil(creates int) (looks int) {
	for range 1000 {
		if h.made(ring.DoCreate) == creates {
			break
		}
		time.Sleep(time.Millisecond)
	}
	h.with(func() { looks = h.looks })
	return looks
}

// Looks have a rest between them, as long as the last one took. A plan that needs none does not
// wait for it.
func TestLoopDecidesAboutAPlanWithoutARest(t *testing.T) {
	playSlow(t, 8, func(t *testing.T, h *slowHost, l *Loop) {
		offer(t, l, tree("c1", "a=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(25 * time.Second)
		h.with(func() { h.slow = 100 * time.Millisecond })
		before := h.made(ring.DoResolve)
		l.Poke()
		time.Sleep(110 * time.Millisecond) // it has just ended
		offer(t, l, tree("c2", "a=v2"))
		began := time.Now()
		for h.made(ring.DoResolve) == before && time.Since(began) < time.Second {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took > 20*time.Millisecond {
			t.Errorf("the plan was decided about after %s", took)
		}
		h.with(func() { h.slow = 0 })
		await(t, l, ring.SyncSynced, time.Minute)
	})
}

// Whoever reads a commit has the loop look meanwhile: that look serves the plan, unless something
// was heard of the engine since, or it is too old.
func TestLoopDecidesAboutAPlanByTheLookBeforeIt(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // from the look to the plan
		heard bool          // something of the engine, in between
		looks int           // until the create, with the one before
	}{
		{"a moment before", 50 * time.Millisecond, false, 1},
		{"something is heard since", 50 * time.Millisecond, true, 3}, // what was heard brings one of its own
		{"too long before", seenServes + 50*time.Millisecond, false, 2},
	} {
		playSlow(t, 8, func(t *testing.T, h *slowHost, l *Loop) {
			offer(t, l, tree("c1", "a=v1"))
			await(t, l, ring.SyncSynced, time.Minute)
			time.Sleep(25 * time.Second)
			var before, until int
			h.with(func() {
				h.takes = func(ring.Action) time.Duration { return 20 * time.Millisecond }
				before = h.looks
			})
			l.Poke()
			time.Sleep(tt.after)
			if tt.heard {
				l.Poke()
				time.Sleep(time.Millisecond)
				l.Poke()
			}
			offer(t, l, tree("c2", "a=v2"))
			until = h.looksUntil(2) - before
			if h.made(ring.DoCreate) != 2 || until != tt.looks {
				t.Errorf("%s: %d creates after %d looks, want 2 after %d", tt.name, h.made(ring.DoCreate), until, tt.looks)
			}
			await(t, l, ring.SyncSynced, time.Minute)
		})
	}
}

// A look that waited for the engine has the next one wait as long; the service that a
// stop left empty does not wait with it, nor an app that has all it needs to come into force.
func TestLoopLooksAtOnceWhenAnAwaitedStepEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		l := New(Options{Host: "sim", Engine: h, Health: h, Memory: h, Log: slog.New(slog.DiscardHandler)}, nil)
		for _, tt := range []struct {
			kind ring.ActionKind
			want time.Duration
		}{{ring.DoStop, 100 * time.Millisecond}, {ring.DoResolve, 100 * time.Millisecond}, {ring.DoAdmit, 100 * time.Millisecond}, {ring.DoCreate, time.Second}} {
			began := time.Now()
			go func() {
				time.Sleep(100 * time.Millisecond)
				l.ended <- ending{action: ring.Action{Kind: tt.kind}}
			}()
			ended := l.pauseFor(t.Context(), time.Second, nil)
			if took := time.Since(began); len(ended) != 1 || took != tt.want {
				t.Errorf("%s: %d ends after %s, want one after %s", tt.kind, len(ended), took, tt.want)
			}
		}
	})
}
