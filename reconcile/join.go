package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// fate are the services that are tied together: one joins the namespaces of
// another, or takes its volumes. They are one step and one verdict.
type fate struct{ of []*service }

// bind ties the services of an app, in force or as they last were good.
func (t *Pass) bind(all []service) {
	for i := range all {
		v := &all[i]
		owners := v.want.Spec.Owners()
		if v.good != nil {
			owners = append(owners, v.good.Service.Spec.Owners()...)
		}
		for _, name := range owners {
			if o := t.views[ring.ID(v.app.Name, name)]; o != nil && o != v {
				t.tie(v, o)
			}
		}
	}
}

func (t *Pass) tie(v, o *service) {
	if o.fate == nil {
		o.fate = &fate{of: []*service{o}}
		t.fates = append(t.fates, o.fate)
	}
	if v.fate == o.fate {
		return
	}
	if v.fate == nil {
		v.fate = o.fate
		o.fate.of = append(o.fate.of, v)
		return
	}
	gone := v.fate
	for _, m := range gone.of {
		m.fate = o.fate
	}
	o.fate.of = append(o.fate.of, gone.of...)
	gone.of = nil
}

// weighFates chooses targets and gives verdicts for all that is tied together
// before any of it is decided: what fails one fails the others.
func (t *decider) weighFates() {
	for _, f := range t.fates {
		if len(f.of) == 0 {
			continue
		}
		order := leadersFirst(f.of[0].app)
		place := func(v *service) int {
			return slices.IndexFunc(order, func(i int) bool { return v.app.Services[i].Name == v.want.Name })
		}
		slices.SortFunc(f.of, func(a, b *service) int { return place(a) - place(b) })
		for _, v := range f.of {
			t.weigh(v)
		}
	}
}

// owner is the instance of a service that the instance of a slot is tied to,
// as it should be now; nil while there is none.
func (t *Pass) owner(app, service string, slot int) (*service, *inst) {
	o := t.views[ring.ID(app, service)]
	if o == nil {
		return nil, nil
	}
	if slot > o.target.Replicas {
		slot = 1
	}
	return o, o.inSlot(slot)
}

// left is an owner that left the plan and stays for what comes back to it.
func (t *Pass) left(app, service string, slot int) *inst {
	var of []*inst
	for _, in := range t.seen[ring.ID(app, service)] {
		if in.Slot == slot {
			of = append(of, in)
		}
	}
	if len(of) == 0 && slot != 1 {
		return t.left(app, service, 1)
	}
	for _, in := range of {
		if in.Live() && in.intent == "" {
			return in
		}
	}
	return nil
}

// joinable says that an instance can be tied to: it serves, or it did what it
// was there for and holds its volumes.
func (t *Pass) joinable(o *service, in *inst) bool {
	if in == nil || in.intent != "" || t.apart(in) {
		return false
	}
	if o.want.Kind.Ends() {
		run, _ := t.jobRun(o.id, o.want)
		return in.Live() || run.State == jobSucceeded
	}
	return in.ready || t.rests(o, in)
}

// lends says that services of the plan take their volumes from v.
func (v *service) lends() bool {
	return slices.ContainsFunc(v.app.Services, func(s ring.Service) bool { return slices.Contains(s.Spec.Owners(), v.want.Name) })
}

