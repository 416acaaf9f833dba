package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"

	"github.com/gitring/gitring/ring"
)

// errNotOnSwarm is of what needs hands on a container, or a container of this host.
func errNotOnSwarm(cannot, why string) error {
	return &ring.HostError{Says: cannot + " on a swarm: " + why, Hint: "docs/reference/engines.md says what a swarm does by itself"}
}

// Version and the others up to Asker are of this manager's own engine.
func (s *Swarm) Version(ctx context.Context) (EngineVersion, error) {
	if _, err := s.ready(ctx); err != nil { // a manager that became a worker ends serve
		if _, unfit := errors.AsType[*UnfitError](err); unfit {
			return EngineVersion{}, err
		}
	}
	return s.docker.Version(ctx)
}

// About is what this manager's engine says of itself, and the swarm through it.
func (s *Swarm) About(ctx context.Context) (About, error) {
	a, err := s.docker.About(ctx)
	if err != nil {
		return a, err
	}
	m, err := s.ready(ctx)
	if err != nil {
		return a, err
	}
	info, err := m.Info(ctx)
	if err != nil {
		return a, fault("cannot ask the engine what it is", "", err)
	}
	a.Swarm = &SwarmAbout{Managers: info.Swarm.Managers, Nodes: info.Swarm.Nodes}
	if c := info.Swarm.Cluster; c != nil {
		a.Swarm.Autolock = c.Spec.EncryptionConfig.AutoLockManagers
	}
	return a, nil
}

// SwarmAbout is what a swarm says of itself, for people.
type SwarmAbout struct {
	Managers, Nodes int
	// Autolock reports whether a manager that starts is asked for a key before it can read the
	// log, in which the swarm keeps secrets.
	Autolock bool
}

// Runtimes are those of this manager; what a service runs with is each node's own.
func (s *Swarm) Runtimes(ctx context.Context) (byDefault string, nvidia []string, err error) {
	return s.docker.Runtimes(ctx)
}

// NoFronts is why there are none.
func (s *Swarm) NoFronts(context.Context) (string, error) {
	return "a manager cannot reach the tasks of an overlay network", nil
}

// Adopts takes nothing over: there is nothing of Compose's on a swarm.
func (s *Swarm) Adopts(map[string]bool) {}

// Commits are those that the services of a source were made from, by their labels.
func (s *Swarm) Commits(ctx context.Context, source string) ([]ring.SHA, error) {
	m, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	list, err := m.ServiceList(ctx, swarm.ServiceListOptions{Filters: filters.NewArgs(
		filters.Arg("label", labelHost+"="+s.docker.opts.Host), filters.Arg("label", labelSource+"="+source))})
	if err != nil {
		return nil, swarmFault("cannot list services of the swarm", err)
	}
	var commits []ring.SHA
	for i := range list {
		if sha := list[i].Spec.Labels[labelCommit]; sha != "" {
			commits = append(commits, ring.SHA(sha))
		}
	}
	slices.Sort(commits)
	return slices.Compact(commits), nil
}

// Mounted are the contents that configs and secrets of any gitring on the swarm were made from.
func (s *Swarm) Mounted(ctx context.Context) (map[string]bool, error) {
	m, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	ours := filters.NewArgs(filters.Arg("label", labelContent))
	configs, err := m.ConfigList(ctx, swarm.ConfigListOptions{Filters: ours})
	if err != nil {
		return nil, swarmFault("cannot list configs of the swarm", err)
	}
	secrets, err := m.SecretList(ctx, swarm.SecretListOptions{Filters: ours})
	if err != nil {
		return nil, swarmFault("cannot list secrets of the swarm", err)
	}
	hashes := map[string]bool{}
	for i := range configs {
		hashes[configs[i].Spec.Labels[labelContent]] = true
	}
	for i := range secrets {
		hashes[secrets[i].Spec.Labels[labelContent]] = true
	}
	return hashes, nil
}

