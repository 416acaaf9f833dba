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

// moveSlots brings the slots to the target, one after the other.
func (t *decider) moveSlots(v *service) bool {
	for slot := 1; slot <= v.target.Replicas; slot++ {
		if t.move(v, slot) {
			return true
		}
	}
	return false
}

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

// move brings one slot to the target. It says whether the slot is under way,
// so that the next one waits.
func (t *decider) move(v *service, slot int) bool {
	in := v.inSlot(slot)
	others := v.others(slot)
	if in == nil && t.doneIn(v, slot) {
		return false
	}
	if in == nil {
		// Created and not started while the old one still serves: pull and
		// create cost no gap.
		t.create(v, slot, len(others) == 0, t.createSays(v, slot))
		return true
	}
	if in.Live() && !in.ready {
		return !v.row.Done || t.heal(v)
	}
	if in.ready {
		return t.whole(v, t.filled) && t.dropOthers(v, others) || t.heal(v)
	}
	// It does not run: everything that holds what it needs goes first, unless it
	// could not start even then.
	if v.fate == nil && slices.ContainsFunc(others, func(old *inst) bool { return old.Live() }) {
		if v.lacks = t.occupiedFor(v, in); v.lacks != "" {
			return true
		}
	}
	for _, old := range others {
		if old.Live() || old.restartable() {
			t.clear(v, old, v.keep(old), say("stopped first, before %s starts: %s", in.Name, v.alone()))
			return true
		}
	}
	if !v.mayStart(in) {
		return true
	}
	if in.State == ring.StateCreated || in.intent == intentPark || in.intent == intentAgain || in.begun() && !v.row.Done && v.failed == nil {
		t.start(v, in, t.createSays(v, slot))
		return true
	}
	t.heal(v)
	return true
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
	return v.want.Rollout.Strategy == ring.Recreate || v.alone() != ""
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

// standAside keeps what does not run because another does from being started by the
// engine, though somebody gave it a restart policy; and stops it where the engine
// was faster. That an app only wants to be told of what others change is no reason
// to have two on one volume.
func (t *decider) standAside(v *service) bool {
	if !v.exclusive() {
		return false
	}
	for _, in := range v.all {
		aside := in.intent == intentPark && in.Version != v.target.Version
		switch {
		case in.Live() && aside && v.beside(in):
			return !t.untie(in, "it stands aside") && t.do(t.step(v, ring.DoStop, in, "it stands aside, and others had it started"))
		case !in.Live() && (aside || in.State == ring.StateCreated) && in.Policy != "no" && in.Policy != "":
			a := t.step(v, ring.DoPolicy, in, say("others gave it restart policy %s, by which it would start beside what runs", in.Policy))
			a.Policy = "no"
			return t.do(a)
		}
	}
	return false
}

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
func (t *decider) dropOthers(v *service, others []*inst) bool {
	if len(others) == 0 {
		return false
	}
	why := say("replaced by %s", v.app.Commit.Short())
	if !v.waits.None() {
		why = "does not start: " + v.waits.Says
	}
	for _, old := range others {
		if !v.waits.None() && t.keepsFor(v, old) {
			continue
		}
		t.clear(v, old, intentRemove, why)
		return true
	}
	return false
}

// keepsFor says that an instance that did not start for a port that somebody else
// has stays as it was created: with it goes how often that was tried.
func (t *Pass) keepsFor(v *service, in *inst) bool {
	return in.Version == v.want.Version && !in.Live() && taken(t.Tries[string(v.id)+" "+in.Name].Err)
}
