package enginetest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
)

// tick is the step of the swarm's time: a task takes at most one step in it.
const tick = 100 * time.Millisecond

type fakeTask struct {
	swarm.Task
	life Life
	at   int            // its slot; of a service on each node, the place of its node
	from time.Time      // its next step is not before
	run  time.Time      // of one that is only to be ready: when it is to run; zero where its update says
	on   *fakeContainer // on this engine
}

// wanted reports whether the swarm wants it to run, now or soon.
func (t *fakeTask) wanted() bool {
	return t.DesiredState == swarm.TaskStateReady || t.DesiredState == swarm.TaskStateRunning || t.DesiredState == swarm.TaskStateComplete
}

// over reports whether it runs no more and never will.
func (t *fakeTask) over() bool {
	switch t.Status.State {
	case swarm.TaskStateComplete, swarm.TaskStateShutdown, swarm.TaskStateFailed, swarm.TaskStateRejected:
		return true
	}
	return false
}

func (t *fakeTask) checked() bool {
	h := t.Spec.ContainerSpec.Healthcheck
	return h != nil && len(h.Test) > 0 && h.Test[0] != "NONE"
}

// work is what the swarm does in one tick.
func (m *Manager) work() {
	for _, t := range m.tasks() {
		m.advance(t)
	}
	m.leaving = slices.DeleteFunc(m.leaving, func(t *fakeTask) bool { return t.over() && t.DesiredState == swarm.TaskStateRemove })
	for _, s := range m.services {
		s.tasks = slices.DeleteFunc(s.tasks, func(t *fakeTask) bool { return t.over() && t.DesiredState == swarm.TaskStateRemove })
		if s.isJob() {
			m.job(s)
			continue
		}
		m.watch(s) // before what failed is made anew, as it may have been of an update
		m.restart(s)
		m.scale(s)
		m.renew(s)
	}
}

// is is the state that a task has come to.
func (m *Manager) is(t *fakeTask, state swarm.TaskState, says, err string) {
	t.Status.State, t.Status.Message, t.Status.Err, t.Status.Timestamp = state, says, err, m.now()
	m.written(&t.Meta)
}

// ends is the end of a task and of its container.
func (m *Manager) ends(t *fakeTask, state swarm.TaskState, says, err string, code int) {
	if t.Status.ContainerStatus != nil {
		t.Status.ContainerStatus.ExitCode = code
	}
	if t.on != nil {
		m.end(t.on, code, false)
		m.drop(t.on)
		t.on = nil
	}
	m.is(t, state, says, err)
}

// advance is the next step of a task.
func (m *Manager) advance(t *fakeTask) {
	now, c := m.now(), t.Spec.ContainerSpec
	if t.DesiredState == swarm.TaskStateReady && !t.run.IsZero() && !now.Before(t.run) {
		t.DesiredState = swarm.TaskStateRunning
	}
	switch {
	case t.over():
		return
	case !t.wanted():
		m.ends(t, swarm.TaskStateShutdown, "shutdown", "", 0)
		return
	case now.Before(t.from):
		return
	}
	switch t.Status.State {
	case swarm.TaskStateNew, swarm.TaskStatePending:
		node := m.nodeFor(t)
		if t.at > 0 && t.Slot == 0 { // of a service on each node
			node = &m.nodes[t.at-1]
		}
		if node == nil {
			m.is(t, swarm.TaskStatePending, "pending task scheduling", fmt.Sprintf("no suitable node (scheduling constraints not satisfied on %d nodes)", len(m.nodes)))
			return
		}
		t.NodeID = node.ID
		m.is(t, swarm.TaskStateAssigned, "scheduler assigned task to node", "")
	case swarm.TaskStateAssigned:
		if m.image(c.Image) == nil {
			m.ends(t, swarm.TaskStateRejected, "preparing", "No such image: "+c.Image, 0)
			return
		}
		m.is(t, swarm.TaskStateReady, "prepared", "")
	case swarm.TaskStateReady:
		if t.DesiredState != swarm.TaskStateReady {
			m.starts(t)
		}
	case swarm.TaskStateStarting:
		if t.checked() && t.life.Unhealthy {
			m.ends(t, swarm.TaskStateFailed, "started", "task: non-zero exit (137): dockerexec: unhealthy container", 137)
			return
		}
		m.is(t, swarm.TaskStateRunning, "started", "")
	case swarm.TaskStateRunning:
		switch {
		case t.life.Ends && t.life.Code == 0:
			m.ends(t, swarm.TaskStateComplete, "finished", "", 0)
		case t.life.Ends:
			m.ends(t, swarm.TaskStateFailed, "started", fmt.Sprintf("task: non-zero exit (%d)", t.life.Code), t.life.Code)
		}
	}
}

