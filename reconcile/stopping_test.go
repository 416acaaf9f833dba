package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A daemon that was killed while it stopped an instance comes back, and nothing is known
// to be ready yet. The engine goes on with the stop; one that does not hear the signal
// serves until its grace is over. Whoever counts on it stops one too many.
func TestWhoMayBeStoppingIsNotCountedOn(t *testing.T) {
	meant := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := stopped(meant.Add(-time.Hour), 2, theNetwork())
	id := ring.ID("shop", "web")
	w.Facts.Set(ring.RolloutRow{ID: id, Version: "1:aa", Commit: "c1", Began: meant.Add(-time.Minute), Progress: meant})
	for i := range w.Seen.Instances {
		in := &w.Seen.Instances[i]
		in.State, in.Hand, in.Since = ring.StateRunning, "", meant.Add(-time.Hour)
	}
	w.Seen.Instances[1].Since = meant.Add(3 * time.Second) // seen by the new daemon for the first time
	goes := w.Seen.Instances[0]
	goes.ID, goes.Name, goes.Version = "old", ring.ContainerName("shop", "web", 1, "1:bb"), "1:bb"
	w.Seen.Instances = append(w.Seen.Instances, goes)
	w.Facts.Set(ring.Intent{Instance: "old", Kind: intentRemove, Reason: "replaced", At: meant})
	kept := func(after time.Duration) bool {
		d := Diff(w, meant.Add(after))
		require.False(t, slices.ContainsFunc(d.Actions, func(a ring.Action) bool { return a.Kind == ring.DoRemove }), "after %s", after)
		return !slices.ContainsFunc(d.Facts, func(f ring.Fact) bool {
			g, ok := f.(ring.Forget)
			return ok && g.Key == "old" && g.Table == "intent"
		})
	}
	require.True(t, kept(4*time.Second), "the stop may be under way")
	w.Seen.Instances[1].Since = meant.Add(11 * time.Second)
	require.True(t, kept(11*time.Second), "a moment after its grace, too")
	w.Seen.Instances[1].Since = meant.Add(13 * time.Second)
	require.False(t, kept(13*time.Second), "it would be over: it was never sent, and it serves")
	require.False(t, kept(-time.Hour), "the clock was set back")
}
