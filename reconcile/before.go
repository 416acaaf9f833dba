package reconcile

import (
	"cmp"
	"strings"

	"github.com/gitring/gitring/ring"
)

// A job that a service names by before: runs before each rollout of it to a
// version that was never let through, and has no run of its own.

// runsBefore are the services of the app that the job v runs before, by name.
func (v *service) runsBefore() []string {
	if v.want.Kind != ring.JobK {
		return nil
	}
	return runsBefore(v.app, v.want.Name)
}

func runsBefore(app *ring.App, job string) (out []string) {
	for i := range app.Services {
		if app.Services[i].Before == job {
			out = append(out, app.Services[i].Name)
		}
	}
	return out
}

// comesFirst is what a plan tells of the job that runs before a new version of s.
func comesFirst(s *ring.Service) string {
	if s.Before == "" {
		return ""
	}
	return say("; %s runs first, and must succeed", s.Before)
}

// splitFor takes apart what a run is for.
func splitFor(waits string) (service string, version ring.Version) {
	service, v, _ := strings.Cut(waits, "@")
	return service, ring.Version(v)
}

// beforeRow is the run before the rollout of s to its wanted version.
func (t *Pass) beforeRow(s *service) (ring.JobRun, bool) {
	run, ok := t.Facts.Jobs[ring.RunKey(ring.ID(s.app.Name, s.want.Before), ring.BeforeMark(ring.ForVersion(s.want.Name, s.want.Version)))]
	if run.Over {
		return ring.JobRun{}, false
	}
	return run, ok
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

// runBeforeMissing is why the wanted version of s may not start yet: what runs before it
// has not succeeded.
func (t *Pass) runBeforeMissing(s *service) ring.Reason {
	if s.want.Before == "" || t.letThrough(s) {
		return ring.Reason{}
	}
	run, ok := t.beforeRow(s)
	why := ring.Reason{
		Code: ring.WhyJobBeforeNotDone, On: ring.ID(s.app.Name, s.want.Before),
		Says: say("waits for %s, which runs before it: ", s.want.Before),
	}
	switch {
	case !ok:
		if j := t.views[why.On]; j != nil {
			if keeps := t.gateReason(j); keeps.Dead {
				why.Says, why.Dead = why.Says+keeps.Says, true
				return why
			}
		}
		why.Says += "not run yet"
	case run.State == jobSucceeded:
		return ring.Reason{}
	case t.failsFor(s, run):
		why.Says, why.Dead = why.Says+"failed: "+run.Reason, true
	case run.State == jobStarted:
		why.Says += "running"
	default:
		why.Says += "is tried again"
	}
	return why
}

// failsFor reports whether the run before the wanted version of s failed, and that s
// is not to be tried again.
func (t *Pass) failsFor(s *service, run ring.JobRun) bool {
	_, quarantined := t.failedVerdict(s)
	return run.State == jobFailed && quarantined && !t.letThrough(s)
}

// letThrough reports whether the wanted version of s was let through before: it is
// here. That is so too where all that was remembered is lost.
func (t *Pass) letThrough(s *service) bool {
	if _, failed := t.failedVerdict(s); s.rollout.Version == s.want.Version && s.rollout.Done && !failed {
		return true
	}
	if t.onlyRestarted(s) || t.overrideOn(ring.OverrideUndo, ring.ServiceID(s.app.Name)) != nil {
		return true // a person who goes back to what completed here waits for no backup
	}
	for _, in := range s.instances {
		if in.Version == s.want.Version && in.holdsSlot() {
			return true
		}
	}
	return false
}

// onlyRestarted reports whether the wanted version is the last good one but for a person's
// restart, which asks nothing new.
func (t *Pass) onlyRestarted(s *service) bool {
	if s.good == nil || s.good.Service.Spec.Mark == s.want.Spec.Mark {
		return false
	}
	as := *s.want
	as.Spec.Mark = s.good.Service.Spec.Mark
	return ring.VersionOf(s.app, &as, as.Pin) == s.good.Service.Version
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

// failedVerdict is the verdict "failed" on the wanted version of s.
func (t *Pass) failedVerdict(s *service) (ring.Verdict, bool) {
	d, ok := t.Facts.Verdict(s.id, s.want.Version)
	return d, ok && !d.Good
}

// takeBack forgets that the wanted version of s failed. A run before it that failed
// is over with that: it condemns the version no more, and the next try has its own.
func (t *decider) takeBack(s *service) {
	t.setFact(ring.Forget{Table: "verdict", Key: s.wantedKey()})
	t.pardonRun(s.app, s.want)
}

// pardonRun ends what a failed run before a version says of it.
func (t *decider) pardonRun(app *ring.App, s *ring.Service) {
	if s.Before == "" {
		return
	}
	run, ok := t.Facts.Jobs[ring.RunKey(ring.ID(app.Name, s.Before), ring.BeforeMark(ring.ForVersion(s.Name, s.Version)))]
	if ok && run.State == jobFailed && !run.Over {
		run.Over = true
		t.setFact(run)
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

// beforeReached is what is missing until a job that runs before others has done
// so for all versions that are wanted; what was let through needs no run.
func (t *Pass) beforeReached(v *service, until ring.Until) (why string, dead bool) {
	for _, name := range v.runsBefore() {
		s := t.views[ring.ID(v.app.Name, name)]
		run, _ := t.beforeRow(s)
		switch {
		case t.letThrough(s), run.State == jobSucceeded, run.State == jobStarted && until == ring.Started:
		case t.failsFor(s, run):
			return "failed: " + run.Reason, true
		case run.State == jobStarted:
			return "running", false
		default:
			return say("not run yet before %s", name), false
		}
	}
	return "", false
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
