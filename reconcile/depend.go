package reconcile

import (
	"slices"
	"strconv"

	"github.com/gitring/gitring/ring"
)

// gateReason is why the wanted version of a service may not start yet: what it
// depends on is not there. A failed dependency, which will not come by itself,
// stops its dependents, not its neighbours.
func (t *Pass) gateReason(v *service) ring.Reason {
	if why := t.gateBut(v); !why.None() {
		return why
	}
	return t.runBeforeMissing(v)
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

// gateBut is gate but for the job that runs before v, which comes last.
func (t *Pass) gateBut(v *service) ring.Reason {
	if why := t.outlastingRun(v); !why.None() {
		return why
	}
	if why := t.transferPending(v); !why.None() {
		return why
	}
	if why := t.frontGate(v); !why.None() {
		return why
	}
	owners := v.want.Spec.Owners()
	for _, name := range owners {
		if why, dead := t.ownerReached(v, name); why != "" {
			return ring.Reason{
				Code: ring.WhyNamespaceNotReady, On: ring.ID(v.app.Name, name), Dead: dead,
				Says: say("waits for %s: %s", name, why),
			}
		}
	}
	if id := v.want.Spec.Elsewhere(); id != "" {
		if why := t.elsewhereMissing(id); why != "" {
			return ring.Reason{Code: ring.WhyNamespaceNotReady, On: id, Says: say("waits for %s: %s", id, why)}
		}
	}
	if why := t.gateOf(v, owners); !why.None() {
		return why
	}
	if why := t.gateOfTied(v); !why.None() {
		return why
	}
	for _, after := range v.app.After {
		f, ok := t.Facts.Apps[after.App]
		if !ok {
			return ring.Reason{Code: ring.WhyAppNotReady, Says: say("waits for app %s, which is not there yet", after.App)}
		}
		for i := range f.App.Services {
			if why, dead := t.missingUntil(&f.App, &f.App.Services[i], after.Until); why != "" {
				return ring.Reason{
					Code: ring.WhyAppNotReady, On: ring.ID(after.App, f.App.Services[i].Name), Dead: dead,
					Says: say("waits for app %s: %s %s", after.App, f.App.Services[i].Name, why),
				}
			}
		}
	}
	return ring.Reason{}
}

// gateOf is what a service of its own waits for; what it is tied to, and so
// moves with, is not that.
func (t *Pass) gateOf(v *service, tied []string) ring.Reason {
	for _, d := range v.want.DependsOn {
		dep, ok := inForce(v.app, d.Service)
		if !ok || d.Optional && dep.Replicas == 0 || slices.Contains(tied, d.Service) && !dep.Kind.Ends() || d.Service == v.want.Before {
			continue
		}
		if why, dead := t.missingUntil(v.app, dep, d.Until); why != "" {
			return ring.Reason{
				Code: ring.WhyDependencyNotReady, On: ring.ID(v.app.Name, d.Service), Dead: dead,
				Says: say("waits for %s: %s", d.Service, why),
			}
		}
	}
	for _, name := range v.want.Spec.Follows {
		leader, ok := inForce(v.app, name)
		if !ok || slices.Contains(tied, name) {
			continue
		}
		until := ring.ReadyDep
		if leader.Kind == ring.JobK {
			until = ring.Completed
		}
		if why, dead := t.missingUntil(v.app, leader, until); why != "" {
			return ring.Reason{
				Code: ring.WhyDependencyNotReady, On: ring.ID(v.app.Name, name), Dead: dead,
				Says: say("waits for %s, which it follows: %s", name, why),
			}
		}
	}
	return ring.Reason{}
}

// gateOfTied is what keeps those from moving that would be stopped with v: they
// are one step, so v does not move before they can.
func (t *Pass) gateOfTied(v *service) ring.Reason {
	if v.group == nil || v.good == nil {
		return ring.Reason{}
	}
	var names []string
	for _, m := range v.group.members {
		names = append(names, m.want.Name)
	}
	for _, m := range v.group.members {
		if m == v || !slices.ContainsFunc(m.instances, func(in *instance) bool { return in.Live() }) {
			continue
		}
		if m.failed != nil {
			return ring.Reason{
				Code: ring.WhyGroupNotReady, On: m.id, Dead: true,
				Says: say("%s, which is tied to it, failed: %s", m.want.Name, m.failed.Reason),
			}
		}
		outside := *m
		outside.want = withoutDependencies(m.want, func(name string) bool { return slices.Contains(names, name) || t.dependsOnAny(v.app, name, names) })
		if why := t.gateOf(&outside, nil); !why.None() {
			return ring.Reason{
				Code: ring.WhyGroupNotReady, On: why.On, Dead: why.Dead,
				Says: say("%s, which is tied to it, %s", m.want.Name, why.Says),
			}
		}
	}
	return ring.Reason{}
}

// withoutDependencies is s without the dependencies that skip names.
func withoutDependencies(s *ring.Service, skip func(string) bool) *ring.Service {
	out := *s
	out.DependsOn = slices.DeleteFunc(slices.Clone(s.DependsOn), func(d ring.Dependency) bool { return skip(d.Service) })
	out.Spec.Follows = slices.DeleteFunc(slices.Clone(s.Spec.Follows), skip)
	return &out
}

// dependsOnAny reports whether a service of app depends on one of names, at whatever distance.
func (t *Pass) dependsOnAny(app *ring.App, name string, names []string) bool {
	met := map[string]bool{}
	var visit func(string) bool
	visit = func(n string) bool {
		if met[n] {
			return false
		}
		met[n] = true
		s, _ := app.Service(n)
		next := append(s.Spec.Leaders(), dependenciesOf(&s)...)
		return slices.ContainsFunc(next, func(d string) bool { return slices.Contains(names, d) || visit(d) })
	}
	return visit(name)
}

func dependenciesOf(s *ring.Service) []string {
	var out []string
	for _, d := range s.DependsOn {
		out = append(out, d.Service)
	}
	if s.Before != "" {
		out = append(out, s.Before)
	}
	return out
}

// missingUntil is what is missing until a service has come as far as until; "" when
// it has.
func (t *Pass) missingUntil(app *ring.App, s *ring.Service, until ring.Until) (why string, dead bool) {
	id := ring.ID(app.Name, s.Name)
	switch s.Kind {
	case ring.JobK:
		return t.jobReached(id, s, until)
	case ring.CronK: // it runs when it is due, which nobody waits for
		return "", false
	}
	if d, ok := t.Facts.Verdict(id, s.Version); ok && !d.Good {
		return "failed: " + d.Reason, true
	}
	if s.Replicas == 0 {
		return "", false
	}
	s = t.onNodes(s)
	row := t.Facts.Rollouts[id]
	live, ready := 0, 0
	for _, in := range t.seen[id] {
		if in.Version != s.Version || !in.holdsSlot() {
			continue
		}
		if in.Live() {
			live++
		}
		if in.ready {
			ready++
		}
	}
	_, down := roomOf(s.Rollout, s.Replicas)
	switch {
	case until == ring.Started && live > 0:
		return "", false
	case until == ring.Started:
		return "not started", false
	case row.Version == s.Version && row.Done && ready >= max(1, s.Replicas-down):
		if s.Route != nil {
			return t.frontLacks(id), false
		}
		return "", false
	}
	return readySays(ready, s.Replicas), false
}

func readySays(ready, wanted int) string {
	return strconv.Itoa(ready) + "/" + strconv.Itoa(wanted) + " ready"
}
