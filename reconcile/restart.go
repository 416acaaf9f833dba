package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// interruptedInstance starts again what ended with the engine, or with what it was tied to.
func (t *Pass) interruptedInstance(v *service, in *instance) outcome {
	why := ""
	switch {
	case in.Kind.Ends() || !in.Ended(): // of a service that was a job: a run is never begun twice
		return outcome{}
	case in.intent == intentAgain && (v.rollout.Done || !v.waits.None() && v.good == nil):
		why = "it ended with the engine"
	case in.intent == intentRejoin:
		why = "back to what it is tied to"
	default:
		return outcome{}
	}
	switch over, unsure := t.isObsolete(v, in); {
	case unsure:
		return pulling()
	case over:
		return outcome{}
	}
	return trying(move{kind: moveStart, in: in, why: why})
}

// mayHeal reports whether what becomes of an instance is for the restart rules to say: it
// is no run, nothing else is meant with it, and its first start is not the rollout's.
func (t *Pass) mayHeal(v *service, in *instance) bool {
	if in.Kind.Ends() || in.intent != "" && in.intent != intentHooks {
		return false
	}
	return in.State != ring.StateCreated || v.failed != nil
}

// endedInstance starts a crashed instance again, once its backoff is over.
func (t *Pass) endedInstance(v *service, in *instance) outcome {
	if !in.Ended() || !t.mayHeal(v, in) {
		return outcome{}
	}
	switch over, unsure := t.isObsolete(v, in); {
	case unsure:
		return pulling()
	case over:
		return outcome{}
	}
	if says := t.byHand(v, in); says != "" && v.rollout.Done { // no crash, and no backoff
		if onlyReports(v.app) {
			return outcome{}
		}
		return trying(move{kind: moveStart, in: in, why: says})
	}
	o := outcome{then: try}
	row, crash, before := t.countCrash(v, in)
	if crash != nil {
		o.facts = append(o.facts, row)
		if crash.Crashes > 0 {
			o.add(move{kind: moveRecord, in: in, crash: crash, since: before})
		}
	}
	switch {
	case row.Stopped:
		o.then = note
	case t.now.Before(row.Next):
		t.wakeBy(row.Next)
		o.then = note
	default:
		o.add(move{kind: moveStartAgain, in: in, why: say("%s; restart %d", in.reason, row.Crashes)})
	}
	return o
}

// isObsolete reports whether an ended instance is on its way out, so that starting it
// again would be against the plan, or beside another that holds what it needs. Unsure is
// whether that is so only until the target's image was looked at.
func (t *Pass) isObsolete(v *service, in *instance) (over, unsure bool) {
	blocked := !v.mayStart(in)
	switch {
	case in.Version == v.target.Version:
		underway := !v.rollout.Done && !v.isRestoring() && v.waits.None() && v.failed == nil && v.pausedBy.None()
		if underway || blocked && v.isExclusive() {
			return true, false
		}
		return blocked && v.imageUnknown(), blocked && v.imageUnknown()
	case v.isRestoring() && in.Version == v.want.Version:
		return true, false
	case blocked && v.imageUnknown():
		return true, true
	case v.isExclusive():
		return v.inSlot(in.Slot) != nil || blocked, false
	}
	return slices.ContainsFunc(v.instances, func(x *instance) bool {
		return x.Live() && x.Version != in.Version && x.Version != v.target.Version
	}), false
}

