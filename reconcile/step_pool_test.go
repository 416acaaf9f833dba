package reconcile

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

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
				if p.enter(ctx, stepRank(k)) {
					order = append(order, k)
					p.leave()
				}
			}()
			synctest.Wait() // so that they come in order
		}
		gone, cancel := context.WithCancel(t.Context())
		wait(t.Context(), ring.DoNetwork)
		wait(t.Context(), ring.DoPolicy)
		wait(gone, ring.DoStop)
		wait(t.Context(), ring.DoCreate)
		wait(t.Context(), ring.DoRemove)
		if !p.queued() {
			t.Error("nobody waits")
		}
		cancel()
		synctest.Wait()
		p.leave()
		synctest.Wait()
		want := []ring.ActionKind{ring.DoCreate, ring.DoRemove, ring.DoNetwork, ring.DoPolicy}
		if !slices.Equal(order, want) {
			t.Errorf("let in: %v", order)
		}
		if p.queued() || p.free != 1 {
			t.Errorf("%d places are free in the end", p.free)
		}
	})
}
