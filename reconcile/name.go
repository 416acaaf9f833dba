package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// A container_name is taken by rename, because two containers cannot have it
// and the new one is made while the old one serves: first the old one gives it
// up, then the new one takes it, then that starts.

// giveName takes the steps that give in the name its spec asks for. It says
// whether in has to wait for them before it starts. A name that somebody else
// holds is told and tried again, and the instance starts under its own: what
// can serve, serves.
func (t *decider) giveName(v *service, in *instance) bool {
	s := v.specOf(in)
	if s == nil || s.Spec.ContainerName == "" || in.Name == s.Spec.ContainerName {
		return false
	}
	name := s.Spec.ContainerName
	for i := range t.Seen.Instances {
		x := &t.Seen.Instances[i]
		if x.Name != name || x.ID == in.ID {
			continue
		}
		if x.App != in.App || x.Service != in.Service {
			v.missing = say("the name %s is still that of %s/%s", name, x.App, x.Service)
			return false // it gives it up when it goes
		}
		k := slices.IndexFunc(v.instances, func(y *instance) bool { return y.ID == x.ID })
		return k < 0 || t.renameInstance(v, v.instances[k], ring.ContainerName(x.App, x.Service, x.Slot, x.Version), say("%s takes its name", in.Name))
	}
	return t.renameInstance(v, in, name, "container_name "+name)
}

// renameInstance gives an instance a name. It reports whether that is under way, or may
// still come about soon.
func (t *decider) renameInstance(v *service, in *instance, name, why string) bool {
	a := t.stepOn(v, ring.DoRename, in, why)
	a.NewName = name
	if t.addStep(a) || t.isBusy(a.Target()) {
		return true
	}
	try := t.Tries[tryKey(a)]
	if try.Kind != ring.DoRename {
		return true
	}
	v.missing = try.Err
	return try.Refusal == nil && !try.Permanent && try.N < 3
}

// unnamedInstance is the instance that serves: it takes the name, once that is free.
func (t *Pass) unnamedInstance(v *service, in *instance) outcome {
	if in.Version != v.target.Version || in.Slot != 1 || !in.Live() || in.intent != "" {
		return outcome{}
	}
	return trying(move{kind: moveRename, in: in})
}
