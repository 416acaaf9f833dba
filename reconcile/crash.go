package reconcile

import (
	"cmp"
	"time"

	"github.com/gitring/gitring/ring"
)

// The classes of a crash (docs/design/rollout.md#restarts). A stop that was meant, by us or
// by the engine's own end, is of the operator: no crash, and no record.
const (
	classTransient = "transient"
	classPermanent = "permanent" // nothing in it could run: tried rarely
	classCapacity  = "capacity"  // it had no memory left
	classUnready   = "unready"   // it did not crash: it ran, and a rollout gave it up
	classOperator  = "operator"
)

// How the end of an instance's log is read.
const (
	logWithin = 5 * time.Second
	// lastWordsLate is how long after an exit the engine may still write down a
	// line of it; the next run begins later than that.
	lastWordsLate = 200 * time.Millisecond
	// firstWordsEarly is how long before the start that the engine tells it may have written
	// down the first line of a run: it takes the time once the program runs already. The run
	// before ended at least the engine's first pause of 100 ms, and a start, earlier.
	firstWordsEarly = 150 * time.Millisecond
)

// classOf is the class of an exit.
func classOf(in *ring.Instance) string {
	switch {
	case in.OOM:
		return classCapacity
	case cannotRun(in.ExitCode):
		return classPermanent
	}
	return classTransient
}

// tellCrash tells of a crash, and keeps a record of it: at once as far as it is
// known, and with the end of its log as soon as that was read. before is when the
// run before it ended, zero where there was none that is known.
func (t *decider) tellCrash(v *service, in *instance, c ring.Crash, before time.Time) {
	t.addEvent(ring.Event{
		Kind: ring.InstanceCrashed, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Slot: in.Slot,
		Version: in.Version, Commit: in.Commit, Reason: say("%s; crash %d", c.Reason, c.Crashes),
	})
	if c.Crashes == loopCrashes {
		t.addEvent(ring.Event{
			Kind: ring.AppCrashLooping, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Slot: in.Slot,
			Version: in.Version, Commit: in.Commit, Reason: say("slot %d crashed %d times without %s of rest: %s", in.Slot, c.Crashes, v.stableWindowOf(in), c.Reason),
		})
	}
	t.keepCrash(v, in, c, before)
}

// keepCrash records a crash, and reads the end of its log where what has to be
// struck out of it is known. A container has one log for all its runs: the last
// run is what was written since the one before it ended, until it is started
// again, for which heal waits.
func (t *decider) keepCrash(v *service, in *instance, c ring.Crash, before time.Time) {
	c.ID, c.Slot, c.Version, c.Commit, c.Instance, c.At = v.id, in.Slot, in.Version, in.Commit, in.ID, t.now
	c.Signature = signatureOf(c)
	a := t.stepOn(v, ring.DoLog, in, "keep its last words: "+c.Reason)
	if a.Want == nil {
		c.NotRead = "its spec is not known any more, nor what would have to be struck out of it"
	} else if t.isBusy(a.Target()) {
		c.NotRead = "the log of an earlier crash of its container was still being read"
	}
	t.setFact(c)
	if a.Want == nil {
		return
	}
	a.Record, a.Lines, a.Timeout = c, ring.CrashLogLines, logWithin
	if !before.IsZero() {
		a.From = before.Add(lastWordsLate)
	}
	if a.From.IsZero() && in.Ended() && in.Restarts > 0 { // a run before it that the engine restarted left no end of its own
		a.From = in.Started.Add(-firstWordsEarly)
	}
	a.Over = t.now.Add(lastWordsLate)
	if in.Ended() || c.Reason == restartedByEngine {
		a.Over = in.Finished.Add(lastWordsLate)
	}
	if c.Reason == restartedByEngine {
		a.To = a.Over
	}
	t.addStep(a)
}

// rereadLog reads a crash's log once more that could not be read at once. What runs in
// the container by now, heal having waited for no more than the first try, is left out.
func (t *decider) rereadLog(key string, u ring.Unread) {
	c := u.Crash
	v := t.views[c.ID]
	if v == nil || v.instanceByID(c.Instance) == nil {
		t.setFact(ring.Forget{Table: "unread", Key: key}) // gone, and its log with it
		return
	}
	a := t.stepOn(v, ring.DoLog, v.instanceByID(c.Instance), "keep its last words, once more: "+c.Reason)
	if a.Want == nil {
		t.setFact(ring.Forget{Table: "unread", Key: key})
		return
	}
	a.Record, a.Lines, a.Timeout, a.From, a.To = *c, ring.CrashLogLines, logWithin, u.From, u.Over
	t.addStep(a)
}