// starts starts a task. It runs once its check passed; one that never does is stopped after the last try.
func (m *Manager) starts(t *fakeTask) {
	c := t.Spec.ContainerSpec
	t.life = m.lives(c)
	t.Status.ContainerStatus = &swarm.ContainerStatus{ContainerID: m.id("container")}
	if t.NodeID == m.nodes[0].ID {
		cfg := &container.Config{Image: c.Image, Labels: c.Labels, Cmd: c.Args}
		t.on = m.add(t.ID, cfg, &container.HostConfig{NetworkMode: network.NetworkNone, Mounts: c.Mounts}, nil)
		for _, v := range c.Mounts {
			if v.Type == mount.TypeVolume && v.VolumeOptions != nil && m.volumes[v.Source] == nil {
				m.volumes[v.Source] = maps.Clone(v.VolumeOptions.Labels)
			}
		}
		m.mounts(t.on)
		_ = m.begin(t.on) // without networks and ports nothing can fail
		t.Status.ContainerStatus.ContainerID = t.on.c.ID
	}
	if h := c.Healthcheck; t.checked() {
		t.from = m.now().Add(h.Interval)
		if t.life.Unhealthy {
			t.from = m.now().Add(h.StartPeriod + time.Duration(h.Retries)*h.Interval)
		}
	}
	m.is(t, swarm.TaskStateStarting, "starting", "")
}

// nodeFor is the node with the fewest tasks that meets the constraints; nil for none.
func (m *Manager) nodeFor(t *fakeTask) (found *swarm.Node) {
	least := 0
	for i := range m.nodes {
		n := &m.nodes[i]
		if n.Spec.Availability == swarm.NodeAvailabilityDrain || !meets(n, &t.Spec) {
			continue
		}
		has := 0
		for _, o := range m.tasks() {
			if o.NodeID == n.ID && !o.over() {
				has++
			}
		}
		if found == nil || has < least {
			found, least = n, has
		}
	}
	return found
}

// byName begins a constraint on the name of a node.
const byName = "node.hostname == "

// addTask is a further task in a slot.
func (m *Manager) addTask(s *fakeService, slot int, desired swarm.TaskState) *fakeTask {
	t := &fakeTask{at: slot, Task: swarm.Task{ID: m.shortID("task"), ServiceID: s.ID, Slot: slot, Spec: wired(s.Spec.TaskTemplate), DesiredState: desired}}
	if s.Spec.Mode.Global != nil {
		t.Slot, t.NodeID = 0, m.nodes[slot-1].ID
	}
	m.is(t, swarm.TaskStateNew, "created", "")
	s.tasks = append(s.tasks, t)
	return t
}

// in are the tasks in a slot that are wanted.
func (s *fakeService) in(slot int) (out []*fakeTask) {
	for _, t := range s.tasks {
		if t.at == slot && t.wanted() {
			out = append(out, t)
		}
	}
	return out
}

// restart makes anew, after a while, what ended and is wanted.
func (m *Manager) restart(s *fakeService) {
	for _, t := range slices.Clone(s.tasks) {
		if !t.over() || !t.wanted() {
			continue
		}
		t.DesiredState = swarm.TaskStateShutdown
		next := m.addTask(s, t.at, swarm.TaskStateReady)
		next.run = m.now()
		if d := s.Spec.TaskTemplate.RestartPolicy.Delay; d != nil {
			next.run = next.run.Add(*d)
		}
	}
}

// scale has as many slots as are asked for.
func (m *Manager) scale(s *fakeService) {
	want := m.slots(s)
	for _, slot := range want {
		if len(s.in(slot)) == 0 {
			m.addTask(s, slot, swarm.TaskStateRunning)
		}
	}
	for _, t := range s.tasks {
		if !slices.Contains(want, t.at) {
			t.DesiredState = swarm.TaskStateRemove
		}
	}
}

// slots are those that a service fills. Of one on each node they are the nodes that are not drained and
// meet its constraints.
func (m *Manager) slots(s *fakeService) (out []int) {
	if s.Spec.Mode.Global == nil {
		for slot := 1; slot <= int(*s.Spec.Mode.Replicated.Replicas); slot++ { //nolint:gosec // as a test sent it
			out = append(out, slot)
		}
		return out
	}
	for i := range m.nodes {
		if n := &m.nodes[i]; n.Spec.Availability != swarm.NodeAvailabilityDrain && meets(n, &s.Spec.TaskTemplate) {
			out = append(out, i+1)
		}
	}
	return out
}

// meets reports whether a node meets the constraints of a task.
func meets(n *swarm.Node, t *swarm.TaskSpec) bool {
	return t.Placement == nil || !slices.ContainsFunc(t.Placement.Constraints, func(c string) bool { return c != byName+n.Description.Hostname })
}

// fakeUpdate goes from one spec to the next, slot by slot.
type fakeUpdate struct {
	spec     swarm.ServiceSpec
	left     []int // slots that are to come
	slots    int   // of which there were so many
	workers  []*fakeWorker
	made     map[string]time.Time // by task: when it came to run; zero before
	failed   map[string]bool
	stopped  bool
	complete time.Time // when nothing else fails; zero before all slots are done
}