// SweepLive and SweepFronts have nothing to remove.
func (s *Swarm) SweepLive(context.Context) error { return nil }

// SweepFronts has nothing to remove.
func (s *Swarm) SweepFronts(context.Context) error { return nil }

// SignalFront is never asked: there are no fronts.
func (s *Swarm) SignalFront(context.Context, string) error {
	return errNotOnSwarm("cannot upgrade a front", "there are none")
}

// Asker asks registries for people.
func (s *Swarm) Asker() *Asker { return s.docker.Asker() }

// ImageHere reports whether an image can be run again: a node pulls by its digest what it does
// not have, and one without a registry is nowhere to be had.
func (s *Swarm) ImageHere(ctx context.Context, pin string) (bool, error) {
	if strings.Contains(pin, "@") {
		return true, nil
	}
	return s.docker.ImageHere(ctx, pin)
}

// Loose has no notes: volumes are each node's own, and this manager sees only its own.
func (s *Swarm) Loose(context.Context, *ring.App) ([]string, error) { return nil, nil }

// Subnets has no notes: what a subnet takes of a node's own network only the node knows.
func (s *Swarm) Subnets(context.Context, *ring.App) ([]string, error) { return nil, nil }

// Adoption is refused: a stack is not taken over.
func (s *Swarm) Adoption(_ context.Context, a ring.Action, _ bool) (Adoption, error) {
	return Adoption{}, errNotOnSwarm("cannot adopt "+a.App, "docker stack rm "+a.App+", and gitring makes its services; what volumes hold stays")
}

// Composed is refused: nothing of a swarm is Compose's.
func (s *Swarm) Composed(_ context.Context, app string, _ map[string]string) ([]Composed, error) {
	return nil, errNotOnSwarm("cannot hand "+app+" back to Compose", "its services run on without gitring, and docker service works on them")
}

// Labelled is refused: a proof is of a container, and the one of a task may be on any node.
func (s *Swarm) Labelled(context.Context, string) (Labelled, error) {
	return Labelled{}, errNotOnSwarm("cannot prove what runs", "a container is another node's, and its manager cannot read its labels; docker service inspect shows the commit that a service was made from")
}

// taskReader is what is asked of the client of single tasks.
type taskReader interface {
	TaskLogs(ctx context.Context, id string, o container.LogsOptions) (io.ReadCloser, error)
}

// task is one of ours by its ID.
func (s *Swarm) task(ctx context.Context, cannot, id string) (manager, swarm.Task, error) {
	m, err := s.ready(ctx)
	if err != nil {
		return nil, swarm.Task{}, err
	}
	list, err := m.TaskList(ctx, swarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("id", id))})
	if err != nil {
		return nil, swarm.Task{}, swarmFault(cannot, err)
	}
	i := slices.IndexFunc(list, func(t swarm.Task) bool { return t.ID == id && s.ours(&t) })
	if i < 0 { // the run of a job is known by its service
		t, err := s.taskOfRun(ctx, m, cannot, id)
		if err != nil {
			return nil, swarm.Task{}, err
		}
		if t != nil {
			return m, *t, nil
		}
		return nil, swarm.Task{}, &ring.EngineError{Err: fmt.Errorf("%s: there is no such task of cluster %s any more", cannot, s.docker.opts.Host)}
	}
	return m, list[i], nil
}

func (s *Swarm) ours(t *swarm.Task) bool {
	return t.Spec.ContainerSpec != nil && t.Spec.ContainerSpec.Labels[labelHost] == s.docker.opts.Host
}

// Exec runs a command in a task whose node this is. That of another is refused by the node's name.
func (s *Swarm) Exec(ctx context.Context, id string, argv []string) (exit int, output string, err error) {
	cannot := "cannot run a command in task " + short(id)
	m, t, err := s.task(ctx, cannot, id)
	if err != nil {
		return 0, "", err
	}
	at, err := here(ctx, m, cannot, &t)
	if err != nil {
		return 0, "", err
	}
	return s.docker.Exec(ctx, at, argv)
}

