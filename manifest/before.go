package manifest

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// checkBefore refuses a before: that names no job of the app, or one that waits
// for the service itself.
func (b *builderOf) checkBefore(app ring.App) {
	for i := range app.Services {
		s := &app.Services[i]
		if s.Before == "" {
			continue
		}
		at := b.extras[s.Name].before.place
		if s.Kind != ring.Worker && !b.kindLost(s.Name) {
			b.bad(at, "let "+s.Name+" wait for it: depends_on: {"+s.Before+": {condition: service_completed_successfully}}",
				"services.%s is a %s and has no rollout that something could run before", s.Name, s.Kind)
			continue
		}
		if !b.active(s.Name, s.Before, "x-gitring.before names", at) {
			continue
		}
		job, here := app.Service(s.Before)
		switch {
		case !here:
		case job.Kind != ring.JobK && !b.kindLost(job.Name):
			b.bad(at, "say x-gitring: {kind: job} at "+job.Name, "services.%s.x-gitring.before names %s, which is a %s and no job", s.Name, job.Name, job.Kind)
		case waitsFor(&app, job.Name, s.Name, map[string]bool{}):
			b.bad(at, "let "+job.Name+" not depend on "+s.Name, "services.%s and %s wait for each other: %s runs before %s, and depends on it", s.Name, job.Name, job.Name, s.Name)
		case job.Job != nil:
			b.runBefore(&job, s.Name)
		}
	}
}

// runBefore has a job run before every rollout of a service, as a backup has to,
// unless it says itself that it runs once for a version, as a migration may.
func (b *builderOf) runBefore(job *ring.Service, service string) {
	switch b.extras[job.Name].job.run {
	case "":
		job.Job.Run = "always"
	case "once":
		b.note("%s: job.run once is not used, it runs before %s", job.Name, service)
	}
}

// waitsFor reports whether a service depends on another, at whatever distance.
func waitsFor(app *ring.App, name, other string, met map[string]bool) bool {
	if met[name] {
		return false
	}
	met[name] = true
	s, _ := app.Service(name)
	next := append(s.Spec.Leaders(), s.Before)
	for _, d := range s.DependsOn {
		next = append(next, d.Service)
	}
	return slices.ContainsFunc(next, func(d string) bool { return d != "" && (d == other || waitsFor(app, d, other, met)) })
}