// countCrash counts the exit of an instance once, and says when to try again. A crash that is
// new is not nil; one that is none by its restart policy has no number. Before is when the
// run before it ended.
func (t *Pass) countCrash(v *service, in *instance) (row ring.SlotRow, crash *ring.Crash, before time.Time) {
	key := in.inSlot(v.id)
	row, ok := t.Facts.Slots[key]
	if ok && row.Instance == in.ID && row.Finished.Equal(in.Finished) {
		return row, nil, before
	}
	// The engine's two times may lie on either side of a jump of the clock; the
	// last crash, by our own, bounds the run that followed it.
	window := v.stableWindowOf(in)
	stable := in.Finished.Sub(in.Started) >= window && t.now.Sub(row.Last) >= window
	if row.Instance == in.ID {
		before = row.Finished
	}
	row = t.takeOver(v, in, row)
	if stable {
		row = ring.SlotRow{ID: v.id, Slot: in.Slot, Version: in.Version, Instance: in.ID}
	}
	c := endedCrash(in)
	row.Finished, row.ExitCode, row.OOM, row.Last, row.Class = in.Finished, in.ExitCode, in.OOM, t.now, c.Class
	row.Restarts = in.Restarts
	if t.ownerPolicy(v, in) == ring.NeverStop || in.ExitCode == 0 && t.ownerPolicy(v, in) == ring.OnFail {
		row.Stopped = true
		return row, &ring.Crash{}, before
	}
	row.Crashes++
	if n := v.target.Restart.MaxRetries; n > 0 && row.Crashes > n {
		row.Stopped = true
	}
	row.Next = t.now.Add(v.restartPause(in, key, row.Crashes))
	if c.Class == classPermanent {
		row.Next = t.now.Add(permanentWait)
	}
	c.Crashes = row.Crashes
	return row, &c, before
}

// takeOver is the row of a slot as one about in. Somebody may have removed the
// container that crashed: what takes its place goes on with its backoff.
func (t *Pass) takeOver(v *service, in *instance, row ring.SlotRow) ring.SlotRow {
	switch {
	case row.Instance == in.ID:
	case row.Instance != "" && t.now.Sub(row.Last) < v.stableWindowOf(in):
		row.Instance, row.Restarts, row.Stopped, row.Finished = in.ID, 0, false, time.Time{}
	default:
		row = ring.SlotRow{ID: v.id, Slot: in.Slot, Version: in.Version, Instance: in.ID}
	}
	return row
}

// engineRestarted counts restarts that the engine made by itself, and takes
// the backoff over: from the first crash until the slot was stable again.
func (t *Pass) engineRestarted(v *service, in *instance) (o outcome) {
	if !t.mayHeal(v, in) {
		return o
	}
	row, _ := t.slotRow(v, in)
	if row.Instance == in.ID && in.Restarts < row.Restarts { // the engine counts from 0 again after a start of ours
		row.Restarts = in.Restarts
		o = noting(row)
	}
	seen := 0
	if row.Instance == in.ID {
		seen = row.Restarts
	}
	if in.Restarts > seen {
		row = t.takeOver(v, in, row)
		before := row.Crashes
		row.Crashes += in.Restarts - seen
		c := ring.Crash{ExitCode: in.ExitCode, OOM: in.OOM, Class: classOf(in.Instance), Uptime: ranBefore(in.Instance), Reason: restartedByEngine, Crashes: row.Crashes}
		if before < loopCrashes && row.Crashes > loopCrashes {
			c.Crashes = loopCrashes // several at once: told all the same
		}
		row.Restarts, row.ExitCode, row.OOM, row.Last, row.Class = in.Restarts, in.ExitCode, in.OOM, t.now, c.Class
		o = noting(append([]ring.Fact{row}, t.namespacesLost(in)...)...)
		o.add(move{kind: moveRecord, in: in, crash: &c})
	}
	if row.Instance != in.ID || row.Crashes == 0 || in.Policy == "no" || in.Policy == "" || in.Ended() {
		return o // one that ended is started first: both failing in turns would wait for neither
	}
	if v.isFront() {
		return o // the host's ports come back with it, also where gitring does not
	}
	o.then = try
	o.add(move{kind: movePolicy, in: in, policy: noRestart, why: "it crashed: restarts are gitring's until it is stable"})
	return o
}

// engineEnded takes what ended with the engine itself, or with the host, for
// nobody's crash: the class is operator. What the engine brought back by itself
// keeps its restart policy, so that the next reboot finds it; what it did not is
// started again. An exit of that moment that was counted already is taken back:
// under a restart policy the engine had started it again if it were a crash.
func (t *Pass) engineEnded(v *service) outcome {
	was := v.rollout.Engine
	if !v.rollout.Done || t.Seen.Engine == "" || was == t.Seen.Engine {
		return outcome{}
	}
	row := v.rollout
	row.Engine = t.Seen.Engine
	o := noting(row)
	if was == "" {
		return o
	}
	for _, in := range v.instances {
		if !in.holdsSlot() || in.intent != "" {
			continue
		}
		row, ok := t.slotRow(v, in)
		counted := ok && row.Instance == in.ID && row.Finished.Equal(in.Finished) && !in.Finished.IsZero()
		switch {
		case counted && in.Policy != "no" && in.Policy != "":
			o.facts = append(o.facts, uncountedCrash(row))
		case !counted && in.Ended() && !in.rests:
			o.facts = append(o.facts, ring.Intent{Instance: in.ID, Kind: intentAgain, Reason: "it ended with the engine", At: t.now})
		}
	}
	return o
}

