package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// An engine that was killed while it started a container may refuse that one for
// ever. Nothing is lost with it: what outlives it is in volumes and folders. So it
// goes, and what is made in its place may start.

// brokenTry is the refusal of an instance that the engine will never start.
func (t *Pass) brokenTry(v *service, in *instance) (ring.Try, bool) {
	if in.State != ring.StateCreated && !in.Ended() || t.adoptedRow(in) != nil {
		return ring.Try{}, false // of Compose's own containers none goes without a commit
	}
	try := t.Tries[string(v.id)+" "+in.Name]
	// Somebody had it started since where the engine says another time than then; its
	// clock may have been ahead.
	since := !in.Started.Equal(try.Began) && in.Started.After(try.At)
	if try.Broken != in.ID || since {
		return try, false
	}
	// What ran is not thrown away for a refusal that may be of the moment, as while
	// the engine still clears away the run before.
	return try, try.Surely || in.Started.IsZero()
}

// brokenInstance removes what the engine will never start, after a wait that grows
// with each refusal of what was made in its place.
func (t *Pass) brokenInstance(v *service) outcome {
	for _, in := range v.instances {
		try, ok := t.brokenTry(v, in)
		if !ok || in.isLeaving() {
			continue
		}
		if t.now.Before(try.Next) {
			t.wakeBy(try.Next)
			return outcome{then: stop}
		}
		return removing(in, "the engine will never start it: "+try.Err)
	}
	return outcome{}
}

// outlivesStep reports whether a refused container is not forgotten by what a step did to
// it: what takes its place under its name waits longer.
func outlivesStep(try ring.Try, a ring.Action) bool {
	starts := []ring.ActionKind{ring.DoStart, ring.DoRestart}
	return try.Broken != "" && !slices.Contains(starts, a.Kind) && !(a.Kind == ring.DoCreate && a.Start)
}
