package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// What holds for a person who has a swarm, from the truth of the model:
//
//	I1  an update that we sent ends a task that serves only where so many others serve
//	I2  no more tasks run than the rollout's room allows
//	I5  a spec is the plan's or the last good one, of a commit that asks for it
//	I8  what served as a version failed is not ended by us
//
// And besides: a version that failed is not sent, nor a spec that is there already, and what a
// spec names is not removed. What nodes do that are lost is not our act.

// watchSwarm has the model tell what its updates do.
func (d *daemon) watchSwarm() {
	d.swarm.stopped, d.swarm.started = d.watchEnd, d.watchRoom
}

// watchSent holds a decided step on a swarm to what may be sent.
func (d *daemon) watchSent(a ring.Action, want *ring.Service) {
	s := d.swarm.services[a.App+"_"+a.Service]
	switch a.Kind {
	case ring.DoWords:
		for _, key := range sortedIDs(a.Words) {
			if w := a.Words[key]; w.State != d.swarm.record.Words[key].State { // else only that it was told is new
				d.watchSuccess(key, w.State, w.Description)
			}
		}
		return
	case ring.DoFileOff:
		for _, o := range d.swarm.services {
			for _, name := range o.names() {
				if name == a.Name {
					d.violate("S3: %s is to be removed, and %s names it", a.Name, o.Name)
				}
			}
		}
		return
	case ring.DoServeOff:
		if want != nil && !want.Kind.Ends() {
			d.violate("I5: %s is to be removed, and the plan in force has it", a.Target())
		}
		return
	}
	id := ring.ID(a.App, a.Service)
	if want == nil {
		d.violate("I5: send %s, which no plan in force wants", a.Target())
		return
	}
	good, hasGood := d.disk.Good[id]
	isGood := hasGood && a.Version == good.Service.Version
	if a.Version != want.Version && !isGood {
		d.violate("I5: send %s, neither wanted nor good", a.Target())
	}
	if !d.asks(a) {
		d.violate("I5: send %s for commit %s, which does not ask for it", a.Target(), a.Commit.Short())
	}
	if verdict, ok := d.disk.Verdicts[ring.VersionKey(id, a.Version)]; ok && !verdict.Good && !isGood {
		d.violate("quarantine: send %s, whose version failed", a.Target())
	}
	if s != nil && s.spec.version == a.Version && s.Update == ring.UpdatePaused && !isGood && !a.Anew {
		d.violate("%s paused, and is sent once more as it is: the swarm would keep the broken task of a slot", a.Target())
	}
	if s != nil && s.spec.version == a.Version && s.spec.settings == settingsSent(a) && s.spec.is == s.spec.sent && !s.stuck() {
		d.violate("sent twice: %s has that spec, and its update is %q", a.Target(), s.Update)
	}
}

// settingsSent is what of the spec of a step changes in place.
func settingsSent(a ring.Action) string {
	return ring.ClusterSettings(a.Want, a.Of.Alone(a.Want) != "")
}

// stuck reports whether the swarm has a spec and does not go on with it.
func (s *swarmService) stuck() bool {
	left := s.u == nil && slices.ContainsFunc(s.tasks, func(x *swarmTask) bool { return !x.leaves && s.isDirty(x) })
	return s.Update != ring.UpdateRunning && s.Update != ring.UpdateCompleted && s.Update != "" || s.deaf || left
}

// answers reports whether a task serves, as far as anybody can reach it.
func (d *daemon) answers(x *swarmTask) bool {
	return d.ready(x.box) && x.placed && x.node.gone.IsZero()
}

// watchEnd holds the end of a task by an update, a count or a removal to I1 and I8.
func (d *daemon) watchEnd(s *swarmService, x *swarmTask, why string) {
	want, id := d.wantOf(s.App, s.Service), ring.ID(s.App, s.Service)
	if why == "drained" || why == "removed" || why == "removed by hand" || want == nil || !d.answers(x) || s.handled {
		return
	}
	if d.protect[id][x.ID] && x.template == string(x.version) { // else it is of a spec that somebody changed
		d.violate("I8: %s is ended after the rollout failed", x.Name)
	}
	good, hasGood := d.disk.Good[id]
	if !hasGood || s.stopsFirst() || d.alone(s.App, &good.Service) || d.alone(s.App, want) {
		return
	}
	ready := 0
	for _, y := range s.tasks {
		if y != x && d.answers(y) {
			ready++
		}
	}
	n := min(d.countOn(s, want), d.countOn(s, &good.Service))
	if n = min(n, d.countOn(s, s.spec.want)); s.prev != nil {
		n = min(n, d.countOn(s, s.prev.want)) // what comes on top is no loss while it is on its way
	}
	// What the swarm does of itself with what ended or is lost is not our act.
	if _, down := bounds(want.Rollout, n); ready < n-down && d.now.Sub(s.hurt) > 5*time.Minute {
		d.violate("I1: the end of %s leaves %d ready of at least %d", x.Name, ready, n-down)
	}
}

// watchRoom holds what runs at once to I2.
func (d *daemon) watchRoom(s *swarmService) {
	want := d.wantOf(s.App, s.Service)
	if want == nil || s.handled || d.now.Sub(s.hand) < 5*time.Minute { // each spec of a hand may leave one more behind
		return
	}
	n := max(d.countOn(s, want), d.countOn(s, s.spec.want))
	if s.prev != nil {
		n = max(n, d.countOn(s, s.prev.want))
	}
	if good, ok := d.disk.Good[ring.ID(s.App, s.Service)]; ok {
		n = max(n, d.countOn(s, &good.Service))
	}
	live := 0
	for _, x := range s.tasks {
		// One of a superseded version that never ran stays in its slot until the next one runs.
		if superseded := s.isDirty(x) && x.runs.IsZero(); !x.leaves && !superseded && x.placed && x.node.gone.IsZero() {
			live++
		}
	}
	up, _ := bounds(want.Rollout, n)
	more, _ := bounds(s.spec.want.Rollout, n)
	// An update that was superseded leaves what it had begun beside the old ones, until the next one
	// comes to those slots: so much more than the room, once.
	if most := n + 2*max(up, more); live > most {
		d.violate("I2: %d tasks of %s run, at most %d", live, s.Name, most)
	}
}

// countOn is how many tasks a service is to have: one on each node that is there, or its count.
func (d *daemon) countOn(s *swarmService, want *ring.Service) int {
	if !want.Spec.OnEachNode() {
		return want.Replicas
	}
	return len(d.slots(s))
}

// doneOnSwarm counts the tasks of a service that run by all that the swarm can know by then.
func (d *daemon) doneOnSwarm(app string, s *ring.Service) (n int) {
	o := d.swarm.services[app+"_"+s.Name]
	if o == nil {
		return 0
	}
	for _, x := range o.tasks {
		if x.version == s.Version && !x.leaves && !x.runs.IsZero() {
			n++
		}
	}
	return n
}
