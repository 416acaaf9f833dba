package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// The states of a run of a job.
const (
	jobStarted   = "started"
	jobSucceeded = "succeeded"
	jobFailed    = "failed"
)

// keepJob is how long the container of a run that ended stays for its logs.
const keepJob = 24 * time.Hour

// jobRun is the run that counts for a job: of its version, or, for a job that
// runs once, any that succeeded.
func (t *turn) jobRun(id ring.ServiceID, s *ring.Service) (ring.JobRun, bool) {
	run, ok := t.Facts.Jobs[ring.VersionKey(id, s.Version)]
	if ok || s.Job == nil || s.Job.Run != "once" {
		return run, ok
	}
	for _, key := range sortedKeys(t.Facts.Jobs) {
		if r := t.Facts.Jobs[key]; r.ID == id && r.State == jobSucceeded {
			return r, true
		}
	}
	return run, false
}

// job runs a job once per version: the start is on disk before it happens, so
// a job is never run twice by accident, and one that was interrupted failed.
func (t *turn) job(v *service) {
	if t.busy(string(v.id)) || t.finishIntents(v) || t.rejoin(v) || t.oldRuns(v) {
		return
	}
	// From here no other version of the job runs.
	in := v.inSlot(1)
	run, ran := t.jobRun(v.id, v.want)
	ran = ran && run.State != ""
	if ran && v.want.Job.Run == "always" && run.Commit != v.app.Commit && run.State != jobStarted {
		if in != nil {
			t.remove(v, in, "runs for every commit")
			return
		}
		t.set(ring.Forget{Table: "job", Key: ring.VersionKey(v.id, v.want.Version)})
		ran = false
	}
	if ran && run.State != jobStarted {
		t.keepRun(v, in, run)
		return
	}
	if !ran {
		t.startRun(v, in)
		return
	}
	t.followRun(v, in, run)
}

// oldRuns waits for a run of an earlier version, which is never cut short, and
// removes what ended.
func (t *turn) oldRuns(v *service) bool {
	for _, in := range v.all {
		if in.Version == v.want.Version || !in.holds() {
			continue
		}
		if in.Live() {
			v.says = say("an earlier run is under way: %s", in.Name)
			return true
		}
		t.remove(v, in, "a newer version of the job is wanted")
		return true
	}
	return false
}

// startRun creates the container, writes down that the run starts, and starts it.
func (t *turn) startRun(v *service, in *inst) {
	if v.waits, v.blocked = t.gate(v); v.waits != "" {
		v.says = v.waits
		return
	}
	if why := t.cannot(v); why != "" {
		t.endRun(v, ring.JobRun{ID: v.id, Version: v.want.Version, Commit: v.app.Commit}, jobFailed, why)
		return
	}
	if in == nil {
		t.create(v, 1, false, "job "+runSays(v))
		return
	}
	old := t.Facts.Jobs[ring.VersionKey(v.id, v.want.Version)]
	t.set(ring.JobRun{
		ID: v.id, Version: v.want.Version, Commit: v.app.Commit, State: jobStarted,
		Instance: in.ID, Tries: old.Tries + 1, Started: t.now, Writes: writes(v.app, v.want),
	})
	t.event(ring.Event{Kind: ring.JobStarted, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.want.Version, Commit: v.app.Commit, Reason: runSays(v)})
	t.start(v, in, "job "+runSays(v))
}

// cannot is why the job's container can never start as it is; "" when it may.
func (t *turn) cannot(v *service) string {
	try, ok := t.Tries[string(v.id)]
	if !ok || try.Version != v.want.Version || !try.Permanent || try.Cause == ring.CauseImagePull {
		return ""
	}
	return try.Cause + ": " + try.Err
}

func runSays(v *service) string {
	if v.want.Job.Run == "" {
		return "runs on change"
	}
	return "runs " + v.want.Job.Run
}

// followRun watches a run that started.
func (t *turn) followRun(v *service, in *inst, run ring.JobRun) {
	switch {
	case in == nil:
		t.endRun(v, run, jobFailed, "interrupted: its container is gone")
	case in.State == ring.StateCreated && t.cannot(v) != "":
		t.endRun(v, run, jobFailed, t.cannot(v))
	case in.State == ring.StateCreated:
		t.start(v, in, "job "+runSays(v))
	case in.Ended():
		run.ExitCode = in.ExitCode
		if in.ExitCode == 0 {
			t.endRun(v, run, jobSucceeded, "exit code 0")
			return
		}
		if run.Tries <= v.want.Job.Retries {
			t.remove(v, in, say("%s; try %d of %d", in.reason, run.Tries+1, v.want.Job.Retries+1))
			run.State = ""
			t.set(ring.JobRun{ID: v.id, Version: run.Version, Commit: run.Commit, State: "", Tries: run.Tries})
			return
		}
		t.endRun(v, run, jobFailed, t.endSays(v, in, run))
	case v.want.Job.Timeout > 0:
		until := run.Started.Add(v.want.Job.Timeout)
		if t.now.Before(until) {
			t.wake(until)
			return
		}
		t.do(t.step(v, ring.DoStop, in, say("timeout %s", v.want.Job.Timeout)))
	}
}

func (t *turn) endSays(v *service, in *inst, run ring.JobRun) string {
	if max := v.want.Job.Timeout; max > 0 && in.Finished.Sub(in.Started) >= max {
		return say("%s after the timeout of %s", in.reason, max)
	}
	return in.reason
}

func (t *turn) endRun(v *service, run ring.JobRun, state, reason string) {
	run.State, run.Reason, run.Ended = state, reason, t.now
	t.set(run)
	e := ring.Event{Kind: ring.JobSucceeded, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.want.Version, Commit: v.app.Commit, Reason: reason}
	if state == jobFailed {
		e.Kind = ring.JobFailed
	}
	t.event(e)
}

// keepRun keeps the container of an ended run for its logs, for a day.
func (t *turn) keepRun(v *service, in *inst, run ring.JobRun) {
	if v.lends() { // a container that nobody needs to start can still lend its volumes
		if in == nil && run.State == jobSucceeded {
			t.create(v, 1, false, "others take their volumes from it")
		}
		return
	}
	if in == nil || in.Live() {
		return
	}
	until := run.Ended.Add(keepJob)
	if t.now.Before(until) {
		t.wake(until)
		return
	}
	t.remove(v, in, "ended a day ago")
}
