package reconcile

import (
	"cmp"
	"time"

	"github.com/gitring/gitring/ring"
)

// What the runs of jobs and of cron jobs have in common: how one begins, is
// watched, ends, and is told.

// The states of a run of a job.
const (
	jobStarted   = "started"
	jobSucceeded = ring.RunSucceeded
	jobFailed    = ring.RunFailed
	jobSkipped   = "skipped" // of a ring.Run
)

const (
	keepJob     = 24 * time.Hour   // the container of a run that ended stays for its logs
	startWithin = 10 * time.Minute // an instance that the engine does not start by then failed
	startTries  = 10               // creates in a row that fail, after which the run failed
	askedWithin = 10 * time.Minute // a person's wish ends that nothing came of
	mostCuts    = 5                // a run that is interrupted more often failed
	runLogLines = 500              // of its log are kept
)

// followRuns watches the runs that have begun, of whatever version. It says
// whether any is under way.
func (t *decider) followRuns(v *service) bool {
	any := t.stopsAgain(v)
	for _, run := range t.underWay(v.id) {
		if run.State == jobStarted {
			any = true
			t.followRun(v, v.instanceByID(run.Instance), run)
		}
	}
	return any
}

// hearOut writes down how runs ended while nobody may touch the service.
func (t *decider) hearOut(v *service) {
	for _, run := range t.underWay(v.id) {
		if in := v.instanceByID(run.Instance); run.State == jobStarted && in != nil && in.Ended() {
			t.runEnded(v, in, run)
		}
	}
}

// followRun watches a run that began.
func (t *decider) followRun(v *service, in *instance, run ring.JobRun) {
	if in != nil {
		t.beganAgain(in, &run)
	}
	switch {
	case in == nil:
		run.Reason = "interrupted: its container is gone"
		t.cutShort(v, nil, run)
	case t.brokenRun(v, in, run):
	case in.State == ring.StateRemoving, in.State == ring.StateRestarting && t.onCluster():
		if !t.followOnCluster(v, in, run) {
			t.boundRun(v, in, run)
		}
	case in.State == ring.StateCreated && in.Version != v.want.Version:
		t.reviveRun(v, in, run)
	case in.State == ring.StateCreated && t.cannotStartReason(v) != "":
		t.endRun(v, in, run, jobFailed, t.cannotStartReason(v))
	case in.State == ring.StateCreated && run.Stopped != "":
		t.endRun(v, in, run, jobFailed, "not started, after "+run.Stopped)
	case in.State == ring.StateCreated:
		if late := run.Started.Add(startWithin); !t.now.Before(late) && t.lastError(v) != "" {
			t.endRun(v, in, run, jobFailed, say("did not start within %s: %s", startWithin, t.lastError(v)))
			return
		}
		t.startInstance(v, in, runSays(run))
	case in.Ended():
		t.runEnded(v, in, run)
	default:
		t.boundRun(v, in, run)
	}
}

// boundRun stops a run that is over its time, or that makes room for a newer one
// by the word of its author. Nothing else cuts a run short.
func (t *decider) boundRun(v *service, in *instance, run ring.JobRun) {
	job := t.jobOf(v, run)
	if run.Stopped == "" && job.Timeout > 0 {
		until := run.Started.Add(job.Timeout)
		if t.now.Before(until) {
			t.wakeBy(until)
		} else {
			run.Stopped = say("the timeout of %s", job.Timeout)
			t.setFact(run)
		}
	}
	if run.Stopped == "" && in.Version != v.want.Version && v.want.Kind == ring.JobK && v.want.Job.Replace {
		run.Stopped, run.Final = say("a stop for %s, whose job says replace", v.app.Commit.Short()), true
		t.setFact(run)
	}
	if run.Stopped != "" {
		t.addStep(t.stepOn(v, ring.DoStop, in, run.Stopped))
		return
	}
	if in.Version != v.want.Version {
		v.says = t.earlierRunSays(v, in, run)
	}
}

