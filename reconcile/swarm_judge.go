package reconcile

import (
	"cmp"
	"slices"

	"github.com/gitring/gitring/ring"
)

// judgeUpdate counts how far a cluster came with the wanted version, and gives the verdict that
// follows from what it says. It moves nothing.
func (t *decider) judgeUpdate(v *service) {
	if v.rollout.Done || v.isRestoring() || !v.waits.None() {
		return
	}
	if v.isWatched() && !t.unwatchUnproven(v) {
		t.watchTasks(v)
		return
	}
	if v.isAskedAgain() {
		return // what is seen is of the try before
	}
	row, ready := v.rollout, 0
	for _, in := range v.instances {
		if in.Version == v.want.Version && in.ready {
			ready++
		}
	}
	if ready > row.Ready {
		row.Ready, row.Progress, row.Failures = ready, t.now, 0
	}
	row.Sent = row.Sent || v.sent != nil && v.sent.Version == v.want.Version
	late := t.stuckReason(v) != "" || t.heldUp(v) || t.stopsStill(v) != "" || t.noNodeSays(v) != ""
	if late && t.now.Sub(row.Progress) >= v.want.Rollout.ProgressDeadline/10 {
		row.Progress = t.now // the time until it is mended is not the version's
	}
	if row.Again != 0 { // the spec was sent again: it is another try from here
		if row.Again, row.Progress = 0, t.now; v.failedTask() != nil {
			row.Counted = append(slices.Clone(row.Counted), beforeMark+v.failedTask().ID)
		}
		t.setFact(row)
		return
	}
	if f := v.failedTask(); f != nil && !slices.Contains(row.Counted, f.ID) {
		row.Counted = append(slices.Clone(row.Counted), f.ID)
		row.LastFailure, row.Cause, row.Code = t.now, failedSays(v.sent), ring.WhyInstanceNotReady
	}
	if !sameRow(row, v.rollout) || row.Sent != v.rollout.Sent {
		t.setFact(row)
	}
	if v.failed != nil {
		return
	}
	if why := t.updateFailure(v); !why.None() {
		t.failRollout(v, why)
		return
	}
	if why := t.neverHealthy(v); why != "" {
		t.failRollout(v, ring.Reason{Code: ring.WhyInstanceNotReady, Says: why})
		return
	}
	deadline := laterOf(row.Progress, t.Awake).Add(v.want.Rollout.ProgressDeadline)
	if t.now.Before(deadline) {
		t.wakeBy(deadline)
	} else if !t.isSettled(v) && !late {
		t.failRollout(v, ring.Reason{Code: ring.WhyInstanceNotReady, Says: t.deadlineSays(v, ready)})
	}
}

// neverHealthy is which instance of the wanted version had its whole patience, and no check of it
// passed; "" while none had. Its node says nothing by then, so that nothing is ended for that.
func (t *Pass) neverHealthy(v *service) string {
	if v.want.Spec.Cluster == nil || v.want.Spec.Cluster.Patience == 0 {
		return "" // its node ends it when the check says so
	}
	patience := patienceFrom(v.want, v.want.Spec.Cluster.Patience)
	for _, in := range v.instances {
		if in.Version != v.want.Version || in.State != ring.StateCreated || in.Health != "starting" || in.Since.IsZero() {
			continue
		}
		until := laterOf(in.Since, t.Awake).Add(patience)
		if !t.now.Before(until) {
			return say("slot %d on node %s: not healthy within %s", in.Slot, in.Node, patience)
		}
		t.wakeBy(until)
	}
	return ""
}

// beforeMark is of an instance that failed in the try before, among those counted.
const beforeMark = "before "

// isAskedAgain reports whether a person wants the version tried again that the cluster has, and
// that was not sent since.
func (v *service) isAskedAgain() bool {
	s := v.sent
	return v.rollout.Again != 0 && v.failed == nil && v.target == v.want && s != nil && s.Version == v.want.Version && s.Index == v.rollout.Again
}

