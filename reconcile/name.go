package reconcile

import (
	"slices"
	"time"

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
			if t.lengthenName(x) {
				return true
			}
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

// While a rollout goes on, a container is called after its version: two versions of one
// slot may be there, and the name is what the engine lets nobody have twice. Once it is
// over, what serves has the name that people know from Compose. It is taken where nobody
// has it and no container_name of a plan asks for it; nothing waits for it. A front keeps the
// name that it was made under: its folders are found by it.

// longNamed is an instance that serves and is still called after its version.
func (t *Pass) longNamed(v *service, in *instance) outcome {
	if !v.rollout.Done || in.Version != v.target.Version || in.intent != "" || in.State != ring.StateRunning ||
		in.Slot < 1 || in.Slot > v.target.Replicas || v.target.Spec.ContainerName != "" || v.target.FrontOf != "" || t.adoptedRow(in) != nil ||
		!ring.IsContainerName(in.Name, in.App, in.Service, in.Slot, in.Version) {
		return outcome{}
	}
	return outcome{then: note, move: move{kind: moveShorten, in: in}}
}

// shortenName gives an instance the name that Compose gives.
func (t *decider) shortenName(v *service, in *instance) {
	name := ring.ComposeName(in.App, in.Service, in.Slot)
	if t.isClaimedName(name) {
		return
	}
	a := t.stepOn(v, ring.DoName, in, "its rollout is over")
	a.NewName = name
	if try, ok := t.Tries[tryKey(a)]; ok && sameTry(try, a) && t.now.Before(try.Next) {
		return // no look is made for it alone
	}
	t.addStep(a)
}

// lengthenName has an instance give up the name that Compose gives. It reports whether that
// is under way; of any other name it is not.
func (t *decider) lengthenName(in *ring.Instance) bool {
	if !ring.IsComposeName(in.Name, in.App, in.Service, in.Slot) {
		return false
	}
	a := ring.Action{
		Kind: ring.DoName, App: in.App, Service: in.Service, Slot: in.Slot, Version: in.Version, Commit: in.Commit,
		Instance: in.ID, Name: in.Name, NewName: ring.ContainerName(in.App, in.Service, in.Slot, in.Version), Reason: "its name is asked for",
	}
	return t.addStep(a) || t.isBusy(a.Target())
}

// isClaimedName reports whether a name is the container_name of a service of any app in force.
func (t *Pass) isClaimedName(name string) bool {
	return slices.ContainsFunc(t.namersOf(name), func(v *service) bool {
		return v.want.Spec.ContainerName == name || v.target.Spec.ContainerName == name
	})
}

// rememberName keeps that a name could not be had. It is no fault of anybody, and not told.
func rememberName(tries map[string]ring.Try, a ring.Action, err error, now time.Time) {
	delete(tries, tryKey(a))
	if err != nil {
		tries[tryKey(a)] = ring.Try{Kind: a.Kind, Version: a.Version, Name: a.Name, N: 1, At: now, Next: now.Add(nameAgain)}
	}
}