// uncountedCrash is what is remembered of a slot without its last crash.
func uncountedCrash(row ring.SlotRow) ring.Fact {
	row.Crashes = max(0, row.Crashes-1)
	row.Class, row.Next = classOperator, time.Time{}
	if row.Crashes == 0 && row.Restarts == 0 {
		return ring.Forget{Table: "slot", Key: ring.SlotKey(row.ID, row.Slot, row.Version)}
	}
	return row
}

// stableInstance forgets the crashes of a slot that has run for a stable window.
func (t *Pass) stableInstance(v *service, in *instance) outcome {
	if in.State != ring.StateRunning || !t.mayHeal(v, in) {
		return outcome{}
	}
	row, ok := t.slotRow(v, in)
	if !ok || row.Instance != in.ID {
		return outcome{}
	}
	stable := in.Since.Add(v.stableWindowOf(in))
	switch {
	case t.now.Before(stable):
		t.wakeBy(stable)
	case row.Restarts > 0 && row.Crashes > 0:
		row.Crashes = 0 // keep the engine's count, so that it is not read as new crashes
		return noting(row)
	case row.Crashes > 0 || row.Restarts == 0:
		return noting(ring.Forget{Table: "slot", Key: in.inSlot(v.id)})
	}
	return outcome{}
}

// unliveInstance restarts an instance whose liveness check failed: inside the
// backoff, and never more slots at once than the rollout may take.
func (t *Pass) unliveInstance(v *service, in *instance) outcome {
	if in.unlive == "" || in.State != ring.StateRunning || !v.rollout.Done || !t.mayHeal(v, in) {
		return outcome{}
	}
	key := in.inSlot(v.id)
	row, _ := t.slotRow(v, in)
	if row.Instance != in.ID {
		row = t.takeOver(v, in, row)
		row.Restarts = in.Restarts
	}
	if t.now.Before(row.Next) {
		t.wakeBy(row.Next)
		return outcome{}
	}
	_, down := roomOf(v.settingsNow(), v.target.Replicas)
	away := 0
	for _, other := range v.instances {
		if other != in && other.holdsSlot() && !other.ready {
			away++
		}
	}
	if away >= max(1, down) {
		return outcome{}
	}
	why := "liveness: " + in.unlive
	if in.act == "stop" && in.Policy != "no" && in.Policy != "" { // or a reboot would bring it back
		return trying(move{kind: movePolicy, in: in, policy: noRestart, why: "it is about to stop: " + why})
	}
	if in.act == "stop" && t.tiedUp(in) {
		return outcome{then: stop, move: move{kind: moveUntie, in: in, why: why}}
	}
	row.Crashes++
	row.Last, row.Class = t.now, classTransient
	row.Next = t.now.Add(max(v.firstPause(in), v.restartPause(in, key, row.Crashes)))
	row.Stopped = row.Stopped || in.act == "stop"
	meant, kind := intentRestart, moveRestart
	if in.act == "stop" {
		meant, kind = intentStop, moveStop
	}
	c := aliveCrash(t, in, why, row.Crashes)
	return outcome{
		then:  try,
		facts: append(t.startedForSilence(v, in), row, ring.Intent{Instance: in.ID, Kind: meant, Reason: why, At: t.now}),
		move:  move{kind: moveRecord, in: in, crash: &c},
		more:  t.movesOnceOut(v, in, move{kind: kind, in: in, why: why}),
	}
}

// movesOnceOut is a move that stops an instance, or none where its front has to let go of it
// first: the intent sees it through.
func (t *Pass) movesOnceOut(v *service, in *instance, m move) []move {
	if !t.isOut(v, in) {
		return nil
	}
	return []move{m}
}