// failedTask is the newest instance of the wanted version that failed; nil where none did, as far
// as the cluster remembers.
func (v *service) failedTask() *ring.FailedTask {
	if v.sent == nil || v.sent.Version != v.want.Version {
		return nil
	}
	return v.sent.Failed
}

// updateFailure is why the update to the wanted version has failed by the words of the cluster:
// it paused, it went back by itself, a node refused the first instances, or it took no spec.
func (t *Pass) updateFailure(v *service) ring.Reason {
	try, tried := t.Tries[string(v.id)]
	if tried && try.Kind == ring.DoServe && try.Version == v.want.Version && try.Permanent && !try.At.Before(v.rollout.Began) && t.stuckReason(v) == "" {
		return ring.Reason{Code: ring.WhyHostNotReady, Says: say("%s: %s", try.Cause, withHint(try))}
	}
	s := v.sent
	switch {
	case s == nil:
	case s.Version != v.want.Version && v.good != nil && v.good.Service.Version == v.want.Version:
		return ring.Reason{} // a hand took another one in the place of what was good before: it is sent once more
	case s.Version != v.want.Version && v.rollout.Sent && s.Update.RolledBack():
		return ring.Reason{Code: ring.WhyInstanceNotReady, Says: say("the swarm went back to version %s: %s", s.Version.Short(), cmp.Or(s.Says, "nobody knows why"))}
	case s.Version != v.want.Version:
	case s.Update == ring.UpdatePaused:
		return ring.Reason{Code: ring.WhyInstanceNotReady, Says: cmp.Or(failedSays(s), s.Says, "the swarm paused its update")}
	case s.Failed != nil && s.Failed.Rejected && s.Update == "" && v.good == nil && !slices.Contains(v.rollout.Counted, beforeMark+s.Failed.ID): // of the first spec no update is paused
		return ring.Reason{Code: ring.WhyInstanceNotReady, Says: failedSays(s)}
	}
	return ring.Reason{}
}

// isGoneBackFrom reports whether the cluster went back from the wanted version, which never was good:
// whoever acted as it did says that this has failed, and sends nothing where no good one is known.
func (v *service) isGoneBackFrom() bool {
	s := v.sent
	good := v.good != nil && v.good.Service.Version == v.want.Version
	return s.Update.RolledBack() && s.Previous == v.want.Version && s.Version != v.want.Version && !good
}

// watchTasks fails a version that serves, and is watched, where an instance of it failed since.
func (t *decider) watchTasks(v *service) {
	f := v.failedTask()
	if v.failed != nil || f == nil || slices.Contains(v.rollout.Counted, f.ID) {
		return
	}
	w, _ := v.watchNow()
	t.failRollout(v, ring.Reason{Code: ring.WhyInstanceNotReady, Says: say("%s, while it was %s", failedSays(v.sent), w.doing)})
}

// replacesLost reports whether a service was there, and all that it lacks is what a lost node had: the
// cluster makes that anew elsewhere, and nothing of the version failed.
func (t *Pass) replacesLost(v *service) bool {
	lost := false
	for _, in := range v.instances {
		switch {
		case t.onCluster() && t.isAway(in):
			lost = true
		case in.Version != v.want.Version || !in.ready && !in.young && in.State != ring.StateCreated:
			return false
		}
	}
	return lost && v.failedTask() == nil
}

// inheritVerdict takes the verdict that the manager before left with a service of which nothing is
// remembered here: its version would be sent once more.
func (t *decider) inheritVerdict(v *service) {
	if v.sent == nil || v.want.Version == "" || v.sent.Condemned != v.want.Version && !v.isGoneBackFrom() {
		return
	}
	if _, known := t.Facts.Rollouts[v.id]; known {
		return
	}
	if _, known := t.Facts.Verdict(v.id, v.want.Version); known {
		return
	}
	t.setFact(ring.Verdict{
		ID: v.id, Version: v.want.Version, Commit: v.want.Changed, At: t.now, Code: ring.WhyRolloutFailed,
		Reason: "it failed before another manager acted",
	})
}