// startRun creates the container, writes down that the run starts, and starts it.
func (t *decider) startRun(v *service, slot int, run ring.JobRun) {
	if v.waits = t.gateReason(v); !v.waits.None() {
		v.says = v.waits.Says
		return
	}
	if next := run.Ended.Add(backoffOf(string(v.id), max(run.Tries, run.Cut+1))); run.Tries+run.Cut > 0 && t.now.Before(next) {
		v.says = say("is tried again at %s", clock(next))
		t.wakeBy(next)
		return
	}
	if v.missing = t.runObstructed(v, run); v.missing != "" {
		v.says = v.missing
		return
	}
	v.mark = t.runMark(v, run)
	in := v.inSlot(slot)
	if in != nil && in.State == ring.StateCreated && t.onCluster() && in.Run != nil && !in.Run.Is(*v.mark) {
		t.removeInstance(v, in, "it was made for another run")
		return
	}
	if in != nil && in.Live() && in.ID != run.Instance { // somebody began it: no run is cut short for the next
		v.missing, v.says = startedByHand(in), startedByHand(in)
		return
	}
	if in != nil && in.State != ring.StateCreated && in.ID != run.Instance {
		t.removeRun(v, in, "makes room for the next run")
		return
	}
	if in != nil && in.Ended() && run.Tries+run.Cut > 0 {
		t.removeRun(v, in, say("%s; try %d of %d", in.reason, run.Tries+1, v.jobSettings().Retries+1))
		return
	}
	if t.begunElsewhere(v, in, run) {
		return
	}
	if why := t.cannotStartReason(v); why != "" {
		run.Version, run.Commit = v.want.Version, v.app.Commit
		t.endRun(v, nil, run, jobFailed, why)
		return
	}
	if in == nil {
		t.createInstance(v, slot, false, runSays(run))
		return
	}
	if v.missing = t.occupiedReasonOf(v, in); v.missing != "" && !in.Live() {
		v.says = v.missing
		return
	}
	t.beginRun(v, in, run)
}

// startedByHand is why no run begins beside an instance of which none is known to be
// under way: somebody started what had ended.
func startedByHand(in *instance) string {
	return say("%s runs since %s, and no run of ours is under way: somebody began it", in.Name, clock(in.Since))
}

// beginRun writes down that a run begins, and begins it.
func (t *decider) beginRun(v *service, in *instance, run ring.JobRun) {
	run.Version, run.Commit, run.State, run.Instance, run.Slot = v.want.Version, v.app.Commit, jobStarted, in.ID, in.Slot
	run.Tries, run.Started, run.Ended, run.ExitCode = run.Tries+1, t.now, time.Time{}, 0
	run.Reason, run.Stopped, run.Final, run.Aborted = "", "", false, false
	run.Writes, run.Share, run.Engine = v.wantedWrites(), v.want.Share, t.Seen.Engine
	run.Job = v.jobSettings()
	t.setFact(run)
	if run.Trigger == ring.Asked {
		t.setFact(ring.Forget{Table: "ask", Key: string(v.id)})
	}
	if in.State == ring.StateCreated {
		t.runEvent(v, ring.JobStarted, run, runSays(run))
		t.startInstance(v, in, runSays(run))
	}
}

// adoptRun writes down the run of an instance of which none is known.
func (t *decider) adoptRun(v *service) bool {
	in := t.unknownRun(v)
	if in == nil {
		return false
	}
	run := ring.JobRun{ID: v.id, Trigger: ring.OnChange}
	switch {
	case v.want.Kind == ring.CronK:
		run.Trigger = ring.OnSchedule
	case len(v.runsBefore()) > 0:
		run.Trigger = ring.Asked
	}
	if of, marked := adoptedRun(v, in); marked {
		run = of
	}
	run.Slot = in.Slot
	t.beginRun(v, in, run)
	t.wakeSoon()
	return true
}

// reviveRun takes back that a run began, which a newer version came before: it
// begins as that one.
func (t *decider) reviveRun(v *service, in *instance, run ring.JobRun) {
	_, key := run.Row()
	t.setFact(ring.Forget{Table: "job", Key: key})
	switch run.Trigger {
	case ring.Asked:
		t.setFact(ring.Ask{ID: v.id, Actor: run.Actor, Reason: "begins as the newer version", At: run.Due})
	case ring.OnSchedule:
		row := t.Facts.Cron[v.id]
		if row.ID != "" && row.Waits.IsZero() {
			row.Waits = run.Due
			t.setFact(row)
		}
	}
	t.removeRun(v, in, say("%s came before it began", v.app.Commit.Short()))
}

// cannotStartReason is why the container of a run can never start as it is; "" when it may.
func (t *Pass) cannotStartReason(v *service) string {
	try, ok := t.Tries[string(v.id)]
	if !ok || try.Version != v.want.Version || try.Cause == ring.CauseImagePull || try.Kind != ring.DoCreate && try.Kind != ring.DoStart {
		return ""
	}
	if !try.Permanent && (try.Refusal != nil || try.N < startTries) {
		return "" // a refusal is of what this host lacks: it goes on once that is mended
	}
	return cmp.Or(try.Cause, "error") + ": " + try.Err
}

