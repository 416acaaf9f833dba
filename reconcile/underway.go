package reconcile

import (
	"cmp"
	"slices"

	"github.com/gitring/gitring/ring"
)

// UnderWay are the runs that have not ended, for people: those that run, those of
// which a try failed and another follows, and those that a person asked for and
// that have not begun. The newest comes first. State is running, retrying or waiting.
func UnderWay(f *ring.Facts) []ring.Run {
	var out []ring.Run
	for _, key := range sortedKeys(f.Jobs) {
		run := f.Jobs[key]
		state := map[string]string{jobStarted: "running", "": "retrying"}[run.State]
		if state == "" {
			continue
		}
		waits, _ := splitFor(run.For)
		out = append(out, ring.Run{
			ID: run.ID, Version: run.Version, Commit: run.Commit, Instance: run.Instance, Trigger: cmp.Or(run.Trigger, ring.OnChange), For: waits,
			Actor: run.Actor, State: state, Try: run.Tries, Reason: cmp.Or(run.Stopped, run.Reason), Due: run.Due, Started: run.Started,
		})
	}
	for _, id := range sortedKeys(f.Asks) {
		ask := f.Asks[id]
		out = append(out, ring.Run{ID: id, Trigger: ring.Asked, Actor: ask.Actor, State: "waiting", Reason: ask.Reason, Due: ask.At})
	}
	slices.SortStableFunc(out, func(a, b ring.Run) int { return b.Started.Compare(a.Started) })
	return out
}
