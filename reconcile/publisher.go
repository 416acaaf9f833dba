package reconcile

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// A service that gets a front publishes its port itself until then. Who has the port, and who
// is to have it, is read here; nothing here decides. The moves are those of handport.go.

// serviceBehind is the service whose front v is; nil where v is none, or that service is not there.
func (t *Pass) serviceBehind(v *service) *service {
	if !v.isFront() {
		return nil
	}
	return t.views[ring.ID(v.app.Name, v.want.FrontOf)]
}

// frontPorts are the ports of the host that the front of v is to publish.
func (v *service) frontPorts() []string {
	front, _ := v.app.Service(v.want.HasFront())
	return portsOf(&front)
}

// publishersOf are the instances of v that were started and publish what its front is to
// publish: what serves, or did, until the front does.
func (t *Pass) publishersOf(v *service) []*instance {
	if !v.hasFront() {
		return nil
	}
	var out []*instance
	ports := v.frontPorts()
	for _, in := range v.instances {
		if in.Version == v.want.Version || in.State == ring.StateCreated || in.isLeaving() || len(ports) == 0 {
			continue
		}
		if firstCommon(t.writtenAs(v.id, v, in), ports) != "" {
			out = append(out, in)
		}
	}
	return out
}

// comesFromDirect reports whether the last good version of v published what its front is to
// publish: there is nobody whom a front could share requests with.
func (v *service) comesFromDirect() bool {
	return v.hasFront() && v.good != nil && v.good.Service.Route == nil &&
		firstCommon(portsOf(&v.good.Service), v.frontPorts()) != ""
}

// isPortFree reports whether publishers have all stopped for the front, and are kept.
func isPortFree(publishers []*instance) bool {
	return len(publishers) > 0 && !slices.ContainsFunc(publishers, func(in *instance) bool {
		return in.Live() || in.intent != intentPark
	})
}

// frontTook reports whether a front of v has a table in force.
func (t *Pass) frontTook(v *service) bool {
	return slices.ContainsFunc(t.frontsOf(v.id), func(f toldFront) bool { return f.in.Live() && f.table != nil })
}

// needsPublisher reports whether an old instance is what serves, or would again: no front has
// taken what it publishes, or none reaches an instance.
func (t *Pass) needsPublisher(v *service, in *instance) bool {
	if !slices.Contains(t.publishersOf(v), in) || !v.waits.None() || v.wentBackPast(in) {
		return false
	}
	return !slices.ContainsFunc(t.frontsOf(v.id), func(f toldFront) bool {
		if !f.in.Live() || f.table == nil {
			return false
		}
		return v.want.Replicas == 0 || slices.ContainsFunc(v.instances, func(x *instance) bool {
			seen, _ := f.reached(ring.FrontName(x.ID))
			return x.Version == v.want.Version && x.ready && seen.Reached
		})
	})
}

// awaitsAdded is why the old instances of v stay for now: its front has no port of the host to
// take over, is added beside them, and is not ready yet. Who finds containers by their labels
// reaches them until then. "" where nothing waits.
func (t *Pass) awaitsAdded(v *service) string {
	switch {
	case v.want.Route == nil || v.target != v.want || v.failed != nil || !v.waits.None():
		return ""
	case v.good == nil || v.good.Service.Route != nil || len(v.frontPorts()) > 0:
		return ""
	case !slices.ContainsFunc(v.instances, func(in *instance) bool { return in.Live() && in.Version != v.want.Version && in.holdsSlot() }):
		return ""
	}
	front := t.views[frontID(v.id)]
	if front == nil || slices.ContainsFunc(front.instances, func(in *instance) bool { return in.ready && in.Version == front.want.Version }) {
		return ""
	}
	return "its front is not ready yet"
}

// wentBackPast reports whether v goes back to another version than that of an instance, and
// one of it is ready again.
func (v *service) wentBackPast(in *instance) bool {
	return v.target != v.want && in.Version != v.target.Version && slices.ContainsFunc(v.instances, func(x *instance) bool {
		return x.Version == v.target.Version && x.ready
	})
}

// keepsPort is why v does not give its port to its front now; "" where it may.
func (t *Pass) keepsPort(v *service) string {
	if t.handsOff(v.id) || !v.pausedBy.None() || v.rollout.Version != v.want.Version || v.rollout.Done {
		return say("%s does not move now", v.want.Name)
	}
	exclusive := v.isExclusive()
	for slot := 1; slot <= v.want.Replicas; slot++ {
		in := v.inSlot(slot)
		switch {
		case in == nil && exclusive:
			return say("slot %d of %s is not made yet", slot, v.want.Name)
		case exclusive:
			return "" // the others are made as it starts
		case in == nil || !in.ready:
			return say("slot %d of %s is not ready yet", slot, v.want.Name)
		}
	}
	return ""
}

