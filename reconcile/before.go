package reconcile

import (
	"cmp"
	"strings"

	"github.com/gitring/gitring/ring"
)

// A job that a service names by before: runs before each rollout of it to a
// version that was never let through, and has no run of its own.

// comesFirst is what a plan tells of the job that runs before a new version of s.
func comesFirst(s *ring.Service) string {
	if s.Before == "" {
		return ""
	}
	return say("; %s runs first, and must succeed", s.Before)
}

// spendRuns has what ran before rollouts of versions that are not wanted any more count
// for nothing: should one be wanted again, that is another rollout. What failed is
// remembered with its verdict.
func (t *decider) spendRuns(v *service) {
	for _, key := range t.runsOf(v.id) {
		run := t.Facts.Jobs[key]
		service, version := splitFor(run.For)
		if s := t.views[ring.ID(v.app.Name, service)]; run.Trigger == ring.Before && (s == nil || s.want.Version != version) {
			t.spendRun(v, run)
		}
	}
}

// spendRun is that for one run. A job that says run: on_change runs once for each version.
func (t *decider) spendRun(v *service, run ring.JobRun) {
	if run.State == jobSucceeded && !run.Over && v.want.Job != nil && v.want.Job.Run == "always" {
		run.Over = true
		t.setFact(run)
	}
}

// runBefore is the run of v that the wanted version of s waits for, if it does:
// nothing else keeps it from starting.
func (t *Pass) runBefore(v, s *service) (ring.JobRun, bool) {
	if t.letThrough(s) || t.handsOff(s.id) || !t.pauseReason(s.id).None() {
		return ring.JobRun{}, false
	}
	run, ok := t.beforeRow(s)
	if ok && run.State != jobFailed {
		return run, run.State == ""
	}
	if _, quarantined := t.failedVerdict(s); quarantined {
		return ring.JobRun{}, false
	}
	if s.rollout.Version != s.want.Version {
		if !t.gateBut(s).None() {
			return ring.JobRun{}, false
		}
	}
	return ring.JobRun{ID: v.id, Trigger: ring.Before, For: ring.ForVersion(s.want.Name, s.want.Version)}, true
}

// retryMendedBefore tries again what failed for the job that runs before it, where that is
// another version by now: the verdict was on the one before.
func (t *decider) retryMendedBefore(s *service) {
	if s.want.Before == "" {
		return
	}
	d, failed := t.failedVerdict(s)
	run, ok := t.beforeRow(s)
	job, here := s.app.Service(s.want.Before)
	if !failed || !ok || !here || run.State != jobFailed || run.Version == job.Version || t.letThrough(s) {
		return
	}
	t.goesOn(s, ring.Event{Reason: say("%s, which runs before it, has changed: %s", s.want.Before, d.Reason)})
}

// goesOn takes back that the wanted version of s failed, and with it what is tied to s.
func (t *decider) goesOn(s *service, why ring.Event) {
	verdict, _ := t.failedVerdict(s)
	for _, m := range s.members() {
		if d, failed := t.failedVerdict(m); !failed || !d.At.Equal(verdict.At) {
			continue // of its own
		}
		t.takeBack(m)
		if m.rollout.Version == m.want.Version {
			row := m.rollout
			row.Version = "" // begun anew
			t.setFact(row)
		}
		why.Kind, why.Source, why.App, why.Service = ring.RolloutResumed, m.app.Source, m.app.Name, m.want.Name
		why.Version, why.Commit = m.want.Version, m.app.Commit
		t.addEvent(why)
	}
	t.wakeSoon()
}

// standsFor has a run that a person asked for, and that succeeded, count for those
// that failed before a rollout.
func (t *decider) standsFor(v *service, run ring.JobRun) {
	for _, name := range v.runsBefore() {
		s := t.views[ring.ID(v.app.Name, name)]
		own, ok := t.beforeRow(s)
		if !ok || own.Version != run.Version || !t.failsFor(s, own) {
			continue
		}
		own.State, own.Reason, own.Ended, own.ExitCode = run.State, say("exit code 0, asked by %s", cmp.Or(run.Actor, "somebody")), t.now, 0
		own.Instance, own.Commit = run.Instance, run.Commit
		t.setFact(own)
		t.goesOn(s, ring.Event{Actor: run.Actor, Reason: say("%s, which runs before it, succeeded, asked by %s", v.want.Name, cmp.Or(run.Actor, "somebody"))})
	}
}