const restartedByEngine = "the engine restarted it"

// endedCrash is an exit as a record has it.
func endedCrash(in *instance) ring.Crash {
	c := ring.Crash{ExitCode: in.ExitCode, OOM: in.OOM, Class: classOf(in.Instance), Reason: exitSays(in.Instance)}
	c.Uptime = ranBefore(in.Instance)
	return c
}

// ranBefore is how long the run took that ended last; 0 where that is not known.
func ranBefore(in *ring.Instance) time.Duration {
	if in.RanBefore > 0 {
		return in.RanBefore
	}
	if in.Started.IsZero() { // it never ran
		return 0
	}
	return max(0, in.Finished.Sub(in.Started)) // the wall clock may have been set back meanwhile, or it runs again
}

// readsLog reports whether the last words of an instance are being read: who removes it
// now would take them away, and who starts it would add to them. It takes a
// moment, and at most logWithin. A run's are read at the next look, where a daemon
// before us did not come to that. A crash's that could not be read are tried once more
// while nobody waits.
func (t *Pass) readsLog(in *instance) bool {
	_, unread := t.Facts.Unread[in.ID]
	_, again := t.Facts.Unread[ring.Unread{Crash: &ring.Crash{Instance: in.ID}}.Key()]
	return unread || t.isBusy("log "+in.ID) && !again
}

// failedStart keeps a record of an instance that a rollout counts as failed: it
// is about to be removed, and its log with it.
func (t *decider) failedStart(v *service, in *instance, why string, n int) {
	if in.Ended() {
		c := endedCrash(in)
		c.Crashes = n
		t.keepCrash(v, in, c, time.Time{})
		return
	}
	c := aliveCrash(&t.Pass, in, why, n)
	c.Class = classUnready
	t.keepCrash(v, in, c, time.Time{})
}

// aliveCrash is the record of one that did not exit: it is not live, or never was ready.
func aliveCrash(t *Pass, in *instance, why string, n int) ring.Crash {
	c := ring.Crash{ExitCode: ring.NoExit, Class: classTransient, Reason: why, Crashes: n}
	if !in.Since.IsZero() {
		c.Uptime = max(0, t.now.Sub(in.Since))
	}
	return c
}

// waitsAfterCrash reports whether a slot whose container somebody removed goes on with
// its backoff: what takes its place runs the same.
func (t *Pass) waitsAfterCrash(row ring.SlotRow) bool {
	v := t.views[row.ID]
	return v != nil && row.Crashes > 0 && (row.Version == v.want.Version || row.Version == v.target.Version) &&
		row.Slot <= max(v.want.Replicas, v.target.Replicas) && t.now.Sub(row.Last) < cmp.Or(v.want.Restart.Window, stableWindow)
}

// forgetSlot forgets the crashes of an instance that we remove.
func (t *decider) forgetSlot(v *service, in *instance) {
	if _, ok := t.slotRow(v, in); ok {
		t.setFact(ring.Forget{Table: "slot", Key: ring.SlotKey(v.id, in.Slot, in.Version)})
	}
}

// withLog is the record of a step with the lines that were read for it, where any
// were, or with why they could not be. What a check printed belongs to what ran on.
func withLog(a ring.Action, done ring.Done, err error) (out []ring.Fact) {
	log := done.Log
	read := err == nil && len(log) > 0
	switch r := a.Record.(type) {
	case ring.Crash:
		again := ring.Unread{Crash: &r}
		table, key := again.Row()
		if err != nil && r.NotRead == "" {
			r.NotRead = err.Error()
			again.From, again.Over = a.From, a.Over
			again.Run.Instance = key // so that a gitring from before finds a run that is gone, and no damage
			return []ring.Fact{r, again}
		}
		if r.NotRead != "" {
			out = append(out, ring.Forget{Table: table, Key: key})
		}
		if err == nil {
			r.Log, r.NotRead = log, ""
			r.Signature = signatureOf(r)
			if r.ExitCode == ring.NoExit {
				r.Checked = done.Checked
			}
		}
		if read || len(r.Checked) > 0 || err == nil && len(out) > 0 {
			out = append(out, r)
		}
	case ring.Run:
		r.Log = log
		if read {
			out = append(out, r)
		}
		out = append(out, ring.Forget{Table: "unread", Key: r.Instance})
	}
	return out
}
