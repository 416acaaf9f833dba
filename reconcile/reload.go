package reconcile

import (
	"cmp"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Files that a service reloads in place are no part of its version: a change of
// them is a rollout without new instances. One instance after the other takes the
// new content over, each has to stay ready for as long as its checks need to say
// otherwise, and one that does not fails the content: what was good is brought
// back to all that had it. Content that failed is not tried again, as a version
// that failed is not.

// useGoodFiles has a service go on with the content that was good, where what the plan
// wants failed. Every rule after it sees the service so.
func (t *Pass) useGoodFiles(v *service) {
	if v.want.Reload == nil || v.good == nil || v.good.Service.Reload == nil || v.good.Service.Version != v.want.Version {
		return
	}
	wanted := v.want.LiveVersion()
	d, ok := t.Facts.Verdicts[ring.VersionKey(v.id, wanted)]
	if !ok || d.Good || wanted == v.good.Service.LiveVersion() {
		return
	}
	want := *v.want
	want.Reload = v.good.Service.Reload
	if v.target == v.want {
		v.target = &want
	}
	v.want, v.filesFailed = &want, &d
}

// retryRenewed tries a version again whose files are other ones than those it failed
// with: they are what it runs, though not in its version.
func (t *decider) retryRenewed(v *service) {
	d, ok := t.Facts.Verdict(v.id, v.want.Version)
	if !ok || d.Good || v.want.Reload == nil || d.Live == "" || d.Live == v.want.LiveVersion() {
		return
	}
	t.takeBack(v)
	if v.rollout.Version == v.want.Version {
		row := v.rollout
		row.Version = "" // begun anew
		t.setFact(row)
	}
	for _, in := range v.instances {
		if in.Version == v.want.Version && in.Ended() && in.intent == "" { // its end says nothing of the new files
			t.setFact(ring.Intent{Instance: in.ID, Kind: intentRemove, Reason: "there are other files to read", At: t.now})
		}
	}
}

// hasStaleFiles reports whether an instance of the wanted version runs with files that are not
// the wanted ones: how it fares says nothing of those.
func (t *Pass) hasStaleFiles(v *service, in *instance) bool {
	if v.want.Reload == nil || !in.Live() {
		return false
	}
	row, ok := t.Facts.Loads[in.ID]
	return ok && !row.Has(v.want.Reload)
}

// readSince is since when an instance runs with what it runs with now.
func (t *Pass) readSince(v *service, in *instance) time.Time {
	if row, ok := t.Facts.Loads[in.ID]; ok && v.want.Reload != nil && in.Version == v.want.Version && row.At.After(in.Since) {
		return row.At
	}
	return in.Since
}

// causeOf is what the engine's error means; "" where that is not known.
func causeOf(err error) string {
	var ee *ring.EngineError
	if errors.As(err, &ee) {
		return ee.Cause
	}
	return ""
}

// onTrial reports whether instances of v are taking over content that was not good yet.
func (t *Pass) onTrial(v *service) bool {
	return v.rollout.Done && v.target == v.want && v.failed == nil && v.want.Reload != nil &&
		v.good != nil && v.good.Service.Version == v.want.Version && !maps.Equal(v.good.Service.Reload.Content(), v.want.Reload.Live)
}

// tookFiles reports whether an instance of the target runs with what the target reloads,
// and has shown for long enough that it serves so.
func (t *Pass) tookFiles(v *service, in *instance) bool {
	if v.target.Reload == nil || in.Version != v.target.Version || !in.Live() {
		return true
	}
	row, ok := t.Facts.Loads[in.ID]
	return ok && row.Has(v.target.Reload) && !t.isProving(v, in, row)
}

// isProving reports whether an instance took new content over and has not shown for long
// enough that it serves with it.
func (t *Pass) isProving(v *service, in *instance, row ring.Loaded) bool {
	if !t.onTrial(v) {
		return false
	}
	until := row.At.Add(proofTime(v.want))
	t.wakeBy(until)
	return t.now.Before(until) || !in.ready
}

// proofTime is how long an instance is watched after a reload: until checks that
// began to fail at that moment would have said so.
func proofTime(s *ring.Service) time.Duration {
	longest := s.Rollout.MinReadyTime
	for _, c := range s.Checks {
		interval, failures, timeout := c.Interval, c.Failures, c.Timeout
		if h := s.Spec.Healthcheck; c.Docker && h != nil { // the engine's own times, and its defaults
			interval, failures, timeout = cmp.Or(h.Interval, 30*time.Second), cmp.Or(h.Retries, 3), cmp.Or(h.Timeout, 30*time.Second)
		}
		if c.For == ring.Readiness {
			longest = max(longest, interval*time.Duration(failures)+timeout)
		}
	}
	return longest
}

// tryContent gives the verdict on what v reloads in place; it moves nothing.
func (t *decider) tryContent(v *service) {
	if v.want.Reload == nil || v.target != v.want || !v.waits.None() || v.failed != nil {
		return
	}
	if t.onTrial(v) && t.excuseEngineEnds(v) {
		return
	}
	for _, in := range v.instances {
		if in.Version != v.want.Version || !in.holdsSlot() {
			continue
		}
		if why := t.rejectedReason(v, in); why != "" {
			t.failFiles(v, say("slot %d %s", in.Slot, why))
			return
		}
	}
}

// rejectedReason is why an instance shows that the new content is bad; "" when it does not.
func (t *Pass) rejectedReason(v *service, in *instance) string {
	trial := t.onTrial(v)
	try := t.Tries[string(v.id)+" "+in.Name]
	if (trial || !v.rollout.Done) && try.Kind == ring.DoReload && try.Cause == ring.CauseReload && try.Version == v.want.LiveVersion() {
		return "did not take over " + v.changedFiles(nil) + ": " + strings.TrimPrefix(try.Err, "cannot reload: ")
	}
	row, ok := t.Facts.Loads[in.ID]
	if !trial || !ok || !row.Has(v.want.Reload) || in.intent != "" {
		return "" // a rollout under way has its own account of what is not ready
	}
	after := " after it took over " + v.changedFiles(nil)
	switch {
	case in.Ended() && !t.isResting(v, in):
		return in.reason + after
	case in.State == ring.StateRestarting || in.Live() && t.backByItself(v, in):
		return "was restarted by the engine" + after + ": " + exitSays(in.Instance)
	case in.unlive != "" && in.Live():
		return in.unlive + after
	case !in.down || !in.Live():
		return ""
	case row.Ready && !in.Since.After(row.At):
		return "is not ready any more" + after + ": " + in.reason
	}
	limit := patienceOf(v.want)
	until := laterOf(t.readSince(v, in), t.Awake).Add(limit) // it may have been started since, as by a reboot
	if t.now.Before(until) {
		t.wakeBy(until)
		return ""
	}
	return say("not ready within %s%s: %s", limit, after, in.reason)
}

// failFiles fails the content, or the rollout under way that it is part of. Whatever
// on_failure says, what was good comes back: nothing is gained by half of it.
func (t *decider) failFiles(v *service, why string) {
	if !v.rollout.Done {
		t.failRollout(v, ring.Reason{Code: ring.WhyReloadFailed, Says: why})
		return
	}
	version := v.want.LiveVersion()
	t.setFact(ring.Verdict{ID: v.id, Version: version, Commit: v.app.Commit, Reason: why, Code: ring.WhyReloadFailed, At: t.now})
	t.addEvent(ring.Event{
		Kind: ring.RolloutFailed, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: version, Commit: v.app.Commit,
		Reason: why, Code: ring.WhyReloadFailed,
	})
	t.useGoodFiles(v)
}

// changedFiles names the files of the target that were not there before, or differ.
func (v *service) changedFiles(was map[string]string) string {
	if was == nil && v.good != nil {
		was = v.good.Service.Reload.Content()
	}
	differ := ring.LiveDiffers(was, v.target.Reload.Content())
	if len(differ) == 0 {
		return "its files"
	}
	return "the files of " + strings.Join(differ, ", ")
}

// staleFiles has one instance more take the wanted content over. What does not serve
// comes first: it has nothing to lose.
func (t *Pass) staleFiles(v *service) outcome {
	if v.target.Reload == nil || !v.pausedBy.None() && t.onTrial(v) {
		return outcome{}
	}
	under := 0
	var o outcome
	for _, ready := range []bool{false, true} {
		for _, in := range v.instances {
			if in.ready != ready || in.Version != v.target.Version || !in.holdsSlot() || in.State != ring.StateRunning || in.intent != "" && in.intent != intentReload {
				continue
			}
			row, ok := t.Facts.Loads[in.ID]
			switch {
			case t.refusedAlready(v, in):
			case !ok || !row.Has(v.target.Reload):
				o.then = try
				o.add(move{kind: moveReload, in: in})
			case t.isProving(v, in, row):
				under++
			}
		}
	}
	if t.onTrial(v) && under >= max(1, v.target.Rollout.MaxParallel) {
		return outcome{}
	}
	return o
}

// refusedAlready reports whether an instance did not take over what its service failed
// with, and goes on though: on_failure says continue.
func (t *Pass) refusedAlready(v *service, in *instance) bool {
	if v.failed == nil || v.isRestoring() || v.failed.Live != v.liveVersion() {
		return false
	}
	try := t.Tries[string(v.id)+" "+in.Name]
	return try.Kind == ring.DoReload && try.Cause == ring.CauseReload && try.Version == v.failed.Live
}

// loadFiles decides the reload of one instance. What is on its way is written down
// with it: a daemon that ends half way begins the step again, and what comes
// back when it fails is what was there before the first try.
func (t *decider) loadFiles(v *service, in *instance) bool {
	row, known := t.Facts.Loads[in.ID]
	why := say("%s changed: %s", v.changedFiles(row.Live), v.target.Reload.Does())
	switch {
	case v.filesFailed != nil || v.isRestoring():
		why = "bring back what was good: " + v.target.Reload.Does()
	case !known:
		why = "what it read last is not known: " + v.target.Reload.Does()
	}
	a := t.stepOn(v, ring.DoReload, in, why)
	a.Of, a.Want, a.Version = v.of, v.target, v.target.LiveVersion()
	a.Timeout = v.target.Rollout.StartTimeout + stepTimeout
	a.Back = row.Live
	if !known && t.onTrial(v) {
		a.Back = v.good.Service.Reload.Content()
	}
	a.Record = ring.Loaded{ID: v.id, Instance: in.ID, Live: v.target.Reload.Live, Ready: in.fit}
	if !t.takeOut(v, in, a) {
		return in.intent == intentReload // it is on its way out of its front
	}
	if !t.addStep(a) {
		return false
	}
	t.setFact(ring.Loaded{ID: v.id, Instance: in.ID, Live: row.Live, Next: v.target.Reload.Live, Ready: in.fit, At: row.At})
	return true
}

// filesRead are what an instance has read once a step on it ended: what lay there
// when it started, or what it took over; and after a reload that failed, what
// came back.
func filesRead(a ring.Action, done ring.Done, err error, now time.Time) []ring.Fact {
	if a.Want == nil || a.Want.Reload == nil {
		return nil
	}
	id := cmp.Or(a.Instance, done.Instance)
	row := ring.Loaded{ID: ring.ID(a.App, a.Service), Instance: id, Live: a.Want.Reload.Live, At: now}
	switch a.Kind {
	case ring.DoCreate, ring.DoStart, ring.DoRestart:
		if err != nil || id == "" {
			return nil
		}
	case ring.DoReload:
		if err != nil {
			if row.Live = a.Back; causeOf(err) != ring.CauseReload || a.Back == nil {
				return nil
			}
			return []ring.Fact{row}
		}
		row.Ready = a.Record.(ring.Loaded).Ready
	default:
		return nil
	}
	return []ring.Fact{row}
}

// tellReloaded tells that every instance took the new content over, once.
func (t *decider) tellReloaded(v *service) {
	if !t.onTrial(v) {
		return
	}
	t.addEvent(ring.Event{
		Kind: ring.RolloutCompleted, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.want.LiveVersion(),
		Commit: v.app.Commit, Reason: say("%d/%d reloaded in place", v.target.Replicas, v.target.Replicas),
	})
}

// loadingSays says how far the instances have come in taking over what the target
// reloads; "" when all have.
func (t *Pass) loadingSays(v *service) string {
	if v.target.Reload == nil {
		return ""
	}
	took, left, waits := 0, 0, ""
	for _, in := range v.instances {
		if in.Version != v.target.Version || !in.holdsSlot() {
			continue
		}
		row, ok := t.Facts.Loads[in.ID]
		switch {
		case t.tookFiles(v, in):
			took++
		case ok && row.Has(v.target.Reload):
			left++
			waits = say("; slot %d is watched until %s UTC", in.Slot, row.At.Add(proofTime(v.want)).UTC().Format("15:04:05"))
		default:
			left++
			if try := t.Tries[string(v.id)+" "+in.Name]; try.Kind == ring.DoReload {
				waits = "; " + withHint(try)
			}
		}
	}
	if left == 0 {
		return ""
	}
	return say("reloading in place, %d of %d done%s", took, took+left, waits)
}

// livePhase is the phase of a service that reloads, or whose content failed; ""
// where nothing of the kind is to be told.
func (t *Pass) livePhase(v *service) (ring.Phase, ring.Reason) {
	says := t.loadingSays(v)
	switch {
	case !v.pausedBy.None() && says != "" && t.onTrial(v):
		return ring.PhaseHeld, v.pausedBy.After(says)
	case v.filesFailed != nil && t.comingBack(v):
		return ring.PhaseProgressing, ring.Reason{
			Code: ring.WhyReloadFailed, Says: say("bringing back the files of %s: %s", v.good.Commit.Short(), v.filesFailed.Reason),
		}
	case v.filesFailed != nil && t.isSettled(v):
		return ring.PhaseReady, ring.Reason{
			Code: ring.WhyReloadFailed, Says: say("kept the files of %s: %s", v.good.Commit.Short(), v.filesFailed.Reason),
		}
	case says != "" && v.rollout.Done:
		return ring.PhaseProgressing, ring.Reason{Says: says}
	}
	return "", ring.Reason{}
}

// comingBack reports whether not every instance serves with the files that were good
// again, and that they may yet.
func (t *Pass) comingBack(v *service) bool {
	if t.loadingSays(v) != "" {
		return true
	}
	for _, in := range v.instances {
		row := t.Facts.Loads[in.ID]
		until := row.At.Add(patienceOf(v.want))
		if in.Version == v.want.Version && in.holdsSlot() && !in.ready && row.At.After(v.filesFailed.At) && t.now.Before(until) {
			t.wakeBy(until)
			return true
		}
	}
	return false
}

// liveRollout is the rollout of what is reloaded in place; nil when there is none.
func (t *Pass) liveRollout(v *service) *ring.RolloutStatus {
	switch {
	case v.filesFailed != nil:
		st := &ring.RolloutStatus{Phase: ring.RolloutIsRestored, Version: v.filesFailed.Version, Commit: v.filesFailed.Commit, Reason: v.filesFailed.Reason, Code: ring.WhyReloadFailed}
		if t.comingBack(v) {
			st.Phase = ring.RolloutRestoring
		}
		return st
	case t.onTrial(v) && !v.pausedBy.None():
		return &ring.RolloutStatus{Phase: ring.RolloutPaused, Version: v.want.LiveVersion(), Commit: v.app.Commit, Reason: v.pausedBy.Says, Code: v.pausedBy.Code}
	case t.onTrial(v):
		return &ring.RolloutStatus{Phase: ring.RolloutProgressing, Version: v.want.LiveVersion(), Commit: v.app.Commit, Reason: v.changedFiles(nil) + " changed"}
	}
	return nil
}