// fakeWorker has one slot at a time.
type fakeWorker struct {
	task *fakeTask // that has to come to run; nil when it did
	rest time.Time // until the next slot
}

// clean reports whether a task is of the spec in force.
func (s *fakeService) clean(t *fakeTask) bool { return reflect.DeepEqual(t.Spec, s.Spec.TaskTemplate) }

// renew begins an update of a service whose spec was sent. One that still ends takes no notice
// of its own spec: after a pause that is so until its workers have rested.
func (m *Manager) renew(s *fakeService) {
	if !s.sent {
		return
	}
	s.sent = false
	if s.update != nil && reflect.DeepEqual(s.update.spec, s.Spec) {
		return
	}
	s.update = nil
	u := &fakeUpdate{spec: s.Spec, made: map[string]time.Time{}, failed: map[string]bool{}}
	for _, slot := range m.slots(s) {
		if in := s.in(slot); len(in) > 1 || len(in) == 1 && !s.clean(in[0]) {
			u.left = append(u.left, slot)
		}
	}
	if u.slots = len(u.left); u.slots == 0 {
		return
	}
	for range min(u.slots, max(1, int(s.Spec.UpdateConfig.Parallelism))) { //nolint:gosec // as a test sent it
		u.workers = append(u.workers, &fakeWorker{})
	}
	began := m.now()
	s.update, s.UpdateStatus = u, &swarm.UpdateStatus{State: swarm.UpdateStateUpdating, StartedAt: &began, Message: "update in progress"}
	m.written(&s.Meta)
}

// says is what an update came to.
func (m *Manager) says(s *fakeService, state swarm.UpdateState, text string) {
	at := m.now()
	s.UpdateStatus.State, s.UpdateStatus.Message = state, text
	if state == swarm.UpdateStateCompleted {
		s.UpdateStatus.CompletedAt = &at
	}
	m.written(&s.Meta)
}

// watch is the next step of an update.
func (m *Manager) watch(s *fakeService) {
	u := s.update
	if u == nil || s.sent {
		return
	}
	o := s.Spec.UpdateConfig
	now := m.now()
	for _, t := range s.tasks {
		ran, ours := u.made[t.ID]
		// What is shut down on purpose did not fail.
		if !ours || !t.over() || t.Status.State == swarm.TaskStateShutdown || u.failed[t.ID] || !ran.IsZero() && now.Sub(ran) > o.Monitor {
			continue
		}
		u.failed[t.ID] = true
		if !u.stopped && float32(len(u.failed))/float32(u.slots) > o.MaxFailureRatio {
			u.stopped = true
			m.says(s, swarm.UpdateStatePaused, "update paused due to failure or early termination of task "+t.ID)
		}
	}
	busy := false
	for _, w := range u.workers {
		busy = m.workOn(s, w) || busy
	}
	switch {
	case busy:
	case u.stopped:
		s.update = nil
	case u.complete.IsZero():
		u.complete = now.Add(o.Monitor)
	case !now.Before(u.complete):
		s.update = nil
		m.says(s, swarm.UpdateStateCompleted, "update completed")
	}
}

// workOn is the next step of a worker; false when it has nothing left to do.
func (m *Manager) workOn(s *fakeService, w *fakeWorker) bool {
	u, o, now := s.update, s.Spec.UpdateConfig, m.now()
	startFirst := o.Order == swarm.UpdateOrderStartFirst
	if t := w.task; t != nil {
		others := slices.DeleteFunc(slices.Clone(s.tasks), func(x *fakeTask) bool { return x == t || x.at != t.at })
		gone := !slices.ContainsFunc(others, func(x *fakeTask) bool { return !x.over() })
		if !startFirst && gone && t.DesiredState == swarm.TaskStateReady {
			t.DesiredState = swarm.TaskStateRunning
		}
		if t.Status.State != swarm.TaskStateRunning && !t.over() {
			return true
		}
		if u.made[t.ID] = now; t.Status.State == swarm.TaskStateRunning {
			shutDown(others)
		}
		w.task, w.rest = nil, now.Add(o.Delay)
	}
	if now.Before(w.rest) {
		return true
	}
	if u.stopped || len(u.left) == 0 {
		return false
	}
	slot := u.left[0]
	u.left = u.left[1:]
	in := s.in(slot)
	if i := slices.IndexFunc(in, s.clean); i >= 0 { // it is there already
		in[i].DesiredState = swarm.TaskStateRunning
		shutDown(slices.Delete(in, i, i+1))
		w.rest = now.Add(o.Delay)
		return true
	}
	if w.task = m.addTask(s, slot, swarm.TaskStateRunning); !startFirst {
		w.task.DesiredState = swarm.TaskStateReady
		shutDown(in)
	}
	u.made[w.task.ID] = time.Time{}
	return true
}

func shutDown(tasks []*fakeTask) {
	for _, t := range tasks {
		if t.wanted() {
			t.DesiredState = swarm.TaskStateShutdown
		}
	}
}