// lastError is the last error of a step for v; "" when it succeeded.
func (t *Pass) lastError(v *service) string {
	if try, ok := t.Tries[string(v.id)]; ok && try.Err != "" {
		return withHint(try)
	}
	return ""
}

// runSays is the sentence of a run that begins.
func runSays(run ring.JobRun) string {
	switch run.Trigger {
	case ring.OnSchedule:
		if run.Due.IsZero() {
			return "job runs on schedule"
		}
		return "job runs, due " + clock(run.Due)
	case ring.Before:
		service, v := splitFor(run.For)
		return say("job runs before %s %s", service, v.Short())
	case ring.Asked:
		return "job runs, asked by " + cmp.Or(run.Actor, "somebody")
	}
	return "job runs on change"
}

// runEnded judges a run by how its instance ended.
func (t *decider) runEnded(v *service, in *instance, run ring.JobRun) {
	run.ExitCode = in.ExitCode
	switch {
	case run.Stopped != "":
		run.Reason = say("%s after %s", in.reason, run.Stopped)
		t.tryAgain(v, in, run)
	case in.ExitCode == 0:
		t.endRun(v, in, run, jobSucceeded, "exit code 0")
	case t.isInterrupted(in, run):
		run.Reason = "interrupted: " + in.reason
		t.cutShort(v, in, run)
	default:
		run.Reason = in.reason
		t.tryAgain(v, in, run)
	}
}

// isInterrupted reports whether others ended a run: the engine or the host went down, or
// somebody stopped it by hand. What the kernel ends for want of memory is its own.
func (t *Pass) isInterrupted(in *instance, run ring.JobRun) bool {
	if run.Engine != "" && t.Seen.Engine != "" && run.Engine != t.Seen.Engine {
		return true
	}
	return !in.OOM && (in.ExitCode == 137 || in.ExitCode == 143)
}

// cutShort follows an interruption: it failed, unless its author says that it
// may begin anew.
func (t *decider) cutShort(v *service, in *instance, run ring.JobRun) {
	if run.Final || !t.jobOf(v, run).Rerun || run.Cut >= mostCuts || run.Version != v.want.Version {
		t.tryAgain(v, in, run)
		return
	}
	run.Cut, run.Tries = run.Cut+1, max(0, run.Tries-1)
	t.retryRun(v, in, run)
}

// brokenRun ends a run whose container the engine will never start: it may have
// been let into it, so it was interrupted. It reports whether that is so.
func (t *decider) brokenRun(v *service, in *instance, run ring.JobRun) bool {
	try, ok := t.brokenTry(v, in)
	if !ok {
		return false
	}
	run.Reason = "interrupted: the engine cannot start its container: " + try.Err
	t.removeInstance(v, in, run.Reason)
	t.cutShort(v, in, run)
	return true
}

// tryAgain follows a failed try.
func (t *decider) tryAgain(v *service, in *instance, run ring.JobRun) {
	if run.Final || run.Version != v.want.Version || run.Tries > t.jobOf(v, run).Retries {
		t.endRun(v, in, run, jobFailed, run.Reason)
		return
	}
	t.retryRun(v, in, run)
}

func (t *decider) retryRun(v *service, in *instance, run ring.JobRun) {
	run.Ended = t.now
	t.recordRun(v, in, run, jobFailed)
	run.State = ""
	t.setFact(run)
	t.wakeSoon()
}

// noMoreTries ends what is to be tried again and is not asked for any more, or not
// in time.
func (t *decider) noMoreTries(v *service) {
	for _, run := range t.underWay(v.id) {
		if run.State != "" {
			continue
		}
		if why := t.supersededReason(v, run); why != "" {
			t.giveUp(v, run, why)
		}
	}
}

// supersededReason is why a run that failed is not tried again, whatever tries are left;
// "" when it is.
func (t *Pass) supersededReason(v *service, run ring.JobRun) string {
	switch {
	case !v.want.Kind.Ends():
		return say("%s is no job any more", v.want.Name)
	case run.Trigger == ring.Asked:
		return ""
	case (run.Trigger == ring.OnSchedule) != (v.want.Kind == ring.CronK):
		return say("%s is a %s now", v.want.Name, v.want.Kind)
	case run.Trigger == ring.OnSchedule:
		return t.tooLate(v, run)
	case run.Trigger == ring.Before:
		name, version := splitFor(run.For)
		if s := t.views[ring.ID(v.app.Name, name)]; s == nil || s.want.Before != v.want.Name || s.want.Version != version {
			return say("nothing waits for it any more")
		}
	case len(v.runsBefore()) > 0:
		return say("%s runs before others now", v.want.Name)
	case run.Version != v.want.Version:
		return "a newer version is wanted"
	}
	return ""
}

