package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// An app that was renamed wants its old name's subnet, which is free a moment later:
// a network that cannot be made is told of, and tried again soon.
func TestANetworkThatTheEngineRefusesIsToldAndTriedAgain(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := stopped(begin, 1)
	w.Seen.Instances = nil
	delete(w.Facts.Good, ring.ID("shop", "web"))
	delete(w.Facts.Verdicts, ring.VersionKey(ring.ID("shop", "web"), "1:aa"))
	w.Facts.Set(ring.RolloutRow{ID: ring.ID("shop", "web"), Version: "1:aa", Commit: "c1", Began: begin, Progress: begin})
	no := &ring.Refusal{
		Code: ring.Conflict, App: "shop", Says: "the subnet of network default overlaps with another network of this host", Hint: "choose another subnet",
	}
	overlaps := &ring.EngineError{Cause: ring.CauseNetwork, Err: no, Refusal: no}
	tried, said := 0, ""
	for now := begin; now.Before(begin.Add(20 * time.Second)); now = now.Add(100 * time.Millisecond) {
		w.Seen.At = now
		d := Diff(w, now)
		for _, f := range d.Facts {
			w.Facts.Set(f)
		}
		for _, a := range d.Actions {
			require.Equal(t, ring.DoNetwork, a.Kind, "nothing starts without its network")
			tried++
			Settle(w.Recent, nil, a, ring.Done{}, overlaps, now)
		}
		said = d.Status.Sources[0].Apps[0].Services[0].Reason
	}
	require.Equal(t, 5, tried, "at 0, 1, 3, 7 and 15 s")
	require.Contains(t, said, "the subnet of network default overlaps")
	e, ok := Explain(w, begin.Add(20*time.Second), ring.ID("shop", "web"), 0, false)
	require.True(t, ok)
	require.Contains(t, e.Says+e.Rule, "the subnet of network default overlaps")

	w.Seen.At = begin.Add(ring.DefaultRollout().ProgressDeadline + time.Second)
	d := Diff(w, w.Seen.At)
	require.Contains(t, d.Status.Sources[0].Apps[0].Services[0].Reason, "the subnet of network default overlaps", "and when the time for it is over")
}
