package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// An instance may not answer while it reloads. So its front sends it nothing meanwhile: a table
// has it warm, which closes nothing, and then active again. Where it is the only one, requests
// wait.

// intentReload is what an instance is taken out for that takes files over.
const intentReload = "reload"

// reloadMost is how long a front is waited for that does not answer: a reload stops nothing.
const reloadMost = 3 * time.Minute

// takeOut reports whether an instance may take its files over, and has it taken out of its
// front first.
func (t *decider) takeOut(v *service, in *instance, a ring.Action) bool {
	if t.isOutForReload(v, in) {
		return true
	}
	if try, tried := t.Tries[tryKey(a)]; tried && sameTry(try, a) && t.now.Before(try.Next) {
		t.wakeBy(try.Next)
		return false
	}
	if in.intent != intentReload {
		t.setFact(ring.Intent{Instance: in.ID, Kind: intentReload, Reason: a.Reason, At: t.now})
	}
	return false
}

// isOutForReload reports whether no front sends an instance anything new, and the requests that
// were in flight to it ended or had their time. What is upgraded, or plain tcp, is not waited for.
func (t *Pass) isOutForReload(v *service, in *instance) bool {
	if !v.hasFront() {
		return true
	}
	name, beside := ring.FrontName(in.ID), t.servesBeside(v, in)
	fronts := t.frontsOf(v.id)
	if in.intent != intentReload {
		if !beside && v.route().Queue == 0 {
			return true // nothing is gained by a gap in which nobody waits
		}
		for i := range fronts {
			if fronts[i].maySend(name) {
				return false
			}
		}
		return true
	}
	ends := t.Facts.Intents[in.ID].At.Add(v.route().DrainTimeout)
	if !beside {
		ends = t.Facts.Intents[in.ID].At.Add(min(gapDrain, v.route().DrainTimeout))
	}
	over := ends.Add(reloadMost)
	t.wakeBy(over)
	if !t.now.Before(over) {
		return true
	}
	for i := range fronts {
		f := &fronts[i]
		if f.maySend(name) {
			return false
		}
		if seen, _ := f.reached(name); seen.InFlight > seen.Streams && t.now.Before(ends) {
			t.wakeBy(ends)
			return false
		}
	}
	return true
}

// servesBeside reports whether a front sends requests to another instance, too.
func (t *Pass) servesBeside(v *service, in *instance) bool {
	fronts := t.frontsOf(v.id)
	for _, x := range v.instances {
		if x == in || x.State != ring.StateRunning || !x.fit || x.intent != "" {
			continue
		}
		for i := range fronts {
			if fronts[i].lastTable().State(ring.FrontName(x.ID)).State == ring.FrontActive {
				return true
			}
		}
	}
	return false
}

// maySend reports whether a front that runs may send new requests to an instance.
func (f *toldFront) maySend(name string) bool {
	if f.in.State != ring.StateRunning {
		return false
	}
	active := func(t *ring.FrontTable) bool { return t.State(name).State == ring.FrontActive }
	return !f.known || active(f.table) || active(f.sent) || active(f.open) || f.seen != nil && active(f.seen.Table)
}

// reloadMeant has the front send requests to an instance again that took its files over, or
// that is not to take them over now.
func (t *Pass) reloadMeant(v *service, in *instance) outcome {
	row, known := t.Facts.Loads[in.ID]
	stale := v.target.Reload != nil && in.Version == v.target.Version && in.holdsSlot() && in.State == ring.StateRunning && !(known && row.Has(v.target.Reload))
	try, tried := t.Tries[string(v.id)+" "+in.Name]
	waits := tried && try.Kind == ring.DoReload && t.now.Before(try.Next)
	if !stale || waits || t.refusedAlready(v, in) || !v.pausedBy.None() && t.onTrial(v) {
		return noting(ring.Forget{Table: "intent", Key: in.ID})
	}
	return outcome{}
}
