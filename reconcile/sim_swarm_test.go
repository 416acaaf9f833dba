package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// The model of a swarm: nodes, services, and tasks, which are boxes. It schedules, updates and
// restarts as Swarm does, as far as a decision can meet it: start-first and stop-first batches
// with a delay, a monitor, a pause at the first failure, tasks of lost nodes made anew elsewhere.
// What gitring sends it as a spec is as the runtime sends it: failures pause, and never go back.

const (
	worstCheck = 20 * time.Second // until a check that never passes says so
	nodeSilent = 38 * time.Second // until a node that does not answer counts as down
	taskDelay  = 5 * time.Second  // between restarts of a task
	taskFails  = time.Second      // until one fails that cannot run
	waitsForIt = time.Minute      // until the next task of a slot starts, though the one before still stops
)

// swarmModel is the whole of it; nil in an engine that is none.
type swarmModel struct {
	nodes    []*swarmNode
	services map[string]*swarmService // by name
	gone     []*swarmService          // removed, with tasks that still stop
	files    map[string]ring.ClusterFile
	once     map[string]int       // how often a run began, by its name; nil where it may again
	runs     map[string]swarmSpec // of runs of jobs, by the ID of their service
	index    uint64
	quorum   bool
	lease    ring.Lease // the zero value writes nothing in the record
	record   ring.ClusterRecord
	words    uint64 // written in the record
	// stopped is told of each task that ends because of an update or a removal, started of each one that begins.
	stopped func(s *swarmService, x *swarmTask, why string)
	started func(s *swarmService)
}

type swarmNode struct {
	name string
	gone time.Time // since when it does not answer; zero while it does
	dead bool      // what ran on it ended; else it is only cut off
	// drained reports whether a person wants nothing to run on it.
	drained bool
}

// swarmSpec is what was sent, as far as anything here depends on it.
type swarmSpec struct {
	version  ring.Version
	template string // what a task is made from
	commit   ring.SHA
	settings string
	sent, is string
	of       *ring.App
	want     *ring.Service
	// condemned is the version in the place of which this one is back.
	condemned ring.Version
	good      ring.Version // to which who sent it would go back
}

type swarmService struct {
	ring.ClusterService
	spec  swarmSpec
	prev  *swarmSpec
	tasks []*swarmTask
	again map[int]time.Time // by slot, when a task may be made again
	u     *swarmUpdate
	ended []ring.FailedTask // with the version of each
	of    []ring.Version
	sends int // specs that it was sent
	// stopped is when an update paused: an equal spec within moments of that is not noticed.
	stopped time.Time
	deaf    bool
	// hurt is when a task of it last ended by itself or was lost. handled reports whether the spec
	// in force is somebody else's, and hand is when it last was given such a one.
	hurt, hand time.Time
	handled    bool
}

type swarmTask struct {
	*box
	version  ring.Version
	template string
	node     *swarmNode
	made     time.Time
	runs     time.Time  // since when the swarm says that it runs: its check passed
	leaves   bool       // it is to end
	told     time.Time  // when it was told so
	stops    time.Time  // and when it has
	lost     bool       // by its node: what starts in its place is not our act
	after    *swarmTask // the one that the swarm waits for before it starts this one
	patience time.Duration
	fresh    bool // made by the update under way
	placed   bool
}

// worst is how long its node lets a task be that was never healthy.
func (x *swarmTask) worst() time.Duration {
	if x.patience == 0 {
		return worstCheck
	}
	return x.patience + 15*time.Second + worstCheck
}

// swarmUpdate is an update under way.
type swarmUpdate struct {
	queue []int
	busy  map[int]bool
	ended map[int]*swarmTask // by slot, the one that it ended last
	next  time.Time          // no batch before it
	ends  time.Time          // of the monitor, once nothing is left to do
}