// Printed is what checks of a task printed, where it runs on this very node.
func (s *Swarm) Printed(ctx context.Context, id string, want *ring.Service) ([]ring.CheckPrinted, error) {
	cannot := "cannot ask for the checks of task " + short(id)
	m, t, err := s.task(ctx, cannot, id)
	if err != nil {
		return nil, err
	}
	at, err := here(ctx, m, cannot, &t)
	if err != nil {
		return nil, err
	}
	return s.docker.Printed(ctx, at, want)
}

// here is the container of a task, where it runs on this very node.
func here(ctx context.Context, m manager, cannot string, t *swarm.Task) (string, error) {
	info, err := m.Info(ctx)
	if err != nil {
		return "", fault("cannot ask the engine what it is", "", err)
	}
	if t.Status.ContainerStatus == nil || t.Status.ContainerStatus.ContainerID == "" {
		return "", &ring.EngineError{Err: fmt.Errorf("%s: it has no container yet", cannot)}
	}
	if t.NodeID == info.Swarm.NodeID {
		return t.Status.ContainerStatus.ContainerID, nil
	}
	name := t.NodeID
	if nodes, err := m.NodeList(ctx, swarm.NodeListOptions{Filters: filters.NewArgs(filters.Arg("id", t.NodeID))}); err == nil && len(nodes) == 1 {
		name = nodes[0].Description.Hostname
	}
	return "", &ring.HostError{
		Says: fmt.Sprintf("%s: it runs on node %s, and this is %s", cannot, name, info.Name),
		Hint: fmt.Sprintf("on %s: docker exec %s …", name, short(t.Status.ContainerStatus.ContainerID)),
	}
}

// Logs writes the log of a task to w, whichever node it runs on.
func (s *Swarm) Logs(ctx context.Context, id string, o LogOptions, w io.Writer) error {
	cannot := "cannot read the log of task " + short(id)
	m, t, err := s.task(ctx, cannot, id)
	if err != nil {
		return err
	}
	reader, can := m.(taskReader)
	if !can {
		return errNotOnSwarm(cannot, "this engine hands out none")
	}
	body, err := reader.TaskLogs(ctx, t.ID, logsOptions(o))
	if err != nil {
		return fault(cannot, "", err)
	}
	defer func() { _ = body.Close() }()
	err = copyLog(w, body, t.Spec.ContainerSpec.TTY)
	if err != nil && (!o.Follow || ctx.Err() == nil) {
		return &ring.EngineError{Err: fmt.Errorf("%s: %w", cannot, err)}
	}
	return nil
}

// Usage is what tasks take of this node. Those of others are left out: each node measures its own.
func (s *Swarm) Usage(ctx context.Context, ids []string) (map[string]ring.Usage, error) {
	m, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	info, err := m.Info(ctx)
	if err != nil {
		return nil, fault("cannot ask the engine what it is", "", err)
	}
	list, err := m.TaskList(ctx, swarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("node", info.Swarm.NodeID), filters.Arg("desired-state", "running"))})
	if err != nil {
		return nil, swarmFault("cannot list tasks of the swarm", err)
	}
	taskOf := map[string]string{} // by container
	for i := range list {
		t := &list[i]
		for _, id := range ids {
			if s.ours(t) && (t.ID == id || t.ServiceID == id) && t.Status.ContainerStatus != nil {
				taskOf[t.Status.ContainerStatus.ContainerID] = id
			}
		}
	}
	if len(taskOf) == 0 {
		return map[string]ring.Usage{}, nil
	}
	var containers []string
	for id := range taskOf {
		containers = append(containers, id)
	}
	used, err := s.docker.Usage(ctx, containers)
	out := map[string]ring.Usage{}
	for id, u := range used {
		out[taskOf[id]] = u
	}
	return out, err
}
