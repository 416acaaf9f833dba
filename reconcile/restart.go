package reconcile

import (
	"cmp"
	"hash/fnv"
	"time"

	"github.com/gitring/gitring/ring"
)

// Restarts of ROLLOUT.md section 4.
const (
	firstBackoff  = 10 * time.Second // before the second restart; doubles
	maxBackoff    = 5 * time.Minute
	stableWindow  = 10 * time.Minute // a run this long forgives earlier crashes
	permanentWait = 10 * time.Minute // between tries of what cannot start
	loopCrashes   = 5                // from here it is told as CrashLooping
)

// heal keeps alive what should run: a crashed instance starts again, with its
// own spec, inside its backoff. It says whether a step was decided.
func (t *decider) heal(v *service) bool {
	t.engineEnded(v)
	for _, in := range v.all {
		if in.Kind.Ends() { // of a service that was a job: a run is never begun twice
			continue
		}
		if in.intent == intentAgain && in.Ended() && (v.row.Done || !v.waits.None() && v.good == nil) && !t.obsolete(v, in) {
			if t.start(v, in, "it ended with the engine") {
				return true
			}
			continue
		}
		if in.intent == intentRejoin && in.Ended() && !t.obsolete(v, in) { // it ended with what it was tied to
			if t.start(v, in, "back to what it is tied to") {
				return true
			}
			continue
		}
		if in.intent != "" && in.intent != intentHooks || in.State == ring.StateCreated && v.failed == nil {
			continue
		}
		if t.engineRestarted(v, in) || t.restartUnlive(v, in) {
			return true
		}
		if !in.Ended() {
			t.forgive(v, in)
			continue
		}
		if t.obsolete(v, in) {
			continue
		}
		if says := t.byHand(v, in); says != "" && v.row.Done { // no crash, and no backoff
			if !reports(v.app) && t.start(v, in, says) {
				return true
			}
			continue
		}
		row, changed := t.crash(v, in)
		if changed {
			t.set(row)
		}
		if row.Stopped {
			continue
		}
		if t.now.Before(row.Next) {
			t.wake(row.Next)
			continue
		}
		if t.telling(in) {
			return true
		}
		if t.start(v, in, say("%s; restart %d", in.reason, row.Crashes)) {
			return true
		}
	}
	return false
}

// obsolete says that an ended instance is on its way out, so that starting it
// again would be against the plan, or beside another that holds what it needs.
func (t *decider) obsolete(v *service, in *inst) bool {
	if in.Version == v.target.Version {
		underway := !v.row.Done && !v.restoring() && v.waits.None() && v.failed == nil && v.halt.None()
		return underway || !v.mayStart(in) && (v.exclusive() || t.unsure(v))
	}
	if v.restoring() && in.Version == v.want.Version {
		return true
	}
	if !v.mayStart(in) && t.unsure(v) {
		return true
	}
	if v.exclusive() {
		return v.inSlot(in.Slot) != nil || !v.mayStart(in)
	}
	for _, x := range v.all {
		if x.Live() && x.Version != in.Version && x.Version != v.target.Version {
			return true
		}
	}
	return false
}

// slot is the crash record of an instance's slot and version; most have none.
func (t *Pass) slot(v *service, in *inst) (ring.SlotRow, bool) {
	if len(t.Facts.Slots) == 0 {
		return ring.SlotRow{}, false
	}
	row, ok := t.Facts.Slots[in.inSlot(v.id)]
	return row, ok
}

// inSlot is the key of what is remembered of the slot of an instance of a service.
func (in *inst) inSlot(id ring.ServiceID) string {
	if in.slotKey == "" {
		in.slotKey = ring.SlotKey(id, in.Slot, in.Version)
	}
	return in.slotKey
}

// crash counts the exit of an instance once, and says when to try again.
func (t *decider) crash(v *service, in *inst) (ring.SlotRow, bool) {
	key := in.inSlot(v.id)
	row, ok := t.Facts.Slots[key]
	if ok && row.Instance == in.ID && row.Finished.Equal(in.Finished) {
		return row, false
	}
	// The engine's two times may lie on either side of a jump of the clock; the
	// last crash, by our own, bounds the run that followed it.
	window := v.window(in)
	stable := in.Finished.Sub(in.Started) >= window && t.now.Sub(row.Last) >= window
	var before time.Time
	if row.Instance == in.ID {
		before = row.Finished
	}
	row = t.takeOver(v, in, row)
	if stable {
		row = ring.SlotRow{ID: v.id, Slot: in.Slot, Version: in.Version, Instance: in.ID}
	}
	c := ended(in)
	row.Finished, row.ExitCode, row.OOM, row.Last, row.Class = in.Finished, in.ExitCode, in.OOM, t.now, c.Class
	row.Restarts = in.Restarts
	if t.ownerPolicy(v, in) == ring.NeverStop || in.ExitCode == 0 && t.ownerPolicy(v, in) == ring.OnFail {
		row.Stopped = true
		return row, true
	}
	row.Crashes++
	if n := v.target.Restart.MaxRetries; n > 0 && row.Crashes > n {
		row.Stopped = true
	}
	row.Next = t.now.Add(v.pause(in, key, row.Crashes))
	if c.Class == classPermanent {
		row.Next = t.now.Add(permanentWait)
	}
	c.Crashes = row.Crashes
	t.crashed(v, in, c, before)
	return row, true
}