func newSwarmModel() *swarmModel {
	m := &swarmModel{runs: map[string]swarmSpec{}, services: map[string]*swarmService{}, files: map[string]ring.ClusterFile{}, quorum: true, stopped: func(*swarmService, *swarmTask, string) {}, started: func(*swarmService) {}}
	m.record = ring.ClusterRecord{Words: map[string]ring.CommitWord{}, Begun: map[string]string{}}
	for _, name := range []string{"n1", "n2", "n3"} {
		m.nodes = append(m.nodes, &swarmNode{name: name})
	}
	return m
}

func (m *swarmModel) node(name string) *swarmNode {
	for _, n := range m.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// down reports whether the swarm counts a node as down.
func (n *swarmNode) down(now time.Time) bool {
	return !n.gone.IsZero() && !now.Before(n.gone.Add(nodeSilent))
}

func (m *swarmModel) bump(s *swarmService) {
	m.index++
	s.Index = m.index
}

const rollbackBegan ring.UpdateState = "rollback_started"

var errNoLeader = errors.New("rpc error: code = Unknown desc = The swarm does not have a leader")

// applyOnSwarm is what a step does on a swarm.
func (e *engine) applyOnSwarm(a ring.Action) (ring.Done, error) {
	m := e.swarm
	if !m.quorum {
		return ring.Done{}, errNoLeader
	}
	if done, err, is := e.onRun(a); is {
		return done, err
	}
	if a.Kind == ring.DoWords {
		for _, key := range sortedIDs(a.Words) {
			c := a.Words[key]
			if was := m.record.Words[key]; was.N == c.N {
				m.words++
				c.N, c.First = m.words, cmp.Or(was.First, m.words)
				m.record.Words[key] = c
			}
		}
		return ring.Done{}, nil
	}
	e.told(string(a.Kind), a.Service+a.Name, nil)
	name := a.App + "_" + a.Service
	switch a.Kind {
	case ring.DoServe:
		return e.serve(a, name)
	case ring.DoServeOff:
		if s := m.services[name]; s != nil {
			e.removeService(s, "removed")
		}
		return ring.Done{}, nil
	case ring.DoFileOff:
		for _, s := range m.services {
			if slices.Contains(s.names(), a.Name) {
				return ring.Done{InUse: true}, nil
			}
		}
		for _, r := range e.runsSeen() {
			if slices.Contains(r.Files, a.Name) {
				return ring.Done{InUse: true}, nil
			}
		}
		delete(m.files, a.Name)
		return ring.Done{}, nil
	case ring.DoNetwork:
		e.nets[a.NetworkName] = ring.SeenNetwork{ID: a.NetworkName, Name: a.NetworkName, App: a.App, Key: a.Network.Key, Definition: a.Network.Definition()}
		return ring.Done{}, nil
	case ring.DoNetworkOff:
		for _, s := range m.services {
			if slices.Contains(s.nets(), a.NetworkName) {
				return ring.Done{InUse: true}, nil
			}
		}
		for _, r := range e.runsSeen() {
			if slices.Contains(r.Networks, a.NetworkName) {
				return ring.Done{InUse: true}, nil
			}
		}
		delete(e.nets, a.NetworkName)
		return ring.Done{}, nil
	}
	e.violate("I13: the swarm was asked to %s %s", a.Kind, a.Target())
	return ring.Done{}, errors.New("no such step")
}

// filesIn are the configs that a spec names.
func filesIn(p *swarmSpec) (out []ring.ClusterFile) {
	if p == nil {
		return nil
	}
	for _, mount := range p.of.Mounts(p.want) {
		if mount.Kind == ring.MountContent {
			out = append(out, ring.ClusterFile{Name: p.of.Name + "_" + mount.Source, App: p.of.Name, Content: mount.Source, Secret: mount.Secret})
		}
	}
	return out
}

func (s *swarmService) names() (out []string) {
	for _, f := range append(filesIn(&s.spec), filesIn(s.prev)...) {
		out = append(out, f.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (s *swarmService) nets() (out []string) {
	for _, at := range s.spec.want.Spec.Networks {
		out = append(out, s.App+"_"+at.Network)
	}
	return out
}

// serve makes a service, or sends it another spec.
func (e *engine) serve(a ring.Action, name string) (ring.Done, error) {
	m, s := e.swarm, e.swarm.services[a.App+"_"+a.Service]
	for _, at := range a.Want.Spec.Networks {
		if _, there := e.nets[a.Networks[at.Network]]; !there {
			e.violate("%s joins network %s, which is not there", name, a.Networks[at.Network])
		}
	}
	if e.names["service "+name] {
		r := &ring.Refusal{Code: ring.ForeignProject, Says: "a service " + name + " is on the swarm, and gitring did not make it", Hint: "docker service rm " + name}
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseCreate, Permanent: true, Refusal: r, Err: r}
	}
	spec := swarmSpec{version: a.Version, template: string(a.Version), commit: a.Commit, settings: ring.ClusterSettings(a.Want, a.Of.Alone(a.Want) != ""), of: a.Of, want: a.Want, condemned: a.Condemned, good: a.Good}
	if s != nil {
		spec.template = s.madeAs(a)
	}
	spec.sent = fmt.Sprint(spec.version, spec.settings, spec.commit)
	spec.is = spec.sent
	if s != nil && s.Index != a.Index && s.spec.sent == spec.sent && s.spec.is == spec.is {
		return ring.Done{Note: "already present"}, nil
	}
	if (s == nil) != (a.Index == 0) || s != nil && s.Index != a.Index {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseCreate, Err: errors.New("it is another one than was looked at")}
	}
	for _, f := range filesIn(&spec) {
		if there, ok := m.files[f.Name]; ok && there.App != a.App || e.names["config "+f.Name] {
			r := &ring.Refusal{Code: ring.Conflict, Says: "a config " + f.Name + " is on the swarm with another content", Hint: "docker config rm " + f.Name}
			return ring.Done{}, &ring.EngineError{Cause: ring.CauseConfig, Permanent: true, Refusal: r, Err: r}
		}
		f.ID = "id-" + f.Name
		m.files[f.Name] = f
	}
	if s == nil {
		s = &swarmService{again: map[int]time.Time{}, ClusterService: ring.ClusterService{ID: "s" + strconv.Itoa(len(m.services)) + name, Name: name, App: a.App, Source: a.Of.Source, Service: a.Service, Kind: a.Want.Kind}}
		m.services[name] = s
		s.spec = spec
		m.bump(s)
		s.sends++
		return ring.Done{}, nil
	}
	e.takeSpec(s, spec)
	return ring.Done{}, nil
}

// madeAs is what the tasks of an action are made from, as the runtime chooses it: a mark for each time
// that they were to be made anew.
func (s *swarmService) madeAs(a ring.Action) string {
	is := func(template string) bool { return strings.TrimRight(template, "+") == string(a.Version) }
	if a.Anew {
		return s.spec.template + "+"
	}
	if s.spec.version == a.Version && is(s.spec.template) {
		return s.spec.template
	}
	for _, x := range s.tasks {
		if !x.leaves && is(x.template) {
			return x.template
		}
	}
	return string(a.Version)
}

// takeSpec puts a spec in force, whatever state the update is in.
func (e *engine) takeSpec(s *swarmService, spec swarmSpec) {
	prev := s.spec
	s.deaf = prev.is == spec.is && prev.template == spec.template && e.now.Sub(s.stopped) < 2*time.Second
	s.prev, s.spec, s.u = &prev, spec, nil
	s.Update, s.Says, s.Began = "", "", time.Time{}
	for _, x := range s.tasks {
		x.fresh = false
	}
	s.sends++
	if s.handled = spec.is != spec.sent; s.handled {
		s.hand = e.now
	}
	e.swarm.bump(s)
}

// clusterSeen is a look at a swarm.
func (e *engine) clusterSeen() *ring.Cluster {
	c := &ring.Cluster{Lease: e.swarm.lease, Runs: e.runsSeen(), Record: e.swarm.recordSeen()}
	for _, n := range e.swarm.nodes {
		state, availability := "ready", "active"
		if n.down(e.now) {
			state = "down"
		}
		if n.drained {
			availability = "drain"
		}
		c.Nodes = append(c.Nodes, ring.Node{ID: n.name, Name: n.name, State: state, Availability: availability})
	}
	for _, name := range sortedIDs(e.swarm.services) {
		s := e.swarm.services[name]
		out := s.ClusterService
		out.Version, out.Commit, out.Settings, out.Sent, out.Is = s.spec.version, s.spec.commit, s.spec.settings, s.spec.sent, s.spec.is
		out.Condemned, out.Good = s.spec.condemned, s.spec.good
		if s.prev != nil {
			out.Previous = s.prev.version
		}
		var writes box
		e.mounts(ring.Action{Of: s.spec.of, App: s.App, Service: s.Service, Slot: 1, Want: s.spec.want}, &writes)
		out.Writes = writes.Writes
		out.Replicas, out.Files, out.Networks = s.spec.want.Replicas, s.names(), s.nets()
		if out.Global = s.isGlobal(); out.Global {
			out.Replicas = 0
		}
		for i, f := range s.ended {
			if s.of[i] == s.spec.version {
				out.Failed = &f
			}
		}
		c.Services = append(c.Services, out)
	}
	for _, name := range sortedIDs(e.swarm.files) {
		c.Files = append(c.Files, e.swarm.files[name])
	}
	return c
}

// recordSeen is a copy: what is written later is not seen.
func (m *swarmModel) recordSeen() ring.ClusterRecord {
	return ring.ClusterRecord{Words: maps.Clone(m.record.Words), Begun: maps.Clone(m.record.Begun)}
}

// removeService removes a service, of which tasks may still stop.
func (e *engine) removeService(s *swarmService, why string) {
	for _, x := range slices.Clone(s.tasks) {
		e.endTask(s, x, why)
	}
	delete(e.swarm.services, s.Name)
	e.swarm.gone = append(e.swarm.gone, s)
}

// all are the services, and those that are gone and whose tasks may still stop.
func (m *swarmModel) all() (out []*swarmService) {
	for _, name := range sortedIDs(m.services) {
		out = append(out, m.services[name])
	}
	return append(out, m.gone...)
}

// tasksSeen are the tasks as the swarm shows them.
func (e *engine) tasksSeen() (out []ring.Instance) {
	for _, s := range e.swarm.all() {
		for _, x := range s.tasks {
			in := x.Instance
			in.Commit, in.Started = s.spec.commit, time.Time{}
			switch {
			case x.leaves:
				in.State = ring.StateRemoving
			case x.runs.IsZero():
				if in.State = ring.StateCreated; x.running() {
					in.Health, in.Started = "starting", x.since.Add(e.skew)
				}
			default:
				in.State, in.Health, in.Started = ring.StateRunning, "healthy", x.runs.Add(e.skew)
			}
			if x.placed {
				in.Node = x.node.name
			}
			out = append(out, in)
		}
	}
	return out
}

// makeTask makes a task of the spec in force in a slot.
func (e *engine) makeTask(s *swarmService, slot int, fresh bool) {
	e.ids++
	id := fmt.Sprintf("t%03d", e.ids)
	x := &swarmTask{version: s.spec.version, template: s.spec.template, made: e.now, fresh: fresh, box: &box{image: s.spec.want.Spec.Image, means: s.spec.want.Pin.Digest(), Instance: ring.Instance{
		ID: id, Name: fmt.Sprintf("%s.%d.%s", s.Name, slot, id), App: s.App, Source: s.Source, Service: s.Service, Slot: slot,
		Version: s.spec.version, Kind: ring.Worker, Image: s.spec.want.Pin.Image, State: ring.StateCreated, Created: e.wall(), Addresses: map[string]string{},
	}}}
	e.mounts(ring.Action{Of: s.spec.of, App: s.App, Service: s.Service, Slot: slot, Want: s.spec.want}, x.box)
	if x.shared = s.spec.want.Share; s.spec.want.Spec.Cluster != nil {
		x.patience = s.spec.want.Spec.Cluster.Patience
	}
	if s.u != nil && s.stopsFirst() {
		x.after = s.u.ended[slot]
	}
	s.tasks = append(s.tasks, x)
	e.boxes[id], e.sorted = x.box, nil
	e.told("create", "", x.box)
	e.placeTask(s, x)
	e.swarm.started(s)
}

// placeTask gives a task to the node that has the fewest, and has it run there.
func (e *engine) placeTask(s *swarmService, x *swarmTask) {
	if y := x.after; y != nil && e.boxes[y.ID] == y.box && e.now.Before(y.told.Add(waitsForIt)) {
		return
	}
	load := map[*swarmNode]int{}
	for _, o := range e.swarm.services {
		for _, y := range o.tasks {
			load[y.node]++
		}
	}
	for i, n := range e.swarm.nodes {
		if i > 0 && len(x.holds) > 0 {
			break // what writes is pinned to the first one
		}
		if s.isGlobal() && x.Slot != i+1 || n.drained {
			continue
		}
		if !n.down(e.now) && (x.node == nil || load[n] < load[x.node]) {
			x.node = n
		}
	}
	if x.node == nil {
		return
	}
	if x.placed = true; !x.node.gone.IsZero() { // which nobody knows yet
		s.hurt = e.now
	}
	if n := e.nature(x.box); !n.noStart && !n.rejected && x.node.gone.IsZero() {
		e.started++
		x.State, x.since = ring.StateRunning, e.now
		x.starts++
		e.told("run", "", x.box)
		e.watchVolumes(s, x)
	}
	e.note("%s is placed on %s", x.Name, x.node.name)
}

// endTask ends a task for good: by an update, a count, or with its service.
func (e *engine) endTask(s *swarmService, x *swarmTask, why string) {
	e.swarm.stopped(s, x, why)
	x.told, x.stops = e.now, e.now.Add(e.nature(x.box).stops)
	cut := x.placed && !x.node.gone.IsZero() && !x.node.dead // nobody can tell that node
	if x.leaves = true; cut || x.running() && x.stops.After(e.now) {
		return
	}
	e.dropTask(s, x)
}

// watchVolumes holds a task that begins to I18: no other one writes what it writes, whichever
// service it is of, and though it was told to stop. Nobody can tell a node that is cut off.
func (e *engine) watchVolumes(of *swarmService, x *swarmTask) {
	if of.handled {
		return // a hand did not wait
	}
	for _, s := range e.swarm.all() {
		for _, y := range s.tasks {
			for _, h := range x.holds {
				if y != x && y.running() && !y.lost && y.node == x.node && slices.Contains(y.holds, h) && !(x.shared && y.shared) && !e.meant(y.box, x.box, h) {
					e.violate("I18: %s and %s both write %s", y.Name, x.Name, h)
				}
			}
		}
	}
}

func (e *engine) dropTask(s *swarmService, x *swarmTask) {
	if x.running() {
		e.exit(x.box, 0)
	}
	s.tasks = slices.DeleteFunc(s.tasks, func(y *swarmTask) bool { return y == x })
	e.drop(x.box)
}

// failTask is a task that failed, with the words of its node.
func (e *engine) failTask(s *swarmService, x *swarmTask, says string, rejected bool) {
	s.ended = append(s.ended, ring.FailedTask{ID: x.ID, Slot: x.Slot, Node: x.node.name, Says: says, ExitCode: x.ExitCode, Rejected: rejected, At: e.wall()})
	s.of = append(s.of, x.version)
	s.hurt = e.now
	s.again[x.Slot] = e.now.Add(cmp.Or(s.spec.want.Restart.Delay, taskDelay))
	fresh := x.fresh && s.u != nil
	e.note("%s failed: %s", x.Name, says)
	e.dropTask(s, x)
	if fresh {
		s.stopped = e.now
		state := ring.UpdatePaused
		if s.Update == rollbackBegan {
			state = "rollback_paused"
		}
		s.Update, s.Says, s.u = state, "update paused due to failure or early termination of task "+x.ID, nil
		e.swarm.bump(s)
		e.note("the update of %s is paused", s.Name)
	}
}

// swarmTick lets what is due happen on a swarm, until nothing is.
func (e *engine) swarmTick() {
	for range 200 {
		if !e.swarmStep() {
			return
		}
	}
	e.violate("the swarm does not come to rest at %s", e.now.Sub(epoch))
}

// swarmStep is one thing that is due; false when nothing is.
func (e *engine) swarmStep() bool {
	if !e.swarm.quorum {
		return false
	}
	for _, s := range e.swarm.gone {
		if slices.ContainsFunc(s.tasks, func(x *swarmTask) bool { return e.taskStep(s, x) }) {
			return true
		}
	}
	for _, name := range sortedIDs(e.swarm.services) {
		s := e.swarm.services[name]
		for _, x := range s.tasks {
			if e.taskStep(s, x) {
				return true
			}
		}
		if e.countStep(s) || e.updateStep(s) || e.slotStep(s) {
			return true
		}
	}
	return false
}

// taskStep is what is due of one task.
func (e *engine) taskStep(s *swarmService, x *swarmTask) bool {
	n := e.nature(x.box)
	switch {
	case !x.placed:
		e.placeTask(s, x)
		return x.placed
	case x.node.down(e.now) && !x.leaves: // another one is made elsewhere
		x.leaves, x.lost = true, true
		e.note("%s is on a node that is down", x.Name)
		return true
	case x.leaves && x.node.gone.IsZero() && !(x.running() && e.now.Before(x.stops)):
		e.dropTask(s, x)
		return true
	case x.leaves, !x.node.gone.IsZero():
		return false
	case n.noStart && !e.now.Before(x.made.Add(taskFails)):
		e.failTask(s, x, "starting container failed: no such file", false)
		return true
	case n.rejected && !e.now.Before(x.made.Add(taskFails)):
		e.failTask(s, x, "No such image: "+x.Image, true)
		return true
	case x.State == ring.StateCreated && !n.noStart && !n.rejected: // the node came back before it began
		x.State, x.since = ring.StateRunning, e.now
		return true
	}
	if at, ends := e.ends(x.box); ends && !e.now.Before(at) {
		x.ExitCode = n.exit
		e.failTask(s, x, fmt.Sprintf("task: non-zero exit (%d)", n.exit), false)
		return true
	}
	switch ready := e.ready(x.box); {
	case ready && x.runs.IsZero():
		x.runs = e.now
		return true
	case !ready && x.running() && (!x.runs.IsZero() || !e.now.Before(x.since.Add(x.worst()))):
		e.failTask(s, x, "task: non-zero exit (137): dockerexec: unhealthy container", false)
		return true
	}
	return false
}

// live are the tasks that the swarm wants in a slot.
func (s *swarmService) live(slot int) (out []*swarmTask) {
	for _, x := range s.tasks {
		if x.Slot == slot && !x.leaves {
			out = append(out, x)
		}
	}
	return out
}

func (s *swarmService) isGlobal() bool { return s.spec.want.Spec.OnEachNode() }

// slots are those that are to be filled: of a service on each node, the nodes that take it.
func (e *engine) slots(s *swarmService) (out []int) {
	if s.isGlobal() {
		for i, n := range e.swarm.nodes {
			if !n.down(e.now) && !n.drained {
				out = append(out, i+1)
			}
		}
		return out
	}
	for slot := 1; slot <= s.spec.want.Replicas; slot++ {
		out = append(out, slot)
	}
	return out
}

func (s *swarmService) isDirty(x *swarmTask) bool { return x.template != s.spec.template }

// updateStep is what is due of an update.
func (e *engine) updateStep(s *swarmService) bool {
	if s.u == nil {
		return e.beginUpdate(s)
	}
	for _, slot := range e.slots(s) {
		if s.u.busy[slot] && e.slotUpdate(s, slot) {
			return true
		}
	}
	if len(s.u.queue) > 0 && len(s.u.busy) < s.room() && !e.now.Before(s.u.next) {
		slot := s.u.queue[0]
		s.u.queue = s.u.queue[1:]
		if e.useExisting(s, slot) {
			s.u.next = e.now.Add(s.spec.want.Rollout.MinReadyTime)
		} else {
			s.u.busy[slot] = true
		}
		return true
	}
	if len(s.u.queue)+len(s.u.busy) > 0 {
		return false
	}
	if s.u.ends.IsZero() {
		s.u.ends = e.now.Add(max(s.spec.want.Rollout.MinReadyTime, worstCheck))
	}
	if e.now.Before(s.u.ends) {
		return false
	}
	if s.u = nil; s.Update == rollbackBegan {
		s.Update, s.Says = "rollback_completed", "rollback completed"
	} else {
		s.Update, s.Says = ring.UpdateCompleted, "update completed"
	}
	e.swarm.bump(s)
	e.note("the update of %s is completed", s.Name)
	return true
}

func (e *engine) beginUpdate(s *swarmService) bool {
	if s.deaf || s.Update != "" && s.Update != rollbackBegan {
		return false
	}
	var queue []int
	for _, slot := range e.slots(s) {
		if live := s.live(slot); len(live) > 1 || slices.ContainsFunc(live, s.isDirty) {
			queue = append(queue, slot)
		}
	}
	if len(queue) == 0 {
		return false
	}
	s.u, s.Began = &swarmUpdate{queue: queue, busy: map[int]bool{}, ended: map[int]*swarmTask{}}, e.wall()
	if s.Update == "" {
		s.Update, s.Says = ring.UpdateRunning, "update in progress"
	}
	e.swarm.bump(s)
	return true
}

// stopsFirst reports whether an old task ends before the new one begins, and room is how many go
// at once. Both are written out: an oracle does not ask what it judges.
func (s *swarmService) stopsFirst() bool {
	more, _ := bounds(s.spec.want.Rollout, s.spec.want.Replicas)
	return more == 0 || s.spec.of.Alone(s.spec.want) != ""
}

func (s *swarmService) room() int {
	n, fewer := bounds(s.spec.want.Rollout, s.spec.want.Replicas)
	if s.stopsFirst() {
		n = fewer
	}
	return max(1, min(n, s.spec.want.Rollout.MaxParallel))
}

// useExisting keeps the task of the spec in force that a slot has already, ready or not, and ends
// all others there at once, as Swarm does. It reports whether there is such a one.
func (e *engine) useExisting(s *swarmService, slot int) bool {
	live := s.live(slot)
	i := slices.IndexFunc(live, func(x *swarmTask) bool { return !s.isDirty(x) })
	if i < 0 {
		return false
	}
	for j, x := range live {
		if j != i {
			e.endTask(s, x, "update")
		}
	}
	live[i].fresh = true
	return true
}

// slotUpdate brings one slot to the spec in force.
func (e *engine) slotUpdate(s *swarmService, slot int) bool {
	var clean *swarmTask
	var old []*swarmTask
	for _, x := range s.live(slot) {
		if s.isDirty(x) {
			old = append(old, x)
		} else if clean == nil || !x.runs.IsZero() && clean.runs.IsZero() {
			clean = x
		}
	}
	switch {
	case s.stopsFirst() && len(old) > 0:
		s.u.ended[slot] = old[0]
		e.endTask(s, old[0], "update")
	case clean == nil && e.now.Before(s.again[slot]):
		return false
	case clean == nil:
		e.makeTask(s, slot, true)
	case clean.runs.IsZero():
		return false
	case len(old) > 0:
		e.endTask(s, old[0], "update")
	default:
		delete(s.u.busy, slot)
		s.u.next = e.now.Add(s.spec.want.Rollout.MinReadyTime)
	}
	return true
}

// slotStep fills slots that are empty.
func (e *engine) slotStep(s *swarmService) bool {
	for _, slot := range e.slots(s) {
		if s.u != nil && s.u.busy[slot] || len(s.live(slot)) > 0 || e.now.Before(s.again[slot]) {
			continue
		}
		e.makeTask(s, slot, s.u != nil)
		return true
	}
	return false
}

// countStep empties slots that are not wanted.
func (e *engine) countStep(s *swarmService) bool {
	for _, x := range s.tasks {
		if s.isGlobal() {
			if n := e.swarm.nodes[x.Slot-1]; !x.leaves && (n.drained || !x.placed && n.down(e.now)) {
				e.endTask(s, x, "drained")
				return true
			}
			continue
		}
		if x.Slot > s.spec.want.Replicas && !x.leaves {
			if slot := s.slotNotRunning(); slot > 0 && !x.runs.IsZero() { // Swarm keeps those that run
				for _, y := range s.live(slot) {
					y.Slot = x.Slot
				}
				x.Slot = slot
				return true
			}
			e.endTask(s, x, "count")
			return true
		}
	}
	return false
}

// slotNotRunning is a wanted slot in which nothing runs; 0 for none.
func (s *swarmService) slotNotRunning() int {
	for slot := 1; slot <= s.spec.want.Replicas; slot++ {
		if !slices.ContainsFunc(s.live(slot), func(x *swarmTask) bool { return !x.runs.IsZero() }) {
			return slot
		}
	}
	return 0
}

// swarmMoment is the next time that something is due on a swarm, at most "until".
func (e *engine) swarmMoment(until time.Time) time.Time {
	at := func(t time.Time) {
		if t.After(e.now) && t.Before(until) {
			until = t
		}
	}
	for _, n := range e.swarm.nodes {
		if !n.gone.IsZero() {
			at(n.gone.Add(nodeSilent))
		}
	}
	for _, s := range e.swarm.all() {
		for _, t := range s.again {
			at(t)
		}
		for _, x := range s.tasks {
			at(x.stops)
			at(x.told.Add(waitsForIt))
			at(x.made.Add(taskFails))
			at(x.since.Add(x.worst()))
		}
		if s.u != nil {
			at(s.u.next)
			at(s.u.ends)
		}
	}
	return until
}

// lose has a node no longer answer: what runs on it ends, or is only cut off.
func (e *engine) lose(n *swarmNode, dead bool) {
	n.gone, n.dead = e.now, dead
	e.note("node %s is lost, dead %v", n.name, dead)
	for _, s := range e.swarm.all() {
		s.hurt = e.now
		for _, x := range s.tasks {
			if dead && x.node == n && x.running() {
				e.exit(x.box, 137)
			}
		}
	}
}

// comeBackNode has a node answer again: what the swarm does not want any more ends.
func (e *engine) comeBackNode(n *swarmNode) {
	e.note("node %s is back", n.name)
	n.gone = time.Time{}
	for _, s := range e.swarm.all() {
		for _, x := range slices.Clone(s.tasks) {
			if x.node == n && x.leaves && x.running() { // it hears of that now
				x.lost, x.stops = true, e.now.Add(e.nature(x.box).stops)
			}
			if x.node == n && x.State == ring.StateExited && !x.leaves {
				e.failTask(s, x, "task: non-zero exit (137)", false)
			}
		}
	}
	n.dead = false
}

// byHand has somebody change a service: edit, rollback, remove.
func (e *engine) byHand(s *swarmService, how string) {
	e.note("%s of %s by hand", how, s.Name)
	switch how {
	case "edit":
		spec := s.spec
		spec.is += " by hand"
		spec.template += " by hand"
		e.takeSpec(s, spec)
	case "rollback":
		if s.prev != nil {
			e.takeSpec(s, *s.prev)
			s.Update, s.handled, s.hand = rollbackBegan, true, e.now
		}
	case "remove":
		e.removeService(s, "removed by hand")
	}
}
