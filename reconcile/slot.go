package reconcile

import (
	"cmp"

	"github.com/gitring/gitring/ring"
)

// removeInstance writes down that an instance goes, and takes the step.
func (t *decider) removeInstance(v *service, in *instance, why string) {
	if t.readsLog(in) || t.stopTied(in, why) {
		return
	}
	it := ring.Intent{Instance: in.ID, Kind: intentRemove, Reason: why, At: t.now}
	if in.Version == v.target.Version && in.Slot <= v.target.Replicas {
		it.ID, it.Slot = v.id, in.Slot
	}
	t.setFact(it)
	t.forgetSlot(v, in)
	t.addStep(t.removalStep(v, in, it))
}

// stepOn makes an action on an instance.
func (t *Pass) stepOn(v *service, k ring.ActionKind, in *instance, why string) ring.Action {
	a := ring.Action{
		Kind: k, App: v.app.Name, Service: v.want.Name, Slot: in.Slot, Version: in.Version, Commit: v.app.Commit,
		Instance: in.ID, Name: in.Name, Began: in.Started, Reason: why, Grace: v.want.Grace(), Delay: v.want.Rollout.DrainDelay,
	}
	switch {
	case in.Version == v.want.Version:
		a.Of, a.Want = v.app, v.want
	case v.good != nil && in.Version == v.good.Service.Version:
		a.Of, a.Want = &v.good.App, &v.good.Service
	default: // its spec is not known any more: neither its own time nor the newer one is cut
		a.Grace = max(a.Grace, in.Grace)
		return a
	}
	a.Grace, a.Networks = a.Want.Grace(), t.networkNames(a.Of)
	return a
}

// createInstance makes the instance of a slot, once its networks are there. An image
// that went missing is pulled first; after failures in a row it waits.
func (t *decider) createInstance(v *service, slot int, start bool, why string) bool {
	if t.networksMissing(v.of, v.target) {
		v.missing = t.unmadeReason(v.of, v.target)
		return false
	}
	if v.rollout.Failures > 1 && !v.isRestoring() {
		if next := v.rollout.LastFailure.Add(backoffOf(string(v.id), v.rollout.Failures)); t.now.Before(next) {
			t.wakeBy(next)
			return false
		}
	}
	if why := cmp.Or(t.awaitsRestart(v, slot), t.leftAlone(v, slot)); why != "" {
		v.missing = why
		return false
	}
	owners, lacks := t.providersFor(v, slot)
	if lacks != "" {
		v.missing = lacks
		return false
	}
	if t.isBeingMade(v) {
		return false
	}
	start = start && len(v.target.Spec.PostStart) == 0 && v.target.Spec.ContainerName == ""
	start = start && t.occupiedReason(v, v.of, v.target) == ""
	a := ring.Action{
		Kind: ring.DoCreate, App: v.app.Name, Service: v.want.Name, Slot: slot, Version: v.target.Version,
		Commit: v.target.Changed, Of: v.of, Want: v.target, Start: start, Networks: t.networkNames(v.of),
		Name: ring.ContainerName(v.app.Name, v.want.Name, slot, v.target.Version), Reason: why, Kept: t.namesKept(), Owners: owners,
	}
	if !v.target.Image.Known { // what it keeps for itself is not known
		t.addStep(t.pullStep(v.of, v.target, "has to be looked at"))
		return false
	}
	if try, ok := t.Tries[a.Target()]; ok && try.Kind == ring.DoCreate && try.Cause == ring.CauseImagePull && !t.Images[v.target.Pin.Image].Known {
		t.addStep(t.pullStep(v.of, v.target, "is missing on this host"))
		return false
	}
	return t.addStep(a)
}

// freeSlot is the lowest slot that is to be filled, because no instance of the
// target holds it; 0 when there is none.
func (t *Pass) freeSlot(v *service) int {
	for slot := 1; slot <= v.target.Replicas; slot++ {
		if v.inSlot(slot) == nil && !t.doneIn(v, slot) {
			return slot
		}
	}
	return 0
}

// inSlot is the target's instance of a slot.
func (v *service) inSlot(slot int) *instance {
	for _, in := range v.instances {
		if in.Slot == slot && in.Version == v.target.Version && in.holdsSlot() {
			return in
		}
	}
	return nil
}
