package reconcile

import (
	"github.com/gitring/gitring/ring"
)

// gate is why the wanted version of a service may not start yet: what it
// depends on is not there. dead says that it will not come by itself: a failed
// dependency stops its dependents, not its neighbours.
func (t *turn) gate(v *service) (why string, dead bool) {
	for _, d := range v.want.DependsOn {
		dep, ok := v.app.Service(d.Service)
		if !ok || d.Optional && dep.Replicas == 0 {
			continue
		}
		if why, dead := t.reached(v.app, &dep, d.Until); why != "" {
			return say("waits for %s: %s", d.Service, why), dead
		}
	}
	for _, after := range v.app.After {
		f, ok := t.Facts.Apps[after.App]
		if !ok {
			return say("waits for app %s, which is not there yet", after.App), false
		}
		for i := range f.App.Services {
			if why, dead := t.reached(&f.App, &f.App.Services[i], after.Until); why != "" {
				return say("waits for app %s: %s %s", after.App, f.App.Services[i].Name, why), dead
			}
		}
	}
	return "", false
}

// reached is what is missing until a service has come as far as until; "" when
// it has.
func (t *turn) reached(app *ring.App, s *ring.Service, until ring.Until) (why string, dead bool) {
	id := ring.ID(app.Name, s.Name)
	if s.Kind == ring.JobK {
		return t.jobReached(id, s, until)
	}
	if d, ok := t.Facts.Verdicts[ring.VersionKey(id, s.Version)]; ok && !d.Good {
		return "failed: " + d.Reason, true
	}
	if s.Replicas == 0 {
		return "", false
	}
	row := t.Facts.Rollouts[id]
	live, ready := 0, 0
	for _, in := range t.seen[id] {
		if in.Version != s.Version || !in.holds() {
			continue
		}
		if in.Live() {
			live++
		}
		if in.ready {
			ready++
		}
	}
	_, down := s.Rollout.Room(s.Replicas)
	switch {
	case until == ring.Started && live > 0:
		return "", false
	case until == ring.Started:
		return "not started", false
	case row.Version == s.Version && row.Done && ready >= max(1, s.Replicas-down):
		return "", false
	}
	return say("%d/%d ready", ready, s.Replicas), false
}

func (t *turn) jobReached(id ring.ServiceID, s *ring.Service, until ring.Until) (why string, dead bool) {
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