// takesPortBack reports whether the front of v has to give the port up, because what v goes
// back to publishes it and is there.
func (t *Pass) takesPortBack(v *service) bool {
	if !v.hasFront() || v.failed == nil && v.waits.None() {
		return false
	}
	if v.target != v.want {
		return firstCommon(portsOf(v.target), v.frontPorts()) != "" &&
			slices.ContainsFunc(v.instances, func(in *instance) bool { return in.Version == v.target.Version && !in.isLeaving() })
	}
	return v.failed != nil && len(t.publishersOf(v)) > 0 && !t.frontTook(v)
}

// portGate is why a front may not be made yet, or has to go: its service publishes the port
// itself, and serves by it.
func (t *Pass) portGate(v *service) ring.Reason {
	b := t.serviceBehind(v)
	if b == nil {
		return ring.Reason{}
	}
	why := ring.Reason{Code: ring.WhyTransferPending, On: b.id}
	if t.takesPortBack(b) {
		why.Says = say("gives its port back to %s", b.want.Name)
		return why
	}
	publishers := t.publishersOf(b)
	if len(publishers) == 0 || isPortFree(publishers) || t.frontTook(b) {
		return ring.Reason{}
	}
	if keeps := cmp.Or(b.waits.Says, t.keepsPort(b)); keeps != "" || b.failed != nil {
		why.Says = say("waits for %s to let go of its port: %s", b.want.Name, cmp.Or(keeps, "its rollout failed"))
		return why
	}
	return ring.Reason{}
}

// frontMade is why nobody may stop for a front yet: it is not made, or a start of it waits;
// "" where it only has to be started.
func (t *Pass) frontMade(v *service) string {
	front := t.views[frontID(v.id)]
	if front == nil {
		return "its front is not planned yet"
	}
	for _, in := range front.instances {
		if in.Version != front.want.Version || in.isLeaving() {
			continue
		}
		for _, key := range []string{string(front.id), string(front.id) + " " + in.Name} {
			if try := t.Tries[key]; t.now.Before(try.Next) {
				t.wakeBy(try.Next)
				return say("its front cannot start: %s", try.Err)
			}
		}
		return ""
	}
	return "its front is not made yet"
}

// How long a front has to take its table once the port is free for it: one that answers takes
// it at once, and one that does not may be on a busy host.
const (
	answersWithin = 5 * time.Second
	silentWithin  = 15 * time.Second
)

// portNotTaken is why the front of v does not serve though the port was given up for it, or
// never will; "" where it does, or may yet.
func (t *Pass) portNotTaken(v *service) string {
	publishers := t.publishersOf(v)
	front := t.views[frontID(v.id)]
	if len(publishers) == 0 && t.awaitsAdded(v) == "" || front == nil || !v.waits.None() || v.rollout.Done || v.rollout.Version != v.want.Version {
		return ""
	}
	if d, failed := t.failedVerdict(front); failed && !d.At.Before(v.rollout.Began) {
		return "its front failed: " + d.Reason
	}
	took := t.frontTook(v)
	if len(publishers) == 0 || !isPortFree(publishers) || took && (v.isExclusive() || !t.needsPublisher(v, publishers[0])) {
		return ""
	}
	if front.rollout.Version != front.want.Version {
		return "" // it may not be made yet: the port was free before this rollout
	}
	since, limit, says := laterOf(v.rollout.Began, front.rollout.Began), silentWithin, "its front does not answer"
	for _, in := range publishers {
		since = laterOf(since, t.Facts.Intents[in.ID].At)
		if !in.Finished.After(t.now) {
			since = laterOf(since, in.Finished)
		}
	}
	try := t.Tries[string(front.id)]
	if (try.Kind == ring.DoStart || try.Kind == ring.DoCreate) && try.At.After(since) && try.Version == front.want.Version {
		return say("its front cannot start: %s", try.Err)
	}
	if t.isBusy(string(front.id)) {
		return ""
	}
	for _, in := range front.instances {
		if in.State != ring.StateRunning || in.Version != front.want.Version {
			continue
		}
		since = laterOf(since, in.Since)
		if _, answers := t.Fronts[in.ID]; answers && !took {
			route := ring.Action{Kind: ring.DoRoute, App: v.app.Name, Service: v.want.Name, Instance: in.ID}
			if !t.Tries[route.Target()].At.After(in.Since) {
				return "" // it is told its table now
			}
			limit, says = answersWithin, "its front did not take its table"
		}
	}
	if took {
		says = "its front reaches no instance"
	}
	until := laterOf(since, t.Awake).Add(limit)
	if t.now.Before(until) {
		t.wakeBy(until)
		return ""
	}
	return say("%s within %s", says, limit)
}
