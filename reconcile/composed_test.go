package reconcile

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A release that reads more of a service than the one before, such as what Compose
// would hash of it, finds containers with the labels of the old one. Nothing is rolled,
// restarted or told for that: not after the restart of the daemon, and not at the next
// commit that is about something else.
func TestAnUpgradeThatReadsMoreTouchesNothingThatRuns(t *testing.T) {
	w, now := hostAtRest(20)
	rest := func(why string) {
		t.Helper()
		for range 5 {
			d := Diff(w, now)
			require.Empty(t, d.Actions, why)
			for _, f := range d.Facts {
				w.Facts.Set(f)
			}
			if len(d.Facts) == 0 {
				require.Equal(t, ring.SyncSynced, d.Status.Sources[0].Sync, why)
				return
			}
		}
		t.Fatal(why, ": it never comes to rest")
	}
	rest("before")
	before := len(w.Facts.Rollouts)

	read := func(commit ring.SHA) *ring.Plan { // as the new release reads it
		plan := *w.Sources[0].Next
		plan.Commit, plan.Apps = commit, slices.Clone(plan.Apps)
		for i := range plan.Apps {
			a := &plan.Apps[i]
			a.Commit, a.Services = commit, slices.Clone(a.Services)
			for j := range a.Services {
				a.Services[j].Composed = &ring.Composed{Keys: []ring.ComposedKey{{Name: "command", JSON: `["serve"]`}}}
			}
			a.Written = ring.WrittenApp(*a)
		}
		return &plan
	}
	for _, commit := range []ring.SHA{w.Sources[0].Next.Commit, shaOf("c2")} {
		next := read(commit)
		was := w.Facts.Apps[next.Apps[0].Name].App
		require.Equal(t, ring.WrittenApp(was), func() string { a := next.Apps[0]; a.Services = slices.Clone(a.Services); return ring.WrittenApp(a) }())
		changes := Plan(w, next, now)
		require.True(t, changes.Empty(), "%+v", changes.Apps[0].Services[0])
		w.Sources[0].Next, w.Sources[0].Tip, w.Sources[0].Commit = next, commit, &ring.Commit{SHA: commit}
		rest("after the upgrade, commit " + commit.Short())
		require.Len(t, w.Facts.Rollouts, before)
		for _, in := range w.Seen.Instances {
			require.Equal(t, in.Version, w.Facts.Rollouts[ring.ID(in.App, in.Service)].Version)
		}
	}
}
