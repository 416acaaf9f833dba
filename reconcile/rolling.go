package reconcile

import (
	"cmp"
	"slices"

	"github.com/gitring/gitring/ring"
)

// Rolling moves a service whose versions may run side by side: computed from what is
// seen, one step at a time. The rules stand in lists.go, in order.

// failedInstance is a failed instance of the target, which goes free of budget. One that
// failed, was started again and may be serving by now is none.
func (t *Pass) failedInstance(v *service) outcome {
	if v.rollout.Done || v.failed != nil || !v.waits.None() {
		return outcome{}
	}
	for _, in := range v.instances {
		if in.Version != v.target.Version || !in.holdsSlot() || !slices.Contains(v.rollout.Counted, in.ID) || !in.down || t.adoptedRow(in) != nil {
			continue
		}
		return removing(in, "failed: "+in.reason)
	}
	return outcome{}
}

// createdInstance is what was created and not started, a step that ended half way, and
// what was kept for a restore: it is started.
func (t *Pass) createdInstance(v *service) (o outcome) {
	for _, in := range v.instances {
		kept := (in.intent == intentPark || in.intent == intentAgain || in.startUnseen() && !v.rollout.Done && v.failed == nil && v.waits.None()) && !in.Live()
		if in.State != ring.StateCreated && !kept || in.Version != v.target.Version || !in.holdsSlot() || in.Slot > v.target.Replicas {
			continue
		}
		if v.isExclusive() && !v.mayStart(in) {
			continue // a rollout that was paused before the old one had stopped
		}
		if !v.mayStart(in) && !v.target.Image.Known {
			// Only a lost database knew what the target's image keeps for itself: until
			// that is known, nothing is started beside another.
			o.then = note
			o.add(move{kind: movePull, why: "has to be looked at"})
			continue
		}
		o.then = stop
		o.add(move{kind: moveStart, in: in, why: "created and not started"})
		return o
	}
	return o
}

// imageUnknown reports whether only a lost database knew what the target's image keeps for
// itself: until that is known, nothing is started beside another.
func (v *service) imageUnknown() bool { return !v.target.Image.Known }

// oneMore creates one instance more when the budget allows it.
func (t *Pass) oneMore(v *service) outcome {
	d := v.target.Replicas
	up := t.surgeNow(v, d)
	var live, held, starting int
	for _, in := range v.instances {
		if (in.Live() || in.State == ring.StateCreated) && !in.isDraining() {
			live++
		}
		if in.Version != v.target.Version || !in.holdsSlot() || in.Slot > d { // one in a slot that is not wanted any more fills none that is
			continue
		}
		held++
		if t.isStarting(v, in) {
			starting++
		}
		if !v.rollout.Done && !v.isRestoring() && in.down && in.Ended() && !t.isResting(v, in) {
			return outcome{} // one of the target is failing
		}
	}
	parallel := max(1, v.settingsNow().MaxParallel)
	if v.inSteps() {
		d = v.canaryCount()
		up += v.target.Replicas - d // they come on top of the old ones
	}
	slot := t.freeSlot(v)
	if slot == 0 || min(d+up-live, d-held, parallel-starting) <= 0 {
		return outcome{}
	}
	if why := t.memoryShort(v); why != "" {
		return outcome{then: note, reason: ring.Reason{Code: ring.WhyHostNotReady, Says: why}}
	}
	return outcome{then: try, clears: true, move: move{kind: moveCreate, slot: slot, start: true, why: t.createSays(v, slot)}}
}

// surgeNow is how many instances may come on top of those wanted. What publishes the port that a
// front is to have goes last, whatever max_surge says.
func (t *Pass) surgeNow(v *service, d int) int {
	up, _ := roomNow(v, d)
	if slices.ContainsFunc(v.instances, func(in *instance) bool { return in.Live() && t.needsPublisher(v, in) }) {
		return max(up, 1)
	}
	return up
}

// isStarting reports whether an instance of the target is on its way to ready, and takes a
// place of max_parallel. Where no rollout judges it that has an end: a slot that
// crashes, or that was not ready in time, does not keep others empty.
func (t *Pass) isStarting(v *service, in *instance) bool {
	if in.ready || t.isResting(v, in) {
		return false
	}
	if !v.rollout.Done && v.target == v.want {
		return true
	}
	if v.rollout.Done && in.Ended() {
		return false
	}
	until := laterOf(t.readSince(v, in), t.Awake).Add(patienceOf(v.target))
	if !t.now.Before(until) {
		return false
	}
	t.wakeBy(until)
	return true
}

