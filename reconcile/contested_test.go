package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestHandsOfOthersAreContestedAtTheThirdActWithinADay(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	facts, told := ring.NewFacts(), 0
	act := func(after time.Duration, what string) (ring.Condition, bool) {
		w := &decider{Pass: Pass{World: World{Facts: facts}, now: noon.Add(after)}, own: map[string]bool{}}
		w.countOutsideAct("web/web", what)
		facts = w.Facts
		for _, e := range w.events {
			require.Equal(t, ring.AppContested, e.Kind)
			require.Contains(t, e.Reason, what)
			told++
		}
		return w.contestedCondition("web/web")
	}
	for i, c := range []struct {
		after time.Duration
		what  string
		times string // of the condition; "" is none
		told  int
	}{
		{0, "web-web-1 was renamed to x", "", 0},
		{time.Second, "web-web-1 was renamed to x", "", 0}, // the next look sees the same
		{time.Hour, "web-web-1 was made anew", "", 0},
		{23 * time.Hour, "web-web-1 was made anew", "3 times", 1},
		{23*time.Hour + 2*time.Minute, "web-web-2 was made anew", "4 times", 1},
		{24*time.Hour + time.Minute, "web-web-1 was removed", "4 times", 1}, // the first is a day ago
		{47*time.Hour + time.Minute, "web-web-1 was removed", "3 times", 2}, // it had ended for a minute
		{100 * time.Hour, "web-web-1 was removed", "", 2},
		{101 * time.Hour, "web-web-1 was removed", "", 2},
		{102 * time.Hour, "web-web-1 was removed", "3 times", 3},
	} {
		got, ok := act(c.after, c.what)
		require.Equal(t, c.times != "", ok, "%d", i)
		require.Contains(t, got.Reason, c.times, "%d", i)
		if ok {
			require.Equal(t, "Contested", got.Type)
			require.Contains(t, got.Reason, c.what, "what was seen is named")
		}
		require.Equal(t, c.told, told, "%d: told when it begins", i)
	}
	w := &decider{Pass: Pass{World: World{Facts: facts}, now: noon.Add(200 * time.Hour)}, own: map[string]bool{}}
	w.forgetHands()
	require.Empty(t, w.Facts.Hands)
}
