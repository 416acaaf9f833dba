package reconcile

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitring/gitring/ring"
)

func TestWhatRunsIsLetInBeforeWhatPrepares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		if !p.enter(t.Context(), 0) || p.queued() {
			t.Fatal("the first finds no place")
		}
		var order []ring.ActionKind
		wait := func(ctx context.Context, k ring.ActionKind) {
			go func() {
				if p.enter(ctx, rank(k)) {
					order = append(order, k)
					p.leave(rank(k))
				}
			}()
			synctest.Wait() // so that they come in order
		}
		gone, cancel := context.WithCancel(t.Context())
		wait(t.Context(), ring.DoPolicy)
		wait(t.Context(), ring.DoNetwork)
		wait(gone, ring.DoStop)
		wait(t.Context(), ring.DoCreate)
		wait(t.Context(), ring.DoRemove)
		if !p.queued() {
			t.Error("nobody waits")
		}
		cancel()
		synctest.Wait()
		p.leave(rankRun)
		synctest.Wait()
		want := []ring.ActionKind{ring.DoCreate, ring.DoRemove, ring.DoNetwork, ring.DoPolicy}
		if !slices.Equal(order, want) {
			t.Errorf("let in: %v", order)
		}
		if p.queued() || p.free != 1 || p.busy != [ranks]int{} {
			t.Errorf("%d places are free in the end, %d are taken", p.free, p.busy)
		}
	})
}

// A step that looks after what runs waits though a place is free, but not for ever.
func TestWhatLooksAfterWaitsForQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(2)
		enter := func(k ring.ActionKind) (in chan time.Duration) {
			in = make(chan time.Duration, 1)
			began := time.Now()
			go func() {
				if p.enter(t.Context(), rank(k)) {
					in <- time.Since(began)
				}
			}()
			synctest.Wait()
			return in
		}
		<-enter(ring.DoStart)
		quiet := enter(ring.DoPolicy)
		if len(quiet) != 0 || p.queued() {
			t.Error("it is let in, or counts as one that waits for a place")
		}
		time.Sleep(time.Second)
		p.leave(rankRun)
		if d := <-quiet; d != time.Second {
			t.Errorf("it came in after %s", d)
		}
		<-enter(ring.DoStart) // which it does not keep out
		p.leave(rankAfter)
		if d := <-enter(ring.DoPolicy); d != maxQuiet {
			t.Errorf("beside one that does not end, it came in after %s", d)
		}
		p.leave(rankAfter)
		p.leave(rankRun)
		if p.free != 2 || p.busy != [ranks]int{} {
			t.Errorf("%d places are free in the end, %d are taken", p.free, p.busy)
		}
	})
}