// takeOver is the row of a slot as one about in. Somebody may have removed the
// container that crashed: what takes its place goes on with its backoff.
func (t *Pass) takeOver(v *service, in *inst, row ring.SlotRow) ring.SlotRow {
	switch {
	case row.Instance == in.ID:
	case row.Instance != "" && t.now.Sub(row.Last) < v.window(in):
		row.Instance, row.Restarts, row.Stopped, row.Finished = in.ID, 0, false, time.Time{}
	default:
		row = ring.SlotRow{ID: v.id, Slot: in.Slot, Version: in.Version, Instance: in.ID}
	}
	return row
}

// awaits says that a slot that is empty was given up by a crash, and waits.
func (t *Pass) awaits(v *service, slot int) bool {
	row, ok := t.Facts.Slots[ring.SlotKey(v.id, slot, v.target.Version)]
	if !ok || v.restoring() || !t.now.Before(row.Next) {
		return false
	}
	t.wake(row.Next)
	v.lacks = say("slot %d crashed %d times; next try %s", slot, row.Crashes, row.Next.UTC().Format("15:04:05"))
	return true
}

// cannotRun says that an exit code means there is nothing that could run:
// trying again as it is cannot help.
func cannotRun(code int) bool { return code == 126 || code == 127 }

// ownerPolicy is the restart policy of the version that in runs.
func (t *Pass) ownerPolicy(v *service, in *inst) string { return v.restart(in).Policy }

// rests says that an instance ended as it may, and stays so until its version
// changes.
func (t *Pass) rests(v *service, in *inst) bool {
	if !in.Ended() || in.intent != "" {
		return false
	}
	p := t.ownerPolicy(v, in)
	return p == ring.OnFail && in.ExitCode == 0 || p == ring.NeverStop && v.row.Done
}

// doneIn says that the instance of a slot ended as it may, as on_failure lets one
// that exits with 0, and that somebody removed it since, such as by docker container
// prune: the slot stays empty until its version changes.
func (t *Pass) doneIn(v *service, slot int) bool {
	if len(t.Facts.Slots) == 0 || !v.row.Done || v.target != v.want || v.want.Restart.Policy != ring.OnFail || v.inSlot(slot) != nil {
		return false
	}
	row, ok := t.Facts.Slots[ring.SlotKey(v.id, slot, v.want.Version)]
	return ok && row.Stopped && row.ExitCode == 0 && !row.OOM
}

// rested says that a slot whose container somebody removed stays empty.
func (t *Pass) rested(row ring.SlotRow) bool {
	v := t.views[row.ID]
	return v != nil && row.Version == v.want.Version && row.Slot <= v.want.Replicas && t.doneIn(v, row.Slot)
}

// engineRestarted counts restarts that the engine made by itself, and takes
// the backoff over: from the first crash until the slot was stable again.
func (t *decider) engineRestarted(v *service, in *inst) bool {
	row, _ := t.slot(v, in)
	if row.Instance == in.ID && in.Restarts < row.Restarts { // the engine counts from 0 again after a start of ours
		row.Restarts = in.Restarts
		t.set(row)
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
		t.set(row)
		t.crashed(v, in, c, time.Time{})
		t.cutOff(in)
	}
	if row.Instance != in.ID || row.Crashes == 0 || in.Policy == "no" || in.Policy == "" || in.Ended() {
		return false // one that ended is started first: both failing in turns would wait for neither
	}
	a := t.step(v, ring.DoPolicy, in, "it crashed: restarts are gitring's until it is stable")
	a.Policy = "no"
	return t.do(a)
}

// engineEnded takes what ended with the engine itself, or with the host, for
// nobody's crash: the class is operator. What the engine brought back by itself
// keeps its restart policy, so that the next reboot finds it; what it did not is
// started again. An exit of that moment that was counted already is taken back:
// under a restart policy the engine had started it again if it were a crash.
func (t *decider) engineEnded(v *service) {
	was := v.row.Engine
	if !v.row.Done || t.Seen.Engine == "" || was == t.Seen.Engine {
		return
	}
	row := v.row
	row.Engine = t.Seen.Engine
	t.set(row)
	if was == "" {
		return
	}
	for _, in := range v.all {
		if !in.holds() || in.intent != "" {
			continue
		}
		row, ok := t.slot(v, in)
		counted := ok && row.Instance == in.ID && row.Finished.Equal(in.Finished) && !in.Finished.IsZero()
		switch {
		case counted && in.Policy != "no" && in.Policy != "":
			t.uncount(row)
		case !counted && in.Ended() && !in.rests:
			t.set(ring.Intent{Instance: in.ID, Kind: intentAgain, Reason: "it ended with the engine", At: t.now})
		}
	}
}