// repeatVerdict gives the verdict again that a failed run of v led to, where that is lost:
// an earlier state of the database came back, or none, while the marks of jobs are
// files. Without it the job would run a second time for one reason.
func (t *decider) repeatVerdict(v *service) {
	for _, name := range v.runsBefore() {
		s := t.views[ring.ID(v.app.Name, name)]
		run, ok := t.beforeRow(s)
		if !ok || run.State != jobFailed || run.Version != v.want.Version || t.letThrough(s) || t.handsOff(s.id) {
			continue
		}
		if _, known := t.failedVerdict(s); !known {
			t.failBefore(v, s, run)
			t.wakeSoon()
		}
	}
}

// failBefore is the verdict on the wanted version of s for a run of v that failed.
func (t *decider) failBefore(v, s *service, run ring.JobRun) {
	reason := ring.Reason{Code: ring.WhyJobFailed, On: v.id, Says: say("%s, which runs before it, failed: %s", v.want.Name, run.Reason)}
	t.giveVerdict(s, s.app.Commit, reason)
	t.failTied(s, reason)
	t.makeFinal(s)
}

// beforeEnded lets the rollout go on that waits for the run, or fails it.
func (t *decider) beforeEnded(v *service, run ring.JobRun) {
	name, version := splitFor(run.For)
	s := t.views[ring.ID(v.app.Name, name)]
	if s == nil || s.want.Before != v.want.Name {
		return // nobody waits for it any more
	}
	if run.Aborted { // nor for this, and the verdict was given then
		if _, stands := t.failedVerdict(s); !stands && s.want.Version == version {
			t.pardonRun(s.app, s.want) // a person has it tried again already
		}
		return
	}
	if s.want.Version != version { // nor now; but a commit may want that version again
		if run.State == jobFailed {
			t.setFact(ring.Verdict{ID: s.id, Version: version, Commit: run.Commit, Reason: say("%s, which runs before it, failed: %s", v.want.Name, run.Reason), At: t.now, Final: true})
		}
		return
	}
	if run.State == jobSucceeded {
		if s.rollout.Version == version && !s.rollout.Done { // the time until now was not the version's
			row := s.rollout
			row.Progress = t.now
			t.setFact(row)
		}
		return
	}
	t.failBefore(v, s, run)
}

// awaitsRun reports whether a rollout waits for nothing but a run of v that has not begun.
func (t *Pass) awaitsRun(v *service) bool {
	for _, name := range v.runsBefore() {
		s := t.views[ring.ID(v.app.Name, name)]
		if run, ok := t.beforeRow(s); ok && run.State != jobFailed || t.letThrough(s) || s.failed != nil {
			continue
		}
		if t.gateBut(s).None() {
			return true
		}
	}
	return false
}

// beforeStatus is the phase of a job that runs before others.
func (t *Pass) beforeStatus(v *service, st *ring.ServiceStatus) {
	waiting := "runs before " + strings.Join(v.runsBefore(), ", ")
	for _, name := range v.runsBefore() {
		s := t.views[ring.ID(v.app.Name, name)]
		if run, ok := t.beforeRow(s); ok && t.failsFor(s, run) {
			st.Phase, st.Code, st.Reason = ring.PhaseFailed, ring.WhyJobFailed, say("before %s: %s", name, run.Reason)
			return
		}
	}
	last := t.lastRun(v)
	switch {
	case !v.waits.None() && t.awaitsRun(v):
		st.Phase = ring.PhasePending
		st.Because(v.waits)
	case t.awaitsRun(v):
		st.Phase, st.Reason = ring.PhaseProgressing, cmp.Or(v.says, t.lastError(v), "is about to run")
	case len(t.underWay(v.id)) > 0 || t.isAskedFor(v):
		st.Phase, st.Reason = ring.PhaseProgressing, cmp.Or(v.says, t.lastError(v), "is running")
	case last.ID == "":
		st.Phase, st.Reason = ring.PhaseCompleted, waiting
	default:
		st.Phase, st.Reason = ring.PhaseCompleted, say("%s; last run %s %s", waiting, last.State, clock(last.Ended))
		if last.State == jobSucceeded {
			st.LastGood = last.Commit
		}
	}
}
