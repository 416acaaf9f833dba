package runtime

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"github.com/gitring/gitring/ring"
)

// swarmAnswers are all answers of one look at a swarm.
type swarmAnswers struct {
	services []swarm.Service
	tasks    []swarm.Task
	nodes    []swarm.Node
	networks []network.Summary
	configs  []swarm.Config
	secrets  []swarm.Secret
}

// seen is a look in ring's words: what carries the label of this cluster, and every network and
// node. It is a function of its arguments.
func (s swarmAnswers) seen(cluster string, at time.Time) ring.Seen {
	out := ring.Seen{At: at, Cluster: &ring.Cluster{}}
	named, nodes := map[string]string{}, map[string]string{}
	for _, n := range s.networks {
		named[n.ID] = n.Name
		if n.Scope == swarmScope || n.Labels[labelHost] != "" {
			out.Networks = append(out.Networks, seenNetwork(cluster, n))
		}
	}
	for _, n := range s.nodes {
		node := seenNode(n)
		nodes[n.ID] = node.Name
		out.Cluster.Nodes = append(out.Cluster.Nodes, node)
	}
	slices.SortFunc(out.Cluster.Nodes, func(a, b ring.Node) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	place := map[string]int{}
	for i, n := range out.Cluster.Nodes {
		place[n.ID] = i + 1
	}
	tasks := map[string][]swarm.Task{}
	for _, t := range s.tasks {
		if t.Slot == 0 { // of a service that runs on each node
			t.Slot = place[t.NodeID]
		}
		tasks[t.ServiceID] = append(tasks[t.ServiceID], t)
	}
	for i := range s.services {
		svc := &s.services[i]
		if svc.Spec.Labels[labelHost] != cluster {
			continue
		}
		if isRun(cluster, "", svc) {
			out.Cluster.Runs = append(out.Cluster.Runs, seenRunOf(svc, named))
			out.Instances = append(out.Instances, seenRun(svc, tasks[svc.ID], nodes))
			continue
		}
		out.Cluster.Services = append(out.Cluster.Services, seenService(svc, tasks[svc.ID], named, nodes))
		out.Instances = append(out.Instances, tasksOf(svc, tasks[svc.ID], nodes)...)
	}
	slices.SortFunc(out.Cluster.Services, func(a, b ring.ClusterService) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Cluster.Runs, func(a, b ring.ClusterRun) int { return cmp.Compare(a.Name, b.Name) })
	there := func(t swarm.Task) bool {
		return slices.ContainsFunc(s.services, func(x swarm.Service) bool { return x.ID == t.ServiceID })
	}
	out.Instances = append(out.Instances, tasksLeft(cluster, slices.DeleteFunc(slices.Clone(s.tasks), there), nodes)...)
	file := func(id string, of swarm.Annotations, secret bool) {
		if of.Labels[labelHost] == cluster {
			out.Cluster.Files = append(out.Cluster.Files, ring.ClusterFile{ID: id, Name: of.Name, App: of.Labels[labelApp], Content: of.Labels[labelContent], Secret: secret})
		}
	}
	for _, c := range s.configs {
		if isRecord(cluster, c.Spec.Annotations) {
			out.Cluster.Record = recordOf(c.Spec.Labels)
			continue
		}
		file(c.ID, c.Spec.Annotations, false)
	}
	for _, c := range s.secrets {
		file(c.ID, c.Spec.Annotations, true)
	}
	slices.SortFunc(out.Cluster.Files, func(a, b ring.ClusterFile) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out
}

func seenNode(n swarm.Node) ring.Node {
	d := n.Description
	return ring.Node{
		ID: n.ID, Name: d.Hostname, Manager: n.ManagerStatus != nil, State: string(n.Status.State), Availability: string(n.Spec.Availability),
		OS: d.Platform.OS, Arch: d.Platform.Architecture, Addr: n.Status.Addr, Labels: n.Spec.Labels, EngineLabels: d.Engine.Labels,
	}
}

func seenService(s *swarm.Service, tasks []swarm.Task, named, nodes map[string]string) ring.ClusterService {
	l := s.Spec.Labels
	out := ring.ClusterService{
		ID: s.ID, Name: s.Spec.Name, App: l[labelApp], Source: l[labelSource], Service: l[labelService], Kind: ring.Kind(l[labelKind]),
		Version: ring.Version(l[labelVersion]), Commit: ring.SHA(l[labelCommit]), Settings: l[labelSettings], Condemned: ring.Version(l[labelFailed]), Good: ring.Version(l[labelGood]),
		Sent: l[labelSent], Is: sentHash(&s.Spec, named), Index: s.Version.Index, Updated: s.UpdatedAt,
		Files: filesOf(s.PreviousSpec, filesOf(&s.Spec, nil)), Networks: networksOf(&s.Spec, named), Failed: newestFailed(s, tasks, nodes),
	}
	if s.PreviousSpec != nil {
		out.Previous = ring.Version(s.PreviousSpec.Labels[labelVersion])
	}
	if c := s.Spec.TaskTemplate.ContainerSpec; c != nil {
		out.Writes = writtenByTask(c)
	}
	if r := s.Spec.Mode.Replicated; r != nil && r.Replicas != nil {
		out.Replicas = int(*r.Replicas) //nolint:gosec // as many as were sent
	}
	out.Global = s.Spec.Mode.Global != nil
	if u := s.UpdateStatus; u != nil {
		out.Update, out.Says = ring.UpdateState(u.State), u.Message
		if u.StartedAt != nil {
			out.Began = *u.StartedAt
		}
	}
	return out
}

// filesOf adds the names of configs and secrets in a spec to others, each once.
func filesOf(spec *swarm.ServiceSpec, names []string) []string {
	if spec != nil && spec.TaskTemplate.ContainerSpec != nil {
		for _, c := range spec.TaskTemplate.ContainerSpec.Configs {
			names = append(names, c.ConfigName)
		}
		for _, c := range spec.TaskTemplate.ContainerSpec.Secrets {
			names = append(names, c.SecretName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// networksOf are the names of the networks in a spec, sorted.
func networksOf(spec *swarm.ServiceSpec, named map[string]string) (names []string) {
	for _, n := range spec.TaskTemplate.Networks {
		names = append(names, cmp.Or(named[n.Target], n.Target))
	}
	slices.Sort(names)
	return names
}

func versionOfTask(t *swarm.Task) ring.Version {
	if t.Spec.ContainerSpec == nil {
		return ""
	}
	return ring.Version(t.Spec.ContainerSpec.Labels[labelVersion])
}

// newestFailed is the newest task of the version in force that did not come to run, or ended by itself.
func newestFailed(s *swarm.Service, tasks []swarm.Task, nodes map[string]string) *ring.FailedTask {
	var found *ring.FailedTask
	for i := range tasks {
		t := &tasks[i]
		// One that is stopped because its check fails may end well: it is complete, and no less failed.
		failed := t.Status.State == swarm.TaskStateFailed || t.Status.State == swarm.TaskStateRejected || t.Status.State == swarm.TaskStateComplete
		if !failed || versionOfTask(t) != ring.Version(s.Spec.Labels[labelVersion]) || found != nil && !t.Status.Timestamp.After(found.At) {
			continue
		}
		found = &ring.FailedTask{
			ID: t.ID, Slot: t.Slot, Node: nodes[t.NodeID], Says: cmp.Or(t.Status.Err, t.Status.Message),
			Rejected: t.Status.State == swarm.TaskStateRejected, At: t.Status.Timestamp,
		}
		if t.Status.State == swarm.TaskStateComplete && t.Status.Err == "" {
			found.Says = "its check failed, or it ended by itself"
		}
		if c := t.Status.ContainerStatus; c != nil {
			found.ExitCode = c.ExitCode
		}
	}
	return found
}

// tasksOf are the tasks that the swarm still wants, and those that still run although it wants
// them to stop. What is over and kept for its history is none.
func tasksOf(s *swarm.Service, tasks []swarm.Task, nodes map[string]string) (out []ring.Instance) {
	for i := range tasks {
		t := &tasks[i]
		wanted := t.DesiredState != swarm.TaskStateShutdown && t.DesiredState != swarm.TaskStateRemove && t.DesiredState != swarm.TaskStateComplete
		state := stateOfTask(t.Status.State)
		// One whose check has not passed yet runs as well, and its image may write.
		if !wanted && state != ring.StateRunning && t.Status.State != swarm.TaskStateStarting {
			continue
		}
		in := ring.Instance{
			ID: t.ID, Name: s.Spec.Name + "." + strconv.Itoa(t.Slot) + "." + t.ID, App: s.Spec.Labels[labelApp], Source: s.Spec.Labels[labelSource],
			Service: s.Spec.Labels[labelService], Slot: t.Slot, Version: versionOfTask(t), Commit: ring.SHA(s.Spec.Labels[labelCommit]),
			Kind: ring.Kind(s.Spec.Labels[labelKind]), State: state, Created: t.CreatedAt, Node: nodes[t.NodeID],
		}
		if c := t.Spec.ContainerSpec; c != nil {
			in.Image, in.Writes = c.Image, writtenByTask(c)
			checked := c.Healthcheck != nil && len(c.Healthcheck.Test) > 0 && c.Healthcheck.Test[0] != "NONE"
			switch {
			case checked && t.Status.State == swarm.TaskStateRunning: // which it is once the check passed
				in.Health = "healthy"
			case t.Status.State == swarm.TaskStateStarting: // its image may have a check
				in.Health = "starting"
			}
		}
		if c := t.Status.ContainerStatus; c != nil {
			in.ExitCode = c.ExitCode
		}
		switch state {
		case ring.StateRunning:
			in.Started = t.Status.Timestamp
		case ring.StateCreated:
			if in.Health == "starting" {
				in.Started = t.Status.Timestamp
			}
		case ring.StateExited:
			in.Finished = t.Status.Timestamp
		}
		if !wanted {
			in.State = ring.StateRemoving
		}
		out = append(out, in)
	}
	slices.SortFunc(out, func(a, b ring.Instance) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// tasksLeft are the tasks of services of a cluster that are gone, as far as they may run still: they
// go on to write while they stop.
func tasksLeft(cluster string, tasks []swarm.Task, nodes map[string]string) (out []ring.Instance) {
	for _, t := range tasks {
		c := t.Spec.ContainerSpec
		if c == nil || c.Labels[labelHost] != cluster {
			continue
		}
		isRun := ring.Kind(c.Labels[labelKind]).Ends()
		switch { // an engine before 24 leaves the tasks of a run as they are
		case isRun && t.DesiredState == swarm.TaskStateReady: // see neverAgain
			continue
		case isRun && t.DesiredState == swarm.TaskStateComplete: // it begins, or goes on
			t.DesiredState = swarm.TaskStateRunning
		}
		was := swarm.Service{Spec: swarm.ServiceSpec{Annotations: swarm.Annotations{Name: swarmServiceName(c.Labels[labelApp], c.Labels[labelService]), Labels: c.Labels}}}
		for _, in := range tasksOf(&was, []swarm.Task{t}, nodes) {
			if in.State == ring.StateExited {
				continue
			}
			if in.State = ring.StateRemoving; isRun {
				in.Slot = 0 // it is no run any more
			}
			out = append(out, in)
		}
	}
	slices.SortFunc(out, func(a, b ring.Instance) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out
}

// writtenByTask is what a container of a task may write that outlives it (see ring.Instance.Writes).
func writtenByTask(c *swarm.ContainerSpec) (out []string) {
	for _, m := range c.Mounts {
		switch {
		case m.ReadOnly:
		case m.Type == mount.TypeVolume:
			out = append(out, "volume "+m.Source)
		case m.Type == mount.TypeBind:
			out = append(out, path.Clean(m.Source))
		}
	}
	slices.Sort(out)
	return out
}

// stateOfTask is a container's word for a task: until it runs it is created, whatever comes before.
func stateOfTask(s swarm.TaskState) ring.State {
	switch s {
	case swarm.TaskStateRunning:
		return ring.StateRunning
	case swarm.TaskStateComplete, swarm.TaskStateShutdown, swarm.TaskStateFailed, swarm.TaskStateRejected, swarm.TaskStateOrphaned:
		return ring.StateExited
	case swarm.TaskStateRemove:
		return ring.StateRemoving
	}
	return ring.StateCreated
}