// tooLate is why a run that was due is not tried again: it may begin as late as
// any other, and no later.
func (t *Pass) tooLate(v *service, run ring.JobRun) string {
	until := run.Ended.Add(backoffOf(string(v.id), max(run.Tries, run.Cut+1))).Add(lateBy(v.want.Cron))
	if t.now.Before(until) {
		t.wakeBy(until)
		return ""
	}
	return say("it could not begin within %s: %s", lateBy(v.want.Cron), t.runHindrance(v))
}

// giveUp ends a run whose last try failed, and is told already.
func (t *decider) giveUp(v *service, run ring.JobRun, why string) {
	run.Over = run.Trigger == ring.Before // another rollout has another
	t.noMore(v, run, why)
}

func (t *decider) noMore(v *service, run ring.JobRun, why string) {
	run.State, run.Reason = jobFailed, say("%s; not tried again: %s", run.Reason, why)
	t.setFact(run)
	t.runEvent(v, ring.JobFailed, run, run.Reason)
	if row, ok := t.Facts.Cron[v.id]; ok && v.want.Kind == ring.CronK {
		row.Last, row.LastSays, row.LastEnd = jobFailed, run.Reason, run.Ended
		t.setFact(row)
	}
	t.wakeSoon()
}

// forgetTries does the same in silence for a cron job that left the plan: one that
// comes back catches nothing up.
func (t *decider) forgetTries(id ring.ServiceID) {
	for _, key := range t.runsOf(id) {
		if run := t.Facts.Jobs[key]; run.Trigger == ring.OnSchedule && run.State == "" {
			run.State = jobFailed
			t.setFact(run)
		}
	}
}

func (t *decider) endRun(v *service, in *instance, run ring.JobRun, state, reason string) {
	run.State, run.Reason, run.Ended = state, reason, t.now
	t.setFact(run)
	kind := ring.JobSucceeded
	if state == jobFailed {
		kind = ring.JobFailed
	}
	t.runEvent(v, kind, run, reason)
	t.recordRun(v, in, run, state)
	t.wakeSoon() // somebody may wait for it
	if run.Trigger == ring.Asked {
		t.setFact(ring.Forget{Table: "ask", Key: string(v.id)})
		t.healOwnRun(v, run)
	}
	if run.Trigger == ring.Before {
		t.beforeEnded(v, run)
	}
	if row, ok := t.Facts.Cron[v.id]; ok {
		row.Last, row.LastSays, row.LastEnd = state, reason, t.now
		if !run.Due.IsZero() && row.Waits.Equal(run.Due) {
			row.Waits = time.Time{} // it never got as far as to begin
		}
		t.setFact(row)
	}
}

// runLeft ends the run of a job that left the plan, as it ended by itself or
// because it is removed now. Its log is not kept: what would have to be struck out
// of it is not known any more.
func (t *decider) runLeft(app *ring.App, in *instance, run ring.JobRun, why string) {
	v := &service{id: run.ID, app: app, want: &ring.Service{Name: in.Service}}
	run.State, run.Reason, run.Ended = jobFailed, "stopped: "+why, t.now
	kind := ring.JobFailed
	if in.Ended() {
		run.ExitCode, run.Reason = in.ExitCode, exitSays(in.Instance)
	}
	if in.Ended() && in.ExitCode == 0 {
		run.State, run.Reason, kind = jobSucceeded, "exit code 0", ring.JobSucceeded
	}
	t.setFact(run)
	t.runEvent(v, kind, run, run.Reason)
	t.recordRun(v, nil, run, run.State)
}

// healOwnRun has the version's own run succeed by one that a person asked for. One
// that failed takes nothing back that succeeded.
func (t *decider) healOwnRun(v *service, run ring.JobRun) {
	own, ok := t.Facts.Jobs[ring.VersionKey(v.id, run.Version)]
	if run.State != jobSucceeded {
		return
	}
	t.standsFor(v, run)
	if ok && own.State == jobFailed {
		own.State, own.Reason, own.Ended, own.ExitCode = jobSucceeded, say("exit code 0, asked by %s", cmp.Or(run.Actor, "somebody")), t.now, 0
		t.setFact(own)
	}
}