// owners are the containers that a new instance of a slot is tied to, or why it
// has to wait for one of them.
func (t *Pass) owners(v *service, slot int) (map[string]string, string) {
	var out map[string]string
	for _, name := range v.target.Spec.Owners() {
		o, in := t.owner(v.app.Name, name, slot)
		if o == nil {
			in = t.left(v.app.Name, name, slot)
		}
		if o == nil && in == nil {
			return nil, say("waits for %s, which is not in the plan", name)
		}
		if o != nil && !t.joinable(o, in) {
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
	case !t.filled(o):
		return "not ready", false
	}
	return "", false
}

// apart says that an instance cannot be started: what it is tied to is not
// there, or about to be another.
func (t *Pass) apart(in *inst) bool {
	for _, id := range in.Joined {
		y := t.instance(id)
		if y == nil {
			return true
		}
		o, current := t.owner(y.App, y.Service, y.Slot)
		if o == nil && y.Live() && y.intent == "" {
			continue // it left the plan, and stays for as long as it is needed
		}
		if o != nil && !o.waits.None() && o.good == nil && current == nil && y.State == ring.StateRunning && y.intent == "" {
			continue // nothing takes its place yet, and with its version its checks are forgotten
		}
		if o == nil || current == nil || current.ID != id || !t.joinable(o, current) {
			return true
		}
	}
	return false
}

// cutInstance mends what is tied to a container that is not what it was. One that
// was replaced cannot be joined again (the engine ties by ID), so the instance
// is made anew; one that was started again has new namespaces, so the instance
// is restarted. Both wait until the owner is ready.
func (t *Pass) cutInstance(v *service, in *inst) outcome {
	if len(in.Joined) == 0 || !in.holds() {
		return outcome{}
	}
	if name := t.replaced(v, in); name != "" {
		return clearing(in, say("%s is another container now", name))
	}
	if in.State != ring.StateRunning || in.intent != "" || v.want.Kind.Ends() {
		return outcome{}
	}
	why := t.cut(v, in)
	if why == "" {
		return outcome{}
	}
	o := noting(ring.Intent{Instance: in.ID, Kind: intentRejoin, Reason: why, At: t.now})
	if !t.apart(in) {
		o.then, o.move = stop, move{kind: moveRestart, in: in, why: why}
	}
	return o
}

// replaced is the owner whose container an instance of the target is not tied
// to any more; "" when there is none, or nothing would take the instance's place.
func (t *Pass) replaced(v *service, in *inst) string {
	if in.Version != v.target.Version || v.stopped() || !v.waits.None() && v.good == nil {
		return ""
	}
	if v.want.Kind.Ends() && in.State != ring.StateCreated {
		return ""
	}
	for _, name := range v.target.Spec.Owners() {
		o, y := t.owner(v.app.Name, name, in.Slot)
		if o == nil {
			if y = t.left(v.app.Name, name, in.Slot); y != nil && t.apart(in) && !slices.Contains(in.Joined, y.ID) {
				return name
			}
			continue
		}
		if t.joinable(o, y) && !slices.Contains(in.Joined, y.ID) {
			return name
		}
	}
	return ""
}

// cutOff are the facts that what is tied to in has lost its namespaces: the engine
// counts its restarts, which tells of one also where two times do not, because the
// clock was set back between them and nobody looked meanwhile.
func (t *Pass) cutOff(in *inst) (lost []ring.Fact) {
	for _, j := range t.ties[in.ID] {
		v := t.views[ring.ID(j.App, j.Service)]
		if v == nil || v.want.Kind.Ends() || j.State != ring.StateRunning || j.intent != "" || !v.inside(j, in.Service) {
			continue
		}
		if j.Started.After(in.Started) && !j.Started.After(t.now) { // a start that is yet to come is one before the clock was set back
			continue
		}
		lost = append(lost, ring.Intent{Instance: j.ID, Kind: intentRejoin, Reason: say("%s was started again by the engine", in.Name), At: t.now})
	}
	return lost
}

// inside says that in is in namespaces of a service, not only on its volumes.
func (v *service) inside(in *inst, of string) bool {
	s := v.runs(in)
	return s == nil || of == s.Spec.NetworkOf || of == s.Spec.PIDOf || of == s.Spec.IPCOf
}

// cut is why the namespaces that an instance is in are none any more; "" when
// they are. It is written down as soon as it is seen, because nothing tells it
// later: times of the engine are of a clock that may jump.
func (t *Pass) cut(v *service, in *inst) string {
	for _, id := range in.Joined {
		y := t.instance(id)
		if y == nil {
			continue // replaced says so once there is another
		}
		if !v.inside(in, y.Service) {
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

// runs is the service as an instance runs it, nil for a version that is not known.
func (v *service) runs(in *inst) *ring.Service {
	switch {
	case in.Version == v.want.Version:
		return v.want
	case v.good != nil && in.Version == v.good.Service.Version:
		return &v.good.Service
	}
	return nil
}

// tiedUp reports whether something has to stop before an instance does.
func (t *Pass) tiedUp(in *inst) bool {
	return slices.ContainsFunc(t.ties[in.ID], func(x *inst) bool { return x.Live() || x.restartable() })
}

// untie stops what is tied to an instance before that stops or goes. It says
// whether there is something to wait for. A run of a job is never cut short.
func (t *decider) untie(in *inst, why string) bool {
	wait := false
	for _, x := range t.ties[in.ID] {
		if !x.Live() && !x.restartable() {
			continue
		}
		wait = true
		id := ring.ID(x.App, x.Service)
		if t.handsOff(id) {
			continue // a person holds it, and so what it is tied to
		}
		if x.Kind.Ends() || x.intent == intentRemove || x.intent == intentStop || t.busy(string(id)) {
			continue // it goes by itself
		}
		says := say("it is tied to %s, which stops: %s", in.Name, why)
		if v := t.views[id]; v != nil {
			t.clear(v, x, v.keep(x), says)
			continue
		}
		t.set(ring.Intent{Instance: x.ID, Kind: intentPark, Reason: says, At: t.now})
		t.do(ring.Action{
			Kind: ring.DoStop, App: x.App, Service: x.Service, Slot: x.Slot, Version: x.Version, Commit: x.Commit,
			Instance: x.ID, Name: x.Name, Reason: says, Grace: x.ownGrace(),
		})
	}
	return wait
}

// filled says that the target has every slot, ready; what is old may still be there.
func (t *Pass) filled(v *service) bool {
	for slot := 1; slot <= v.target.Replicas; slot++ {
		if in := v.inSlot(slot); in == nil || !in.ready && !t.rests(v, in) {
			return false
		}
	}
	return true
}

// whole says that all that is replaced together with v has come as far as
// done says. What waits for something else, or failed, is not waited for.
func (t *Pass) whole(v *service, done func(*service) bool) bool {
	if v.fate == nil || v.target != v.want {
		return true
	}
	for _, m := range v.fate.of {
		if m != v && m.moves() && !done(m) {
			return false
		}
	}
	return true
}

// moves says that a rollout of the wanted version is under way.
func (v *service) moves() bool {
	return !v.want.Kind.Ends() && v.failed == nil && v.row.Version == v.want.Version && !v.row.Done
}

// failTied gives the verdict on v to all that is replaced together with it.
func (t *decider) failTied(v *service, reason ring.Reason) {
	if v.fate == nil {
		return
	}
	for _, m := range v.fate.of {
		begun := m.row.Version == m.want.Version
		if m == v || m.want.Kind.Ends() || m.failed != nil || begun && m.row.Done {
			continue
		}
		if m.good != nil && m.good.Service.Version == m.want.Version {
			continue // it is not replaced
		}
		commit := m.app.Commit
		if begun {
			commit = m.row.Commit
		}
		t.verdict(m, commit, ring.Reason{Code: ring.WhyGroupNotReady, On: v.id, Says: say("%s: %s", v.want.Name, reason.Says)})
	}
	for _, m := range v.fate.of {
		t.choose(m)
	}
}

// onFailure is what follows a failure; for services that are tied together, the
// safest of what they say.
func (v *service) onFailure() string {
	if v.fate == nil {
		return v.want.Rollout.OnFailure
	}
	out := ring.OnFailureContinue
	for _, m := range v.fate.of {
		switch {
		case m.want.Kind.Ends():
		case m.want.Rollout.OnFailure == ring.OnFailureRestore:
			return ring.OnFailureRestore
		case m.want.Rollout.OnFailure == ring.OnFailurePause:
			out = ring.OnFailurePause
		}
	}
	return out
}
