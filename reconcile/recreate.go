package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// Recreate moves a service whose versions may not run side by side: one slot
// at a time; the new instance is created first, the old one stopped and kept,
// the new one started; when that fails the kept one is started again. Two
// instances never hold the same port, address or data at once (I18).

// slotlessInstance is what has no slot any more: it goes.
func (t *Pass) slotlessInstance(v *service) outcome {
	for _, in := range v.instances {
		if !in.holdsSlot() || in.Slot <= v.target.Replicas {
			continue
		}
		if in.Version == v.target.Version && !t.mayLower(v) || !t.mayDrainMore(v) {
			continue
		}
		return clearing(in, say("replicas %d", v.target.Replicas))
	}
	return outcome{}
}

// supersededInstance was created and nobody will start it any more: a newer commit came
// first. Not in the gap, when nothing runs, which its removal would prolong.
func (t *Pass) supersededInstance(v *service) outcome {
	if !slices.ContainsFunc(v.instances, func(in *instance) bool { return in.Live() }) {
		return outcome{}
	}
	for _, in := range v.instances {
		wanted := in.Version == v.want.Version || in.Version == v.target.Version || v.good != nil && in.Version == v.good.Service.Version
		if in.State != ring.StateCreated || !in.holdsSlot() || wanted {
			continue
		}
		return removing(in, say("superseded by %s before it started", v.app.Commit.Short()))
	}
	return outcome{}
}

// slotMove brings one slot to the target. The next one waits while it is under way.
func (t *Pass) slotMove(v *service, slot int) outcome {
	in := v.inSlot(slot)
	others := v.instancesBeside(slot)
	switch {
	case in == nil && t.doneIn(v, slot):
		return outcome{}
	case in == nil && v.drainsIn(slot): // its name is taken until then
		return outcome{then: stop}
	case in == nil:
		// Created and not started while the old one still serves: pull and
		// create cost no gap. Nor while one drains, which holds no slot and all else.
		start := len(others) == 0 && !v.livesIn(slot)
		return outcome{then: stop, move: move{kind: moveCreate, slot: slot, start: start, why: t.createSays(v, slot)}}
	case in.Live() && !in.ready && !v.rollout.Done:
		return outcome{then: stop}
	case in.Live() && !in.ready:
		return trying(move{kind: moveHeal})
	case in.ready:
		if o := t.dropOthers(v, others); o.then == stop {
			return o
		}
		return trying(move{kind: moveHeal})
	}
	return t.emptySlotMove(v, slot, in, others)
}

// emptySlotMove is for a slot whose instance does not run: everything that holds what it
// needs goes first, unless it could not start even then.
func (t *Pass) emptySlotMove(v *service, slot int, in *instance, others []*instance) outcome {
	if o := t.awaitsFront(v); o.then == stop {
		return o
	}
	gives := moveClear
	if v.group == nil && slices.ContainsFunc(others, func(old *instance) bool { return old.Live() }) {
		gives = moveGiveWay
	}
	for _, old := range others {
		if old.Live() && old.intent != intentOut && !t.mayDrainMore(v) {
			return outcome{then: stop} // one after the other, where one would be cut for it
		}
		if old.Live() || old.mayRestart() {
			why := say("stopped first, before %s starts: %s", in.Name, v.aloneBecause())
			return outcome{then: stop, move: move{kind: gives, in: old, next: in, intent: v.intentFor(old), why: why}}
		}
	}
	switch {
	case !v.mayStart(in):
		return outcome{then: stop}
	case in.State == ring.StateCreated, in.intent == intentPark, in.intent == intentAgain, in.startUnseen() && !v.rollout.Done && v.failed == nil:
		return outcome{then: stop, move: move{kind: moveStart, in: in, why: t.createSays(v, slot)}}
	}
	return outcome{then: stop, move: move{kind: moveHeal}}
}

// instancesBeside are the instances that may not run while the target of a slot does:
// those of the same slot, and all of a service with one replica, because what
// they share is not per slot.
func (v *service) instancesBeside(slot int) []*instance {
	var out []*instance
	for _, in := range v.instances {
		if !in.holdsSlot() || in.Version == v.target.Version && in.Slot <= v.target.Replicas {
			continue
		}
		if in.Slot == slot || !v.perSlot() {
			out = append(out, in)
		}
	}
	return out
}

// asideInstance keeps what does not run because another does from being started by the
// engine, though somebody gave it a restart policy; and stops it where the engine
// was faster. That an app only wants to be told of what others change is no reason
// to have two on one volume.
func (t *Pass) asideInstance(v *service, in *instance) outcome {
	if !v.isExclusive() {
		return outcome{}
	}
	aside := in.intent == intentPark && in.Version != v.target.Version
	switch {
	case in.Live() && aside && v.runsBeside(in):
		return trying(move{kind: moveStop, in: in, why: "it stands aside, and others had it started"})
	case !in.Live() && (aside || in.State == ring.StateCreated) && in.Policy != "no" && in.Policy != "":
		return trying(move{kind: movePolicy, in: in, policy: noRestart, why: say("others gave it restart policy %s, by which it would start beside what runs", in.Policy)})
	}
	return outcome{}
}

// noRestart is the engine's policy of what gitring alone starts.
const noRestart = "no"

// runsBeside reports whether another runs of what in shares its slot with.
func (v *service) runsBeside(in *instance) bool {
	return slices.ContainsFunc(v.instances, func(x *instance) bool { return x != in && x.Live() && (x.Slot == in.Slot || !v.perSlot()) })
}

// livesIn reports whether an instance lives that shares what a slot has.
func (v *service) livesIn(slot int) bool {
	return slices.ContainsFunc(v.instances, func(x *instance) bool { return x.Live() && (x.Slot == slot || !v.perSlot()) })
}

// mayStart reports whether nothing runs, or would be brought back by the engine, that
// holds what in needs.
func (v *service) mayStart(in *instance) bool {
	for _, x := range v.instances {
		if x == in || x.Slot != in.Slot && v.perSlot() {
			continue
		}
		if x.Version == in.Version && x.Slot != in.Slot && x.Slot <= v.target.Replicas {
			continue
		}
		if x.Live() || x.mayRestart() {
			return false
		}
	}
	return true
}

// perSlot reports whether every slot has data of its own.
func (v *service) perSlot() bool {
	for _, m := range v.of.Mounts(v.target) {
		if m.Outlives() && !strings.Contains(m.Source, "{slot}") {
			return false
		}
	}
	return v.target.Replicas > 1
}

// dropOthers removes what was kept for a restore, or is stopped and old.
func (t *Pass) dropOthers(v *service, others []*instance) outcome {
	if len(others) == 0 || !t.groupReached(v, t.isFilled) {
		return outcome{}
	}
	why := say("replaced by %s", v.app.Commit.Short())
	if !v.waits.None() {
		why = "does not start: " + v.waits.Says
	}
	for _, old := range others {
		if (v.waits.None() || !t.keepsFor(v, old)) && !t.needsPublisher(v, old) {
			return clearing(old, why)
		}
	}
	return outcome{}
}

// keepsFor reports whether an instance that did not start for a port that somebody else
// has stays as it was created: with it goes how often that was tried.
func (t *Pass) keepsFor(v *service, in *instance) bool {
	return in.Version == v.want.Version && !in.Live() && isPortTaken(t.Tries[string(v.id)+" "+in.Name].Err)
}
