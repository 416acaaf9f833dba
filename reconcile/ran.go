package reconcile

import (
	"cmp"
	"strings"

	"github.com/gitring/gitring/ring"
)

// runIn is the run of which an instance is.
func (t *Pass) runIn(v *service, in *instance) (ring.JobRun, bool) { return t.runOf(v.id, in) }

func (t *Pass) runOf(id ring.ServiceID, in *instance) (ring.JobRun, bool) {
	for _, key := range t.runsOf(id) {
		if run, ok := t.Facts.Jobs[key]; ok && run.Instance == in.ID {
			return run, true
		}
	}
	return ring.JobRun{}, false
}

// underWay are the runs of a service that have begun, or are to be tried again.
func (t *Pass) underWay(id ring.ServiceID) []ring.JobRun {
	var out []ring.JobRun
	for _, key := range t.runsOf(id) {
		if run, ok := t.Facts.Jobs[key]; ok && (run.State == jobStarted || run.State == "") {
			out = append(out, run)
		}
	}
	return out
}

// jobRun is the run that counts for a job: of its version and, for one that runs
// for every commit, of the app's present one; for a job that runs once, any that
// succeeded.
func (t *Pass) jobRun(id ring.ServiceID, s *ring.Service) (ring.JobRun, bool) {
	run, ok := t.Facts.Jobs[ring.VersionKey(id, s.Version)]
	if s.Job == nil {
		return run, ok
	}
	if app, _ := id.Split(); ok && s.Job.Run == "always" && run.State != jobStarted && run.Commit != t.Facts.Apps[app].App.Commit {
		return ring.JobRun{}, false
	}
	if ok || s.Job.Run != "once" {
		return run, ok
	}
	for _, key := range t.runsOf(id) {
		if r := t.Facts.Jobs[key]; cmp.Or(r.Trigger, ring.OnChange) == ring.OnChange && r.State == jobSucceeded {
			return r, true
		}
	}
	return run, false
}

// jobOf is how a run is bounded: as its plan says now or, for one that outlasts
// its version, as it said when the run began.
func (t *Pass) jobOf(v *service, run ring.JobRun) ring.Job {
	if run.Version != v.want.Version {
		return run.Job
	}
	return v.jobSettings()
}

// jobSettings is how the wanted version runs.
func (v *service) jobSettings() ring.Job {
	switch {
	case v.want.Cron != nil:
		return v.want.Cron.Job
	case v.want.Job != nil:
		return *v.want.Job
	}
	return ring.Job{}
}

// outlastingRun is why the wanted version of a worker may not start yet: the service
// was a job, and a run of it is under way.
func (t *Pass) outlastingRun(v *service) ring.Reason {
	if v.want.Kind != ring.Worker {
		return ring.Reason{}
	}
	for _, in := range v.instances {
		if in.Kind.Ends() && in.Live() {
			run, _ := t.runIn(v, in)
			return ring.Reason{Code: ring.WhyRunUnderWay, On: v.id, Says: t.earlierRunSays(v, in, run)}
		}
	}
	return ring.Reason{}
}

// earlierRunSays is why a newer version of a job waits, and what to do about a run that hangs.
func (t *Pass) earlierRunSays(v *service, in *instance, run ring.JobRun) string {
	says := say("an earlier run is under way: %s, since %s", in.Name, clock(run.Started))
	if v.want.Kind == ring.JobK && t.jobOf(v, run).Timeout == 0 {
		says += say("; it has no timeout: gitring logs %[1]s tells what it does, and gitring rollout abort %[1]s --reason '…', or job: {replace: true} in a newer commit, stops it", v.id)
	}
	if v.want.Kind == ring.Worker && run.Job.Timeout == 0 {
		says += say("; it has no timeout: gitring logs %s tells what it does, and docker stop %s ends it", v.id, in.Name)
	}
	return says
}

// jobReached is what is missing until a job has come as far as until.
func (t *Pass) jobReached(id ring.ServiceID, s *ring.Service, until ring.Until) (why string, dead bool) {
	if v := t.views[id]; v != nil && len(v.runsBefore()) > 0 {
		return t.beforeReached(v, until)
	}
	run, ok := t.jobRun(id, s)
	switch {
	case !ok:
		return "not run yet", false
	case run.State == jobFailed:
		return "failed: " + run.Reason, true
	case run.State == jobSucceeded, until == ring.Started:
		return "", false
	}
	return "running", false
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