func (t *Pass) createSays(v *service, slot int) string {
	switch {
	case v.isRestoring():
		return say("restore %s: %s", v.good.Commit.Short(), v.failed.Reason)
	case !v.waits.None():
		return "keep the last good version: " + v.waits.Says
	case v.rollout.Done:
		return say("slot %d is empty", slot)
	}
	return t.changeReason(v)
}

// oneNotWanted removes one instance that is not wanted, if the floor allows it.
func (t *Pass) oneNotWanted(v *service) outcome {
	if !t.mayDrainMore(v) {
		return outcome{}
	}
	var gone []*instance
	for _, in := range v.instances {
		if !in.holdsSlot() || t.needsPublisher(v, in) {
			continue
		}
		if in.Version != v.target.Version || in.Slot > v.target.Replicas && t.mayLower(v) {
			gone = append(gone, in)
		}
	}
	return t.firstToGo(v, gone)
}

// sortGone is the order in which instances go.
func (t *Pass) sortGone(v *service, gone []*instance) {
	slices.SortStableFunc(gone, func(a, b *instance) int {
		return cmp.Or(cmp.Compare(t.removalRank(v, a), t.removalRank(v, b)), t.compareAge(v, a, b), cmp.Compare(b.Slot, a.Slot))
	})
}

// canSpare reports whether the floor holds without in: ready instances may not fall
// below replicas - max_unavailable by our own act. What is known not to serve
// costs nothing; what is not known may be serving.
func (v *service) canSpare(in *instance) bool {
	if in.down || in.State == ring.StateCreated {
		return true
	}
	d := v.target.Replicas
	_, unavailable := roomOf(v.settingsNow(), d)
	left := 0
	for _, x := range v.instances {
		if x != in && (x.ready || x.rests && x.Version == v.target.Version) && x.holdsSlot() {
			left++
		}
	}
	return left >= d-unavailable
}

// removalRank is the order of removal: what never became ready and is superseded,
// what does not serve, then the rest.
func (t *Pass) removalRank(v *service, in *instance) int {
	d, ok := t.Facts.Verdict(v.id, in.Version)
	switch {
	case in.Version != v.target.Version && !in.ready && !(ok && d.Good):
		return 0
	case !in.ready:
		return 1
	}
	return 2
}

// compareAge puts old versions before surplus of the target, and older ones first.
func (t *Pass) compareAge(v *service, a, b *instance) int {
	at, bt := a.Version == v.target.Version, b.Version == v.target.Version
	if at != bt {
		if bt {
			return -1
		}
		return 1
	}
	if at {
		return cmp.Compare(b.Slot, a.Slot)
	}
	if a.Commit == b.Commit {
		return 0
	}
	return a.Created.Compare(b.Created)
}

func (t *Pass) removeSays(v *service, in *instance) string {
	if in.Version == v.target.Version {
		return say("replicas %d", v.target.Replicas)
	}
	if v.isRestoring() {
		return say("failed version: %s", v.failed.Reason)
	}
	if in.ready {
		return say("replaced by %s", v.app.Commit.Short())
	}
	return say("replaced by %s, and not ready: %s", v.app.Commit.Short(), in.reason)
}

// otherPolicy sets the engine's restart policy to what the Compose file says, once
// the rollout is complete and the slot does not crash: a host without gitring
// comes back after a reboot.
func (t *Pass) otherPolicy(v *service, in *instance) outcome {
	if !v.rollout.Done && v.rollout.Baking.IsZero() || t.isBusy(string(v.id)) || !t.policyUnset(v, in) || onlyReports(v.app) && in.Policy != "no" {
		return outcome{}
	}
	want := t.enginePolicy(v, in)
	return trying(move{
		kind: movePolicy, in: in, policy: want.Name, tries: want.MaxRetries,
		why: "as the Compose file says: restart " + want.Name,
	})
}

// policyUnset reports whether an instance of the target is to have another restart policy.
func (t *Pass) policyUnset(v *service, in *instance) bool {
	if t.onCluster() || in.Version != v.target.Version || in.Kind.Ends() || !in.ready || in.intent != "" || t.providerMissing(in) {
		return false
	}
	if row, ok := t.slotRow(v, in); ok && row.Instance == in.ID && row.Crashes > 0 && !v.isFront() {
		return false
	}
	want := t.enginePolicy(v, in)
	return want.Name != "" && (in.Policy != want.Name || in.MaxRetries != want.MaxRetries)
}

// isUnguarded reports whether the restart policy of some instance is about to be set: a
// host that reboots now without gitring would not bring it back.
func (t *Pass) isUnguarded(v *service) bool {
	return v.rollout.Done && slices.ContainsFunc(v.instances, func(in *instance) bool {
		return t.policyUnset(v, in) && t.Tries[string(v.id)+" "+in.Name].Kind != ring.DoPolicy
	})
}
