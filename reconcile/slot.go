package reconcile

import (
	"cmp"

	"github.com/gitring/gitring/ring"
)

// removeInstance writes down that an instance goes, and takes the step.
func (t *decider) removeInstance(v *service, in *instance, why string) {
	if t.drainFirst(v, in, why) || t.readsLog(in) || t.stopTied(in, why) {
		return
	}
	it := t.removalIntent(v, in, intentRemove, why)
	t.setFact(it)
	t.forgetSlot(v, in)
	t.addStep(t.removalStep(v, in, it))
}

// removalStep is the step that a removal means. That its slot is to be filled again is
// remembered with its end.
func (t *Pass) removalStep(v *service, in *instance, it ring.Intent) ring.Action {
	a := t.stepOn(v, ring.DoRemove, in, it.Reason)
	if v.hasFront() {
		a.Delay = 0 // it drained in its front
	}
	if it.Slot > 0 {
		a.Then = append(a.Then, it)
	}
	return a
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
	if why := cmp.Or(t.awaitsRestart(v, slot), t.leftAlone(v, slot), t.stopsBehind(v)); why != "" {
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
	if v.mark != nil {
		a.Run, a.Name = v.mark, ring.RunName(v.app.Name, v.want.Name, v.target.Version, *v.mark)
	}
	if why := t.unverifiedReason(v.of, v.target); why != "" { // before any of it is fetched
		v.missing = why
		return false
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
		if v.inSlot(slot) == nil && !t.doneIn(v, slot) && !v.drainsIn(slot) {
			return slot
		}
	}
	return 0
}

// clearInstance takes an instance out of the way for good: first its restart policy,
// so that an engine that restarts cannot bring it back beside its successor,
// then the stop.
func (t *decider) clearInstance(v *service, in *instance, intent, why string) {
	if intent == intentRemove && t.drainFirst(v, in, why) || t.stopTied(in, why) {
		return
	}
	if in.Policy != "no" && in.Policy != "" {
		a := t.stepOn(v, ring.DoPolicy, in, "it is about to stop: "+why)
		a.Policy = "no"
		t.addStep(a)
		return
	}
	if intent == intentRemove {
		t.removeInstance(v, in, why)
		return
	}
	if !t.isOut(v, in) {
		if in.intent != intentOut && t.mayDrainMore(v) {
			t.setFact(ring.Intent{Instance: in.ID, Kind: intentOut, Reason: why, At: t.now, Unstarted: t.isUnstarted(in)})
		}
		return
	}
	t.setFact(ring.Intent{Instance: in.ID, Kind: intentPark, Reason: why, At: t.now})
	t.addStep(t.stepOn(v, ring.DoStop, in, why))
}

// startInstance starts a created or kept instance. That a kept one was kept is forgotten
// when the step has ended (Settle): until then its last exit is still ours, and
// no failure of the version that it runs. It reports whether the step was decided.
func (t *decider) startInstance(v *service, in *instance, why string) bool {
	if t.providerMissing(in) {
		v.missing = "waits for what it is tied to"
		return false
	}
	if v.missing = cmp.Or(t.occupiedReasonOf(v, in), t.stopsBehind(v)); v.missing != "" {
		return false
	}
	if t.giveName(v, in) {
		return true
	}
	a := t.stepOn(v, ring.DoStart, in, why)
	if a.Want != nil && t.networksMissing(a.Of, a.Want) {
		v.missing = t.unmadeReason(a.Of, a.Want)
		return false // somebody removed one while nothing ran on it
	}
	if !t.addStep(a) {
		return false
	}
	t.meanHooks(v, in)
	return true
}

// stopTied stops what is tied to an instance before that stops or goes. It says
// whether there is something to wait for. A run of a job is never cut short.
func (t *decider) stopTied(in *instance, why string) bool {
	wait := false
	for _, x := range t.tied[in.ID] {
		if !x.Live() && !x.mayRestart() {
			continue
		}
		wait = true
		id := ring.ID(x.App, x.Service)
		if t.handsOff(id) {
			continue // a person holds it, and so what it is tied to
		}
		if x.Kind.Ends() || x.isLeaving() || x.intent == intentStop || t.isBusy(string(id)) {
			continue // it goes by itself
		}
		says := say("it is tied to %s, which stops: %s", in.Name, why)
		if v := t.views[id]; v != nil {
			t.clearInstance(v, x, v.intentFor(x), says)
			continue
		}
		t.setFact(ring.Intent{Instance: x.ID, Kind: intentPark, Reason: says, At: t.now})
		t.addStep(ring.Action{
			Kind: ring.DoStop, App: x.App, Service: x.Service, Slot: x.Slot, Version: x.Version, Commit: x.Commit,
			Instance: x.ID, Name: x.Name, Reason: says, Grace: x.ownGrace(),
		})
	}
	return wait
}