// skipRun tells that a run which was due or asked for does not take place.
func (t *decider) skipRun(v *service, run ring.JobRun, reason string) {
	run.Version, run.Commit, run.Ended, run.Reason = v.want.Version, v.app.Commit, t.now, reason
	t.runEvent(v, ring.JobSkipped, run, say("%s: %s", dueSays(run), reason))
	t.recordRun(v, nil, run, jobSkipped)
}

func dueSays(run ring.JobRun) string {
	if run.Trigger == ring.Asked {
		return "asked by " + cmp.Or(run.Actor, "somebody")
	}
	return "due " + clock(run.Due)
}

func (t *decider) runEvent(v *service, kind string, run ring.JobRun, reason string) {
	code := ring.ReasonCode("")
	if kind == ring.JobFailed {
		code = ring.WhyJobFailed
	}
	t.addEvent(ring.Event{
		Kind: kind, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: run.Version,
		Commit: run.Commit, Actor: run.Actor, Reason: reason, Code: code,
	})
}

// recordRun keeps a run for people, and the end of its log.
func (t *decider) recordRun(v *service, in *instance, run ring.JobRun, state string) {
	waits, _ := splitFor(run.For)
	r := ring.Run{
		ID: v.id, Version: run.Version, Commit: run.Commit, Instance: run.Instance, Trigger: cmp.Or(run.Trigger, ring.OnChange), For: waits,
		Actor: run.Actor, State: state, Try: run.Tries, ExitCode: run.ExitCode, Reason: run.Reason, Due: run.Due, Started: run.Started, Ended: t.now,
	}
	t.setFact(r)
	if in == nil || in.State == ring.StateCreated {
		return
	}
	t.setFact(ring.Unread{Run: r})
	t.readLog(v, in, r)
}

func (t *decider) readLog(v *service, in *instance, r ring.Run) {
	a := t.stepOn(v, ring.DoLog, in, "the run ended") // with what has to be struck out of it
	a.Commit, a.Record, a.Lines, a.Timeout = r.Commit, r, runLogLines, logWithin
	t.addStep(a)
}

// readUnreadLogs reads the logs of runs that ended, where the daemon did so too before it had
// read them. Of a service that left its plan none is read, as in runLeft.
func (t *decider) readUnreadLogs() {
	for _, id := range sortedKeys(t.Facts.Unread) {
		if u := t.Facts.Unread[id]; u.Crash != nil {
			t.rereadLog(id, u)
			continue
		}
		r := t.Facts.Unread[id].Run
		v := t.views[r.ID]
		switch {
		case t.isBusy("log " + id):
		case v == nil || v.instanceByID(id) == nil:
			t.setFact(ring.Forget{Table: "unread", Key: id})
		default:
			t.readLog(v, v.instanceByID(id), r)
		}
	}
}

// removeRun removes an instance that ran, once its log was read.
func (t *decider) removeRun(v *service, in *instance, why string) {
	if !t.readsLog(in) {
		t.removeInstance(v, in, why)
	}
}

// keepRuns keeps the container of the last run for its logs, for a day.
func (t *decider) keepRuns(v *service) {
	if v.lendsVolumes() { // a container that nobody needs to start can still lend its volumes
		if run, _ := t.jobRun(v.id, v.want); v.inSlot(1) == nil && run.State == jobSucceeded {
			t.createInstance(v, 1, false, "others take their volumes from it")
		}
		return
	}
	var newest time.Time
	ended := map[string]time.Time{}
	for _, in := range v.instances {
		if !in.Ended() || !in.holdsSlot() {
			continue
		}
		at := in.Finished
		if run, ok := t.runIn(v, in); ok {
			at = run.Ended
		}
		if ended[in.ID] = at; at.After(newest) {
			newest = at
		}
	}
	for _, in := range v.instances {
		at, ok := ended[in.ID]
		switch until := at.Add(keepJob); {
		case !ok:
		case t.marksItsVersion(v, in) && (v.want.Kind == ring.JobK || !at.Before(newest)):
		case at.Before(newest):
			t.removeRun(v, in, "a newer run has ended")
			return
		case t.now.Before(until):
			t.wakeBy(until)
		default:
			t.removeRun(v, in, "ended a day ago")
			return
		}
	}
}

// wakeSoon asks for a look at once: what was decided lets others go on.
func (t *Pass) wakeSoon() { t.wakeBy(t.now.Add(time.Millisecond)) }
