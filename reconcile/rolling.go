package reconcile

import (
	"cmp"
	"slices"

	"github.com/gitring/gitring/ring"
)

// Rolling moves a service whose versions may run side by side: computed from what is
// seen, one step at a time. The rules stand in rules.go, in order.

// failedInstance is a failed instance of the target, which goes free of budget. One that
// failed, was started again and may be serving by now is none.
func (t *Pass) failedInstance(v *service) outcome {
	if v.row.Done || v.failed != nil || !v.waits.None() {
		return outcome{}
	}
	for _, in := range v.all {
		if in.Version != v.target.Version || !in.holds() || !slices.Contains(v.row.Counted, in.ID) || !in.down || t.adopted(in) != nil {
			continue
		}
		return removing(in, "failed: "+in.reason)
	}
	return outcome{}
}

// createdInstance is what was created and not started, a step that ended half way, and
// what was kept for a restore: it is started.
func (t *Pass) createdInstance(v *service) (o outcome) {
	for _, in := range v.all {
		kept := (in.intent == intentPark || in.intent == intentAgain || in.begun() && !v.row.Done && v.failed == nil && v.waits.None()) && !in.Live()
		if in.State != ring.StateCreated && !kept || in.Version != v.target.Version || !in.holds() || in.Slot > v.target.Replicas {
			continue
		}
		if v.exclusive() && !v.mayStart(in) {
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

// unsure reports whether only a lost database knew what the target's image keeps for
// itself: until that is known, nothing is started beside another.
func (v *service) unsure() bool { return !v.target.Image.Known }

// oneMore creates one instance more when the budget allows it.
func (t *Pass) oneMore(v *service) outcome {
	d := v.target.Replicas
	up, _ := roomOf(v.knobs(), d)
	var live, held, starting int
	for _, in := range v.all {
		if in.Live() || in.State == ring.StateCreated {
			live++
		}
		if in.Version != v.target.Version || !in.holds() || in.Slot > d { // one in a slot that is not wanted any more fills none that is
			continue
		}
		held++
		if t.starting(v, in) {
			starting++
		}
		if !v.row.Done && !v.restoring() && in.down && in.Ended() && !t.rests(v, in) {
			return outcome{} // one of the target is failing
		}
	}
	parallel := max(1, v.knobs().MaxParallel)
	slot := t.freeSlot(v)
	if slot == 0 || min(d+up-live, d-held, parallel-starting) <= 0 {
		return outcome{}
	}
	if why := t.short(v); why != "" {
		return outcome{then: note, reason: ring.Reason{Code: ring.WhyHostNotReady, Says: why}}
	}
	return outcome{then: try, clears: true, move: move{kind: moveCreate, slot: slot, start: true, why: t.createSays(v, slot)}}
}

// starting says that an instance of the target is on its way to ready, and takes a
// place of max_parallel. Where no rollout judges it that has an end: a slot that
// crashes, or that was not ready in time, does not keep others empty.
func (t *Pass) starting(v *service, in *inst) bool {
	if in.ready || t.rests(v, in) {
		return false
	}
	if !v.row.Done && v.target == v.want {
		return true
	}
	if v.row.Done && in.Ended() {
		return false
	}
	until := latest(t.readSince(v, in), t.Awake).Add(patience(v.target))
	if !t.now.Before(until) {
		return false
	}
	t.wake(until)
	return true
}

func (t *Pass) createSays(v *service, slot int) string {
	switch {
	case v.restoring():
		return say("restore %s: %s", v.good.Commit.Short(), v.failed.Reason)
	case !v.waits.None():
		return "keep the last good version: " + v.waits.Says
	case v.row.Done:
		return say("slot %d is empty", slot)
	}
	return t.why(v)
}

// oneNotWanted removes one instance that is not wanted, if the floor allows it.
func (t *Pass) oneNotWanted(v *service) outcome {
	var gone []*inst
	for _, in := range v.all {
		if !in.holds() {
			continue
		}
		if in.Version != v.target.Version || in.Slot > v.target.Replicas && t.mayLower(v) {
			gone = append(gone, in)
		}
	}
	return t.firstToGo(v, gone)
}

// sortGone is the order in which instances go.
func (t *Pass) sortGone(v *service, gone []*inst) {
	slices.SortStableFunc(gone, func(a, b *inst) int {
		return cmp.Or(cmp.Compare(t.rank(v, a), t.rank(v, b)), t.age(v, a, b), cmp.Compare(b.Slot, a.Slot))
	})
}

// spare says that the floor holds without in: ready instances may not fall
// below replicas - max_unavailable by our own act. What is known not to serve
// costs nothing; what is not known may be serving.
func (v *service) spare(in *inst) bool {
	if in.down || in.State == ring.StateCreated {
		return true
	}
	d := v.target.Replicas
	_, unavailable := roomOf(v.knobs(), d)
	left := 0
	for _, x := range v.all {
		if x != in && (x.ready || x.rests && x.Version == v.target.Version) && x.holds() {
			left++
		}
	}
	return left >= d-unavailable
}

// rank is the order of removal: what never became ready and is superseded,
// what does not serve, then the rest.
func (t *Pass) rank(v *service, in *inst) int {
	d, ok := t.Facts.Verdict(v.id, in.Version)
	switch {
	case in.Version != v.target.Version && !in.ready && !(ok && d.Good):
		return 0
	case !in.ready:
		return 1
	}
	return 2
}

// age puts old versions before surplus of the target, and older ones first.
func (t *Pass) age(v *service, a, b *inst) int {
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

func (t *Pass) removeSays(v *service, in *inst) string {
	if in.Version == v.target.Version {
		return say("replicas %d", v.target.Replicas)
	}
	if v.restoring() {
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
func (t *Pass) otherPolicy(v *service, in *inst) outcome {
	if !v.row.Done && v.row.Baking.IsZero() || t.busy(string(v.id)) || !t.unset(v, in) || reports(v.app) && in.Policy != "no" {
		return outcome{}
	}
	want := t.enginePolicy(v, in)
	return trying(move{
		kind: movePolicy, in: in, policy: want.Name, tries: want.MaxRetries,
		why: "as the Compose file says: restart " + want.Name,
	})
}

// unset says that an instance of the target is to have another restart policy.
func (t *Pass) unset(v *service, in *inst) bool {
	if in.Version != v.target.Version || !in.ready || in.intent != "" || t.apart(in) {
		return false
	}
	if row, ok := t.slot(v, in); ok && row.Instance == in.ID && row.Crashes > 0 {
		return false
	}
	want := t.enginePolicy(v, in)
	return want.Name != "" && (in.Policy != want.Name || in.MaxRetries != want.MaxRetries)
}

// unguarded says that the restart policy of some instance is about to be set: a
// host that reboots now without gitring would not bring it back.
func (t *Pass) unguarded(v *service) bool {
	return v.row.Done && slices.ContainsFunc(v.all, func(in *inst) bool {
		return t.unset(v, in) && t.Tries[string(v.id)+" "+in.Name].Kind != ring.DoPolicy
	})
}
