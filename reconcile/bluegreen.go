package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// switchSets is blue_green: the old set stays whole until the new one serves whole,
// then for warm_for as the one to go back to, and then goes together. Where two
// versions cannot overlap there is no second set, and recreate moves the service.
func (t *Pass) switchSets(v *service) outcome {
	if v.target != v.want || v.rollout.Done {
		return outcome{}
	}
	var old, interim []*instance
	for _, in := range v.instances {
		switch {
		case in.Version == v.want.Version || !in.holdsSlot():
		case v.good != nil && in.Version != v.good.Service.Version, t.removalRank(v, in) == 0:
			interim = append(interim, in) // superseded before it was ever the live set
		default:
			old = append(old, in)
		}
	}
	if o := t.firstToGo(v, interim); o.then == stop {
		return o
	}
	if o := t.lowerOldSet(v, old); o.then == stop {
		return o
	}
	if len(old) == 0 {
		return outcome{}
	}
	o := outcome{then: stop}
	if !t.isFilled(v) {
		return o
	}
	row := v.rollout
	if row.Switched.IsZero() {
		row.Switched = t.now
		o.facts = append(o.facts, row)
		o.events = append(o.events, ring.Event{
			Kind: ring.RolloutSwitched, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.want.Version,
			Commit: v.app.Commit, Reason: say("%d/%d ready; the old set stays for %s", v.want.Replicas, v.want.Replicas, v.want.Rollout.WarmFor),
		})
	}
	if cold := row.Switched.Add(v.want.Rollout.WarmFor); t.now.Before(cold) && !v.isPromoted(row.Switched) {
		t.wakeBy(cold)
		return o
	}
	o.add(move{kind: moveRetire, all: old})
	return o
}

// lowerOldSet takes from the old set what one commit lowers together with the version: else it
// would leave no room for the new one beside it.
func (t *Pass) lowerOldSet(v *service, old []*instance) outcome {
	surplus := slices.DeleteFunc(slices.Clone(old), func(in *instance) bool { return in.Slot <= v.want.Replicas })
	if len(surplus) == 0 || v.want.Replicas == 0 || !t.mayLower(v) || !t.mayDrainMore(v) {
		return outcome{}
	}
	return t.firstToGo(v, surplus)
}

// roomForSecondSet is all of the new set beside all of the old one, whatever the knobs say.
func roomForSecondSet(_ ring.Rollout, d int) (surge, unavailable int) { return d, 0 }

// firstToGo removes the first of some that the floor can spare.
func (t *Pass) firstToGo(v *service, some []*instance) outcome {
	t.sortGone(v, some)
	for _, in := range some {
		if v.canSpare(in) {
			return removing(in, t.removeSays(v, in))
		}
	}
	return outcome{}
}

// retireSet is the switch: all of the old set is on its way out from the same
// moment, though the engine is asked for one after the other.
func (t *decider) retireSet(v *service, old []*instance) {
	serving := 0
	for _, in := range v.instances {
		if in.Version == v.want.Version && in.holdsSlot() && (in.ready || in.rests) {
			serving++
		}
	}
	if serving < v.want.Replicas {
		return
	}
	t.sortGone(v, old)
	if slices.ContainsFunc(old, func(in *instance) bool { return !t.isOut(v, in) }) {
		for _, in := range old {
			t.drainFirst(v, in, t.removeSays(v, in))
		}
		return
	}
	for _, in := range old {
		t.setFact(ring.Intent{Instance: in.ID, Kind: intentRemove, Reason: t.removeSays(v, in), At: t.now})
	}
	if why := t.removeSays(v, old[0]); !t.stopTied(old[0], why) { // else it goes when what is tied to it has stopped
		t.addStep(t.stepOn(v, ring.DoRemove, old[0], why))
	}
}

// staysForRestore reports whether an instance was to go for a set that failed meanwhile, and is
// what is gone back to.
func (v *service) staysForRestore(in *instance) bool {
	return v.isRestoring() && strategyOf(v).secondSet &&
		in.Version == v.target.Version && in.Slot <= v.target.Replicas && in.Live()
}
