package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// crowd offers sixty services, each of which takes 50 ms to be made, to a loop
// that makes two at once, and returns when the first is being made.
func crowd(t *testing.T, h *slowHost, l *Loop) {
	t.Helper()
	h.with(func() {
		h.takes = func(a ring.Action) time.Duration {
			if a.Kind == ring.DoCreate {
				return 50 * time.Millisecond
			}
			return time.Millisecond
		}
	})
	var services []string
	for i := range 60 {
		services = append(services, fmt.Sprintf("a%02d=v1", i))
	}
	offer(t, l, tree("c1", services...))
	for h.made(ring.DoCreate) == 0 {
		time.Sleep(time.Millisecond)
	}
}

// A look after each step would ask the engine sixty times what it has, while
// there is no place to do what such a look finds.
func TestLoopLooksSeldomWhileStepsQueue(t *testing.T) {
	playSlow(t, 2, func(t *testing.T, h *slowHost, l *Loop) {
		crowd(t, h, l)
		var before, after int
		h.with(func() { before = h.looks })
		began := time.Now()
		for h.made(ring.DoCreate) < 60 {
			time.Sleep(time.Millisecond)
		}
		took := time.Since(began)
		h.with(func() { after = h.looks })
		if looks, most := after-before, int(took/crowdedLook)+2; looks > most || looks < 3 {
			t.Errorf("%d looks in %s while steps queue, and %d are enough", looks, took, most)
		}
		if took > 60*50*time.Millisecond/2 {
			t.Errorf("60 creates of 50 ms, two at once, took %s: a place was left empty", took)
		}
		began = time.Now()
		await(t, l, ring.SyncSynced, time.Minute)
		if rest := time.Since(began); rest > 10*time.Second {
			t.Errorf("the last step was followed by %s", rest)
		}
	})
}

func TestLoopAnswersWhileStepsQueue(t *testing.T) {
	playSlow(t, 2, func(t *testing.T, h *slowHost, l *Loop) {
		crowd(t, h, l)
		for range 5 {
			began := time.Now()
			if err := l.Looked(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > crowdedLook/3 {
				t.Errorf("who asked for a look waited %s for it", took)
			}
			time.Sleep(60 * time.Millisecond) // a step ends, and its end waits
		}
		if n := h.made(ring.DoCreate); n > 40 {
			t.Fatalf("%d of 60 are made: nothing queued any more", n)
		}
	})
}