// uncount takes the last crash of a slot back.
func (t *decider) uncount(row ring.SlotRow) {
	row.Crashes = max(0, row.Crashes-1)
	row.Class, row.Next = classOperator, time.Time{}
	if row.Crashes == 0 && row.Restarts == 0 {
		t.set(ring.Forget{Table: "slot", Key: ring.SlotKey(row.ID, row.Slot, row.Version)})
		return
	}
	t.set(row)
}

// forgive forgets the crashes of a slot that has run for a stable window.
func (t *decider) forgive(v *service, in *inst) {
	row, ok := t.slot(v, in)
	if !ok || row.Instance != in.ID || in.State != ring.StateRunning {
		return
	}
	stable := in.Since.Add(v.window(in))
	if t.now.Before(stable) {
		t.wake(stable)
		return
	}
	if row.Restarts > 0 && row.Crashes > 0 {
		row.Crashes = 0 // keep the engine's count, so that it is not read as new crashes
		t.set(row)
		return
	}
	if row.Crashes > 0 || row.Restarts == 0 {
		t.set(ring.Forget{Table: "slot", Key: in.inSlot(v.id)})
	}
}

// restartUnlive restarts an instance whose liveness check failed: inside the
// backoff, and never more slots at once than the rollout may take.
func (t *decider) restartUnlive(v *service, in *inst) bool {
	if in.unlive == "" || in.State != ring.StateRunning || !v.row.Done {
		return false
	}
	key := in.inSlot(v.id)
	row, _ := t.slot(v, in)
	if row.Instance != in.ID {
		row = t.takeOver(v, in, row)
		row.Restarts = in.Restarts
	}
	if t.now.Before(row.Next) {
		t.wake(row.Next)
		return false
	}
	_, down := v.knobs().Room(v.target.Replicas)
	away := 0
	for _, other := range v.all {
		if other != in && other.holds() && !other.ready {
			away++
		}
	}
	if away >= max(1, down) {
		return false
	}
	if in.act == "stop" && in.Policy != "no" && in.Policy != "" {
		a := t.step(v, ring.DoPolicy, in, "it is about to stop: liveness: "+in.unlive)
		a.Policy = "no" // or a reboot would bring it back
		return t.do(a)
	}
	if in.act == "stop" && t.untie(in, "liveness: "+in.unlive) {
		return true
	}
	row.Crashes++
	row.Last, row.Class = t.now, classTransient
	row.Next = t.now.Add(max(v.firstPause(in), v.pause(in, key, row.Crashes)))
	t.set(row)
	why := "liveness: " + in.unlive
	t.crashed(v, in, alive(t, in, why, row.Crashes), time.Time{})
	if in.act == "stop" {
		row.Stopped = true
		t.set(row)
		t.set(ring.Intent{Instance: in.ID, Kind: intentStop, Reason: why, At: t.now})
		return t.do(t.step(v, ring.DoStop, in, why))
	}
	t.set(ring.Intent{Instance: in.ID, Kind: intentRestart, Reason: why, At: t.now})
	return t.do(t.step(v, ring.DoRestart, in, why))
}

// restart is what follows an exit of an instance, by its own version.
func (v *service) restart(in *inst) ring.Restart {
	if v.good != nil && in.Version == v.good.Service.Version && in.Version != v.want.Version {
		return v.good.Service.Restart
	}
	return v.want.Restart
}

// window is how long a run forgives the crashes before it.
func (v *service) window(in *inst) time.Duration {
	return cmp.Or(v.restart(in).Window, stableWindow)
}

func (v *service) firstPause(in *inst) time.Duration {
	return cmp.Or(v.restart(in).Delay, firstBackoff)
}

// pause is the wait before restart n of an instance.
func (v *service) pause(in *inst, key string, n int) time.Duration {
	return backoffFrom(v.firstPause(in), key, n)
}

// backoff is the wait before restart n of a slot that says nothing of its own.
func backoff(key string, n int) time.Duration { return backoffFrom(firstBackoff, key, n) }

// backoffFrom is the wait before restart n of a slot: none, then the first one
// doubling to 5 min, with 10 % either way that depends on the slot alone.
func backoffFrom(first time.Duration, key string, n int) time.Duration {
	if n <= 1 {
		return 0
	}
	d := max(maxBackoff, first)
	if n < 20 { // beyond, it has doubled to more than any first one
		d = min(d, first<<(n-2))
	}
	h := fnv.New32a()
	h.Write([]byte(say("%s#%d", key, n)))
	return d + time.Duration(float64(d)*(float64(h.Sum32()%2001)/10000-0.1))
}
