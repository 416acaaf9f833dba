package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// fate are the services that are tied together: one joins the namespaces of
// another, or takes its volumes. They are one step and one verdict.
type group struct{ members []*service }

// groupServices ties the services of an app, in force or as they last were good.
func (t *Pass) groupServices(all []service) {
	for i := range all {
		v := &all[i]
		owners := v.want.Spec.Owners()
		if v.good != nil {
			owners = append(owners, v.good.Service.Spec.Owners()...)
		}
		for _, name := range owners {
			if o := t.views[ring.ID(v.app.Name, name)]; o != nil && o != v {
				t.joinGroups(v, o)
			}
		}
	}
}

func (t *Pass) joinGroups(v, o *service) {
	if o.group == nil {
		o.group = &group{members: []*service{o}}
		t.groups = append(t.groups, o.group)
	}
	if v.group == o.group {
		return
	}
	if v.group == nil {
		v.group = o.group
		o.group.members = append(o.group.members, v)
		return
	}
	gone := v.group
	for _, m := range gone.members {
		m.group = o.group
	}
	o.group.members = append(o.group.members, gone.members...)
	gone.members = nil
}

// tieID is the service that one of app names in ring.Spec.Ties.
func tieID(app, name string) ring.ServiceID {
	if strings.Contains(name, "/") {
		return ring.ServiceID(name)
	}
	return ring.ID(app, name)
}

// providerOf is the instance of a service that the instance of a slot is tied to,
// as it should be now; nil while there is none.
func (t *Pass) providerOf(app, service string, slot int) (*service, *instance) {
	o := t.views[tieID(app, service)]
	if o == nil {
		return nil, nil
	}
	if slot > o.target.Replicas {
		slot = 1
	}
	return o, o.inSlot(slot)
}

// providerLeft is an owner that left the plan and stays for what comes back to it.
func (t *Pass) providerLeft(app, service string, slot int) *instance {
	var of []*instance
	for _, in := range t.seen[tieID(app, service)] {
		if in.Slot == slot {
			of = append(of, in)
		}
	}
	if len(of) == 0 && slot != 1 {
		return t.providerLeft(app, service, 1)
	}
	for _, in := range of {
		if in.Live() && in.intent == "" {
			return in
		}
	}
	return nil
}

// canBeJoined reports whether an instance can be tied to: it serves, or it did what it
// was there for and holds its volumes.
func (t *Pass) canBeJoined(o *service, in *instance) bool {
	if in == nil || in.intent != "" || t.providerMissing(in) {
		return false
	}
	if o.want.Kind.Ends() {
		run, _ := t.jobRun(o.id, o.want)
		return in.Live() || run.State == jobSucceeded
	}
	return in.ready || t.isResting(o, in)
}

// lendsVolumes reports whether services of the plan take their volumes from v.
func (v *service) lendsVolumes() bool {
	return slices.ContainsFunc(v.app.Services, func(s ring.Service) bool { return slices.Contains(s.Spec.Owners(), v.want.Name) })
}

