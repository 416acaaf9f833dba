package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// docs/design/rollout.md#a-rolling-update, 6: the drain is part of the step that takes an instance away. It
// counts from the moment that this was meant: a daemon that ends before the engine was
// asked, and the one after it, make it no longer.
func TestADrainIsOfTheStepThatTakesAwayAndNotBegunAnew(t *testing.T) {
	const drain = 20 * time.Second
	s := newStory()
	var left []time.Duration
	var at []time.Time
	s.looked = func(d Decision) {
		for _, a := range d.Actions {
			if a.Kind == ring.DoRemove || a.Kind == ring.DoStop {
				left, at = append(left, a.Delay), append(at, s.clock())
				require.Equal(t, ring.DefaultStopGrace, a.Grace)
			}
		}
	}
	ends := 0
	crash := func(when boundary, a ring.Action) bool {
		if when == beforeCall && (a.Kind == ring.DoRemove || a.Kind == ring.DoStop) && ends < 3 {
			ends++
			return true
		}
		return false
	}
	tell := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			require.NoError(t, s.tell(line), line)
		}
	}
	tell("service shop/web min_ready 1s", "service shop/db min_ready 1s", "service shop/more min_ready 1s")
	s.decls["shop/db"].Rollout.DrainDelay = drain
	tell("commit c1 shop/web=v1 shop/db=v1 shop/more=v1", "rest")
	s.crash = crash
	tell("commit c2 -shop/db", "rest", "expect nothing of shop/db")
	require.Equal(t, 3, ends)
	require.Equal(t, drain, left[0])
	for i := range left[:4] {
		require.Equal(t, max(0, drain-at[i].Sub(at[0])), left[i], "%d", i)
	}
	require.Less(t, left[3], drain)
}
