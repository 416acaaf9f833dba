package reconcile

import "github.com/gitring/gitring/ring"

// A front whose version changes with that of its service moves with it: once the first new
// instance is ready, and back where the service goes back. Its ports and labels are then those
// of what serves.

// frontKeeps is why a front stays as it was good, or goes back to that.
func (t *Pass) frontKeeps(v *service) ring.Reason {
	b := t.serviceBehind(v)
	if b == nil || v.stands || v.good == nil || v.good.Service.Version == v.want.Version || b.good == nil || b.good.Service.Route == nil {
		return ring.Reason{}
	}
	why := ring.Reason{Code: ring.WhyDependencyNotReady, On: b.id}
	switch {
	case b.isRestoring() && (b.countGreen(b.target.Version) > 0 || b.countGreen(b.want.Version) == 0):
		why.Says = say("goes back with %s: %s", b.want.Name, b.failed.Reason)
	case b.isRestoring(), v.rollout.Version == v.want.Version, b.good.Service.Version == b.want.Version, b.rollout.Done && b.rollout.Version == b.want.Version:
		return ring.Reason{}
	case b.inSteps() || b.countGreen(b.want.Version) < b.firstGreen():
		why.Says = say("waits for a new instance of %s to be ready", b.want.Name)
	default:
		return ring.Reason{}
	}
	return why
}

// countGreen is how many instances of a version would serve.
func (v *service) countGreen(version ring.Version) (n int) {
	for _, in := range v.instances {
		if in.Version == version && in.State == ring.StateRunning && (in.fit || in.young) {
			n++
		}
	}
	return n
}

// firstGreen is how many new instances have to be ready before the front may change: one, or
// the whole set where that comes as a whole.
func (v *service) firstGreen() int {
	if strategyOf(v).secondSet {
		return v.want.Replicas
	}
	return min(1, v.want.Replicas)
}

// leaveFrontTrial ends the rollout of a front that goes back with its service: where its
// version is wanted again it begins anew.
func (t *decider) leaveFrontTrial(v *service) {
	b := t.serviceBehind(v)
	if b == nil || !b.isRestoring() || v.waits.None() || v.good == nil || v.rollout.Version != v.want.Version || v.good.Service.Version == v.want.Version {
		return
	}
	row := v.rollout
	row.Version, row.Commit, row.Done = v.good.Service.Version, v.good.Commit, true
	t.setFact(row)
	t.addEvent(ring.Event{
		Kind: ring.RolloutRestored, Source: v.app.Source, App: v.app.Name, Service: v.want.Name,
		Version: v.want.Version, Commit: v.app.Commit, Reason: v.waits.Says,
	})
}

// isGoingBack reports whether a front is on its way back with its service.
func (t *Pass) isGoingBack(v *service) bool {
	b := t.serviceBehind(v)
	return b != nil && b.isRestoring() && v.target != v.want && (!b.rollout.Done || !t.isSettled(v))
}

// mayGoBack reports whether a front serves whose service may still fail, and take it back.
func (t *Pass) mayGoBack(v *service) bool {
	b := t.serviceBehind(v)
	if b == nil || b.good == nil || b.good.Service.Route == nil { // it would be back without a front
		return false
	}
	return v.target == v.want && !v.rollout.Done && v.good != nil && v.good.Service.Version != v.want.Version &&
		(b.isRestoring() || b.failed == nil && b.wouldRestore() && !(b.rollout.Done && b.rollout.Version == b.want.Version))
}

// isBackForGood reports whether a front went back with its service, and that is restored.
func (t *Pass) isBackForGood(v *service) bool {
	b := t.serviceBehind(v)
	return b != nil && b.isRestoring() && v.target != v.want && !t.isGoingBack(v)
}
