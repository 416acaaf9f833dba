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

// slotless is what has no slot any more: it goes.
func (t *Pass) slotless(v *service) outcome {
	for _, in := range v.all {
		if !in.holds() || in.Slot <= v.target.Replicas {
			continue
		}
		if in.Version == v.target.Version && !t.mayLower(v) {
			continue
		}
		return clearing(in, say("replicas %d", v.target.Replicas))
	}
	return outcome{}
}

// supersededInstance was created and nobody will start it any more: a newer commit came
// first. Not in the gap, when nothing runs, which its removal would prolong.
func (t *Pass) supersededInstance(v *service) outcome {
	if !slices.ContainsFunc(v.all, func(in *inst) bool { return in.Live() }) {
		return outcome{}
	}
	for _, in := range v.all {
		wanted := in.Version == v.want.Version || in.Version == v.target.Version || v.good != nil && in.Version == v.good.Service.Version
		if in.State != ring.StateCreated || !in.holds() || wanted {
			continue
		}
		return removing(in, say("superseded by %s before it started", v.app.Commit.Short()))
	}
	return outcome{}
}

// slotMove brings one slot to the target. The next one waits while it is under way.
func (t *Pass) slotMove(v *service, slot int) outcome {
	in := v.inSlot(slot)
	others := v.others(slot)
	switch {
	case in == nil && t.doneIn(v, slot):
		return outcome{}
	case in == nil:
		// Created and not started while the old one still serves: pull and
		// create cost no gap.
		return outcome{then: stop, move: move{kind: moveCreate, slot: slot, start: len(others) == 0, why: t.createSays(v, slot)}}
	case in.Live() && !in.ready && !v.row.Done:
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
func (t *Pass) emptySlotMove(v *service, slot int, in *inst, others []*inst) outcome {
	gives := moveClear
	if v.fate == nil && slices.ContainsFunc(others, func(old *inst) bool { return old.Live() }) {
		gives = moveGiveWay
	}
	for _, old := range others {
		if old.Live() || old.restartable() {
			why := say("stopped first, before %s starts: %s", in.Name, v.alone())
			return outcome{then: stop, move: move{kind: gives, in: old, next: in, intent: v.keep(old), why: why}}
		}
	}
	switch {
	case !v.mayStart(in):
		return outcome{then: stop}
	case in.State == ring.StateCreated, in.intent == intentPark, in.intent == intentAgain, in.begun() && !v.row.Done && v.failed == nil:
		return outcome{then: stop, move: move{kind: moveStart, in: in, why: t.createSays(v, slot)}}
	}
	return outcome{then: stop, move: move{kind: moveHeal}}
}

// others are the instances that may not run while the target of a slot does:
// those of the same slot, and all of a service with one replica, because what
// they share is not per slot.
func (v *service) others(slot int) []*inst {
	var out []*inst
	for _, in := range v.all {
		if !in.holds() || in.Version == v.target.Version && in.Slot <= v.target.Replicas {
			continue
		}
		if in.Slot == slot || !v.perSlot() {
			out = append(out, in)
		}
	}
	return out
}

// exclusive says that two versions of the service are never started side by side.
func (v *service) exclusive() bool {
	return !strategyNamed(v.want.Rollout.Strategy).overlaps || v.alone() != ""
}

// alone is why two instances cannot run at once; "" when they can. What a version
// does not share with itself it does not share with another either, whatever that
// one says.
func (v *service) alone() string {
	if v.loneOf != v.target { // the rules ask again and again
		v.loneOf, v.lone = v.target, v.app.Alone(v.target)
	}
	if v.lone != "" {
		return v.lone
	}
	mine := writes(v.of, v.target)
	if len(mine) == 0 {
		return ""
	}
	for _, in := range v.all {
		if in.Version == v.target.Version || v.sharesAs(in.Version) {
			continue
		}
		its := v.row.Writes[in.Version]
		if s := v.runs(in); s != nil {
			its = writes(v.asWritten(s), s)
		}
		if what := common(its, mine); what != "" {
			return say("writable %s, which %s does not share", what, in.Name)
		}
	}
	return ""
}

// asWritten is the app of a service that v runs or ran.
func (v *service) asWritten(s *ring.Service) *ring.App {
	if s == v.want {
		return v.app
	}
	return &v.good.App
}

// common is the first of some that is among others; "" when none is.
func common(others, some []string) string {
	if i := slices.IndexFunc(some, func(what string) bool { return among(others, what) }); i >= 0 {
		return some[i]
	}
	return ""
}

// asideInstance keeps what does not run because another does from being started by the
// engine, though somebody gave it a restart policy; and stops it where the engine
// was faster. That an app only wants to be told of what others change is no reason
// to have two on one volume.
func (t *Pass) asideInstance(v *service, in *inst) outcome {
	if !v.exclusive() {
		return outcome{}
	}
	aside := in.intent == intentPark && in.Version != v.target.Version
	switch {
	case in.Live() && aside && v.beside(in):
		return trying(move{kind: moveStop, in: in, why: "it stands aside, and others had it started"})
	case !in.Live() && (aside || in.State == ring.StateCreated) && in.Policy != "no" && in.Policy != "":
		return trying(move{kind: movePolicy, in: in, policy: noRestart, why: say("others gave it restart policy %s, by which it would start beside what runs", in.Policy)})
	}
	return outcome{}
}

// noRestart is the engine's policy of what gitring alone starts.
const noRestart = "no"

// beside says that another runs of what in shares its slot with.
func (v *service) beside(in *inst) bool {
	return slices.ContainsFunc(v.all, func(x *inst) bool { return x != in && x.Live() && (x.Slot == in.Slot || !v.perSlot()) })
}

// mayStart says that nothing runs, or would be brought back by the engine, that
// holds what in needs.
func (v *service) mayStart(in *inst) bool {
	for _, x := range v.all {
		if x == in || x.Slot != in.Slot && v.perSlot() {
			continue
		}
		if x.Version == in.Version && x.Slot != in.Slot && x.Slot <= v.target.Replicas {
			continue
		}
		if x.Live() || x.restartable() {
			return false
		}
	}
	return true
}

// restartable says that the engine could bring a stopped instance back.
func (in *inst) restartable() bool {
	return in.Policy != "no" && in.Policy != "" && in.intent != intentPark
}

// perSlot says that every slot has data of its own.
func (v *service) perSlot() bool {
	for _, m := range v.of.Mounts(v.target) {
		if m.Outlives() && !strings.Contains(m.Source, "{slot}") {
			return false
		}
	}
	return v.target.Replicas > 1
}

// keep is what becomes of an old instance that has to stop: the last good one
// is kept for a restore, any other goes.
func (v *service) keep(old *inst) string {
	if v.good != nil && old.Version == v.good.Service.Version && !v.restoring() {
		return intentPark
	}
	return intentRemove
}

// clear takes an instance out of the way for good: first its restart policy,
// so that an engine that restarts cannot bring it back beside its successor,
// then the stop.
func (t *decider) clear(v *service, in *inst, intent, why string) {
	if t.untie(in, why) {
		return
	}
	if in.Policy != "no" && in.Policy != "" {
		a := t.step(v, ring.DoPolicy, in, "it is about to stop: "+why)
		a.Policy = "no"
		t.do(a)
		return
	}
	if intent == intentRemove {
		t.remove(v, in, why)
		return
	}
	t.set(ring.Intent{Instance: in.ID, Kind: intentPark, Reason: why, At: t.now})
	t.do(t.step(v, ring.DoStop, in, why))
}

// start starts a created or kept instance. That a kept one was kept is forgotten
// when the step has ended (Settle): until then its last exit is still ours, and
// no failure of the version that it runs. It says whether the step was decided.
func (t *decider) start(v *service, in *inst, why string) bool {
	if t.apart(in) {
		v.lacks = "waits for what it is tied to"
		return false
	}
	if v.lacks = t.occupiedFor(v, in); v.lacks != "" {
		return false
	}
	if t.named(v, in) {
		return true
	}
	a := t.step(v, ring.DoStart, in, why)
	if a.Want != nil && t.networksMissing(a.Of, a.Want) {
		v.lacks = t.unmade(a.Of, a.Want)
		return false // somebody removed one while nothing ran on it
	}
	if !t.do(a) {
		return false
	}
	t.meanHooks(v, in)
	return true
}

// dropOthers removes what was kept for a restore, or is stopped and old.
func (t *Pass) dropOthers(v *service, others []*inst) outcome {
	if len(others) == 0 || !t.whole(v, t.filled) {
		return outcome{}
	}
	why := say("replaced by %s", v.app.Commit.Short())
	if !v.waits.None() {
		why = "does not start: " + v.waits.Says
	}
	for _, old := range others {
		if v.waits.None() || !t.keepsFor(v, old) {
			return clearing(old, why)
		}
	}
	return outcome{}
}

// keepsFor says that an instance that did not start for a port that somebody else
// has stays as it was created: with it goes how often that was tried.
func (t *Pass) keepsFor(v *service, in *inst) bool {
	return in.Version == v.want.Version && !in.Live() && taken(t.Tries[string(v.id)+" "+in.Name].Err)
}