// providersFor are the containers that a new instance of a slot is tied to, or why it
// has to wait for one of them.
func (t *Pass) providersFor(v *service, slot int) (map[string]string, string) {
	var out map[string]string
	for _, name := range v.target.Spec.Ties() {
		o, in := t.providerOf(v.app.Name, name, slot)
		if o == nil {
			in = t.providerLeft(v.app.Name, name, slot)
		}
		if o == nil && in == nil {
			return nil, say("waits for %s, which is not in the plan", name)
		}
		if o != nil && !t.canBeJoined(o, in) {
			return nil, say("waits for %s: not ready", name)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = in.ID
	}
	return out, ""
}

// ownerReached is what is missing until the owner of a new version is the one
// that it was made for; "" when nothing is.
func (t *Pass) ownerReached(v *service, name string) (why string, dead bool) {
	o := t.views[ring.ID(v.app.Name, name)]
	switch {
	case o == nil:
		return "not in the plan", true
	case o.want.Kind.Ends():
		return t.jobReached(o.id, o.want, ring.Started)
	case o.failed != nil:
		return "failed: " + o.failed.Reason, true
	case !o.waits.None():
		return o.waits.Says, o.waits.Dead
	case !t.isFilled(o):
		return "not ready", false
	}
	return "", false
}

// elsewhereMissing is what is missing until a service of another app can be joined; "" when
// nothing is. What that app waits for, or failed with, is its own: this one only waits.
func (t *Pass) elsewhereMissing(id ring.ServiceID) string {
	app, name := id.Split()
	switch o, in := t.providerOf(app, name, 1); {
	case o == nil && t.providerLeft(app, name, 1) == nil:
		return "not there yet"
	case o != nil && (!t.isFilled(o) || !t.canBeJoined(o, in)):
		return "not ready"
	}
	return ""
}

// providerMissing reports whether an instance cannot be started: what it is tied to is not
// there, or about to be another.
func (t *Pass) providerMissing(in *instance) bool {
	for _, id := range in.Joined {
		y := t.instanceByID(id)
		if y == nil {
			return true
		}
		o, current := t.providerOf(y.App, y.Service, y.Slot)
		if o == nil && y.Live() && y.intent == "" {
			continue // it left the plan, and stays for as long as it is needed
		}
		if o != nil && !o.waits.None() && o.good == nil && current == nil && y.State == ring.StateRunning && y.intent == "" {
			continue // nothing takes its place yet, and with its version its checks are forgotten
		}
		if o == nil || current == nil || current.ID != id || !t.canBeJoined(o, current) {
			return true
		}
	}
	return false
}

// cutInstance mends what is tied to a container that is not what it was. One that
// was replaced cannot be joined again (the engine ties by ID), so the instance
// is made anew; one that was started again has new namespaces, so the instance
// is restarted. Both wait until the owner is ready.
func (t *Pass) cutInstance(v *service, in *instance) outcome {
	if len(in.Joined) == 0 || !in.holdsSlot() {
		return outcome{}
	}
	if name := t.providerReplaced(v, in); name != "" {
		return clearing(in, say("%s is another container now", name))
	}
	if in.State != ring.StateRunning || in.intent != "" || v.want.Kind.Ends() {
		return outcome{}
	}
	why := t.namespaceLost(v, in)
	if why == "" {
		return outcome{}
	}
	o := noting(ring.Intent{Instance: in.ID, Kind: intentRejoin, Reason: why, At: t.now})
	if !t.providerMissing(in) {
		o.then, o.move = stop, move{kind: moveRestart, in: in, why: why}
	}
	return o
}

// providerReplaced is the owner whose container an instance of the target is not tied
// to any more; "" when there is none, or nothing would take the instance's place.
func (t *Pass) providerReplaced(v *service, in *instance) string {
	if in.Version != v.target.Version || v.hasStopped() || !v.waits.None() && v.good == nil {
		return ""
	}
	if v.want.Kind.Ends() && in.State != ring.StateCreated {
		return ""
	}
	for _, name := range v.target.Spec.Ties() {
		o, y := t.providerOf(v.app.Name, name, in.Slot)
		if o == nil {
			if y = t.providerLeft(v.app.Name, name, in.Slot); y != nil && t.providerMissing(in) && !slices.Contains(in.Joined, y.ID) {
				return name
			}
			continue
		}
		if t.canBeJoined(o, y) && !slices.Contains(in.Joined, y.ID) {
			return name
		}
	}
	return ""
}

// namespacesLost are the facts that what is tied to in has lost its namespaces: the engine
// counts its restarts, which tells of one also where two times do not, because the
// clock was set back between them and nobody looked meanwhile.
func (t *Pass) namespacesLost(in *instance) (lost []ring.Fact) {
	for _, j := range append(slices.Clone(t.tied[in.ID]), t.elsewhere[in.ID]...) {
		v := t.views[ring.ID(j.App, j.Service)]
		if v == nil || v.want.Kind.Ends() || j.State != ring.StateRunning || j.intent != "" || !v.sharesNamespace(j, in) {
			continue
		}
		if j.Started.After(in.Started) && !j.Started.After(t.now) { // a start that is yet to come is one before the clock was set back
			continue
		}
		lost = append(lost, ring.Intent{Instance: j.ID, Kind: intentRejoin, Reason: say("%s was started again by the engine", in.Name), At: t.now})
	}
	return lost
}

// sharesNamespace reports whether in is in namespaces of an instance, not only on its volumes.
func (v *service) sharesNamespace(in, owner *instance) bool {
	s := v.specOf(in)
	of := owner.Service
	if owner.App != in.App {
		of = string(ring.ID(owner.App, owner.Service))
	}
	return s == nil || of == s.Spec.NetworkOf || of == s.Spec.PIDOf || of == s.Spec.IPCOf
}

// namespaceLost is why the namespaces that an instance is in are none any more; "" when
// they are. It is written down as soon as it is seen, because nothing tells it
// later: times of the engine are of a clock that may jump.
func (t *Pass) namespaceLost(v *service, in *instance) string {
	for _, id := range in.Joined {
		y := t.instanceByID(id)
		if y == nil {
			continue // replaced says so once there is another
		}
		if !v.sharesNamespace(in, y) {
			continue // its volumes are the same
		}
		switch {
		case y.Ended():
			return say("%s has ended", y.Name)
		case y.State == ring.StateRunning && y.Since.After(in.Since):
			return say("%s was started after it", y.Name)
		}
	}
	return ""
}

// tiedUp reports whether something has to stop before an instance does.
func (t *Pass) tiedUp(in *instance) bool {
	return slices.ContainsFunc(t.tied[in.ID], func(x *instance) bool { return x.Live() || x.mayRestart() })
}

// isFilled reports whether the target has every slot, ready; what is old may still be there.
func (t *Pass) isFilled(v *service) bool {
	for slot := 1; slot <= v.target.Replicas; slot++ {
		if in := v.inSlot(slot); in == nil || !in.ready && !t.isResting(v, in) {
			return false
		}
	}
	return true
}

// groupReached reports whether all that is replaced together with v has come as far as
// done says. What waits for something else, or failed, is not waited for.
func (t *Pass) groupReached(v *service, done func(*service) bool) bool {
	if v.group == nil || v.target != v.want {
		return true
	}
	for _, m := range v.group.members {
		if m != v && m.isRolling() && !done(m) {
			return false
		}
	}
	return true
}

// isRolling reports whether a rollout of the wanted version is under way.
func (v *service) isRolling() bool {
	return !v.want.Kind.Ends() && v.failed == nil && v.rollout.Version == v.want.Version && !v.rollout.Done
}

// leadersFirst is the order in which versions can be computed: a leader's is
// part of its followers'. Circles are refused when a plan is read.
func leadersFirst(app *ring.App) []int {
	out := make([]int, 0, len(app.Services))
	met := make([]bool, len(app.Services))
	var visit func(i int)
	visit = func(i int) {
		if met[i] {
			return
		}
		met[i] = true
		for _, name := range app.Services[i].Spec.Leaders() {
			if j := slices.IndexFunc(app.Services, func(s ring.Service) bool { return s.Name == name }); j >= 0 {
				visit(j)
			}
		}
		out = append(out, i)
	}
	for i := range app.Services {
		visit(i)
	}
	return out
}
