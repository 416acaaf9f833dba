package reconcile

import (
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// A remote that says nothing at all, not even an error, is told of by the loop itself,
// when it is time and not before.
func TestTheLoopTellsOfARemoteThatFellSilent(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		told := func(kind string) (n int) {
			h.with(func() {
				for _, e := range h.journal {
					if e.Kind == kind {
						n++
					}
				}
			})
			return n
		}
		time.Sleep(4 * time.Minute)
		if told(ring.SourceStale) != 0 {
			t.Error("told too early")
		}
		time.Sleep(90 * time.Second)
		if n := told(ring.SourceStale); n != 1 {
			t.Errorf("told %d times", n)
		}
		offer(t, l, tree("c1", "web=v1"))
		time.Sleep(time.Second)
		if n := told(ring.SourceRecovered); n != 1 {
			t.Errorf("its end told %d times", n)
		}
	})
}
