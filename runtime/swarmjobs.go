package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"

	"github.com/gitring/gitring/ring"
)

// A run of a job is a replicated-job of its own. It is made with nothing to complete, which is at
// rest, and begun by an update to one completion. Swarm counts updates of a job (JobIteration): so
// none that was begun is begun again, and one that was stopped is told from one that never began.

// Labels of the run of a job.
const (
	labelTrigger = "gitring.run.trigger"
	labelFor     = "gitring.run.for"
	labelDue     = "gitring.run.due"
)

// neverAgain is the delay before Swarm starts a failed task again. Its restart condition "none" does
// not do: a new leader would count that task as missing, and make another one.
const neverAgain = 100 * 365 * 24 * time.Hour

// jobSpec is what making the run of a job sends: at rest.
func jobSpec(cluster string, a ring.Action, task swarm.TaskSpec) swarm.ServiceSpec {
	mark := ring.RunMark{}
	if a.Run != nil {
		mark = *a.Run
	}
	one, none, never := uint64(1), uint64(0), neverAgain
	l := serviceLabels(cluster, a, true)
	delete(l, labelSettings) // nothing of it is changed in place
	l[labelSlot], l[labelTrigger], l[labelFor] = strconv.Itoa(a.Slot), mark.Trigger, mark.For
	if !mark.Due.IsZero() {
		l[labelDue] = mark.Due.UTC().Format(time.RFC3339)
	}
	task.RestartPolicy = &swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionOnFailure, Delay: &never}
	task.ContainerSpec.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}} // a run that ends before its check passed has not failed
	return swarm.ServiceSpec{
		Annotations:  swarm.Annotations{Name: cmp.Or(a.Name, ring.RunName(a.App, a.Service, a.Version, mark)), Labels: l},
		TaskTemplate: task,
		Mode:         swarm.ServiceMode{ReplicatedJob: &swarm.ReplicatedJob{MaxConcurrent: &one, TotalCompletions: &none}},
	}
}

// isRun reports whether a service is the run of a job that gitring made for an app of a cluster; "" is any app.
func isRun(cluster, app string, s *swarm.Service) bool {
	l := s.Spec.Labels
	return s.Spec.Mode.ReplicatedJob != nil && ring.Kind(l[labelKind]).Ends() && l[labelHost] == cluster && (app == "" || l[labelApp] == app)
}

// createRun makes the run of a job, at rest. One of that name that is there is the same run: the name
// has its version, and the time that it is for.
func (s *Swarm) createRun(ctx context.Context, m manager, a ring.Action) (ring.Done, error) {
	if a.Of == nil || a.Want == nil || a.Run == nil || a.Start {
		return ring.Done{}, errors.New("cannot make the run of a job: the action names none")
	}
	cannot := "cannot make service " + a.Name
	spec, files, err := s.specOf(a, cannot)
	if err != nil {
		return ring.Done{}, err
	}
	was, err := s.service(ctx, m, a, a.Name, isRun)
	switch {
	case err != nil:
		return ring.Done{}, err
	case was != nil:
		return ring.Done{Instance: was.ID, Note: "already present"}, nil
	}
	return s.create(ctx, m, a, cannot, &spec, files)
}

// run is the run of a job by its ID; nil where it is gone.
func (s *Swarm) run(ctx context.Context, m manager, cannot string, a ring.Action) (*swarm.Service, error) {
	was, _, err := m.ServiceInspectWithRaw(ctx, a.Instance, swarm.ServiceInspectOptions{})
	switch {
	case cerrdefs.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fault(cannot+" service "+a.Name, "", err)
	case was.ID != a.Instance: // found by an ID or a name that begins so
		return nil, nil
	case !isRun(s.docker.opts.Host, a.App, &was):
		return nil, &ring.EngineError{Permanent: true, Err: fmt.Errorf("%s service %s: %w", cannot, a.Name, errNotOurs)}
	}
	return &was, nil
}

// wasBegun reports whether a run was begun, and whether it was stopped since.
func wasBegun(s *swarm.Service) (begun, stopped bool) {
	total := s.Spec.Mode.ReplicatedJob.TotalCompletions
	begun = s.JobStatus != nil && s.JobStatus.JobIteration.Index > 0
	return begun || total == nil || *total > 0, begun && total != nil && *total == 0
}

// completions is the spec of a run with another count of them.
func completions(s *swarm.Service, n uint64) swarm.ServiceSpec {
	spec := s.Spec
	job := *spec.Mode.ReplicatedJob
	job.TotalCompletions = &n
	spec.Mode.ReplicatedJob = &job
	return spec
}

// startRun begins a run, once: one that was begun is left as it is.
func (s *Swarm) startRun(ctx context.Context, m manager, a ring.Action) (ring.Done, error) {
	const cannot = "cannot begin"
	was, err := s.run(ctx, m, cannot, a)
	switch {
	case err != nil:
		return ring.Done{}, err
	case was == nil:
		return ring.Done{}, &ring.EngineError{Err: fmt.Errorf("%s service %s: it is gone", cannot, a.Name)}
	}
	if begun, _ := wasBegun(was); begun {
		return ring.Done{Instance: was.ID, Note: "already begun"}, nil
	}
	auth := ""
	if a.Want != nil {
		if auth, err = s.auth(ctx, a.Want.Pin.Image); err != nil {
			return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: err}
		}
	}
	if err := s.noteBegun(ctx, m, was); err != nil {
		return ring.Done{}, err
	}
	o := swarm.ServiceUpdateOptions{EncodedRegistryAuth: auth, RegistryAuthFrom: swarm.RegistryAuthFromSpec}
	sent, err := m.ServiceUpdate(ctx, was.ID, was.Version, completions(was, 1), o)
	if err != nil {
		return ring.Done{}, serveFault(a, cannot+" service "+a.Name, err)
	}
	return ring.Done{Instance: was.ID, Told: sent.Warnings}, nil
}

// onRun carries a step out on a run that is there; gone already is fine.
func (s *Swarm) onRun(ctx context.Context, m manager, cannot string, a ring.Action, do func(context.Context, manager, ring.Action, *swarm.Service) error) (ring.Done, error) {
	was, err := s.run(ctx, m, cannot, a)
	switch {
	case err != nil:
		return ring.Done{}, err
	case was == nil:
		return ring.Done{Note: "already gone"}, nil
	}
	begun, stopped := wasBegun(was)
	if a.Kind == ring.DoStop && (!begun || stopped) {
		return ring.Done{Instance: was.ID, Note: "already stopped"}, nil
	}
	if err := do(ctx, m, a, was); err != nil {
		return ring.Done{}, fault(cannot+" service "+a.Name, "", err)
	}
	return ring.Done{Instance: was.ID}, nil
}

// stopRun ends a run: its task is told to stop, and is gone with its log once it has. So the log is
// read first.
func (s *Swarm) stopRun(ctx context.Context, m manager, a ring.Action, was *swarm.Service) error {
	words := a
	words.Lines = max(a.Lines, 500)
	if done, err := s.keepRunLog(ctx, m, words); err == nil {
		s.keepWords(was.ID, done.Log)
	}
	return endRun(ctx, m, was)
}

// endRun has nothing of a run be wanted any more.
func endRun(ctx context.Context, m manager, was *swarm.Service) error {
	_, err := m.ServiceUpdate(ctx, was.ID, was.Version, completions(was, 0), swarm.ServiceUpdateOptions{RegistryAuthFrom: swarm.RegistryAuthFromSpec})
	return err
}

// removeRun removes a run. An engine before 24 leaves its tasks as they are: one that runs would go on,
// and one that waits would hold its networks, until another manager leads. So they are ended first.
func (s *Swarm) removeRun(ctx context.Context, m manager, a ring.Action, was *swarm.Service) error {
	wanted, err := wantsTasks(ctx, m, was.ID)
	if err != nil {
		return err
	}
	if wanted {
		if err := endRun(ctx, m, was); err != nil {
			return err
		}
		if err := awaitUnwanted(ctx, m, was.ID); err != nil {
			return err
		}
	}
	if err := m.ServiceRemove(ctx, was.ID); err != nil && !cerrdefs.IsNotFound(err) {
		return err
	}
	s.keepWords(was.ID, nil)
	return nil
}

// wantsTasks reports whether the swarm wants a task of a run to run, now or ever.
func wantsTasks(ctx context.Context, m manager, id string) (bool, error) {
	list, err := tasksOfService(ctx, m, id)
	return slices.ContainsFunc(list, func(t swarm.Task) bool {
		over := t.DesiredState == swarm.TaskStateShutdown || t.DesiredState == swarm.TaskStateRemove || stateOfTask(t.Status.State) == ring.StateExited
		return !over
	}), err
}

// tasksOfService are those that the swarm remembers; none where the service is gone.
func tasksOfService(ctx context.Context, m manager, id string) ([]swarm.Task, error) {
	list, err := m.TaskList(ctx, swarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("service", id))})
	if cerrdefs.IsNotFound(err) {
		return nil, nil
	}
	return slices.DeleteFunc(list, func(t swarm.Task) bool { return t.ServiceID != id }), err // an ID may begin so
}

// unwantedWithin is how long the leader may take to see that nothing of a run is wanted.
const unwantedWithin = 5 * time.Second

// awaitUnwanted waits until no task of a run that was ended is wanted any more.
func awaitUnwanted(ctx context.Context, m manager, id string) error {
	ctx, cancel := context.WithTimeout(ctx, unwantedWithin)
	defer cancel()
	for {
		if wanted, err := wantsTasks(ctx, m, id); err != nil || !wanted {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the swarm's leader did not end its tasks within %s", unwantedWithin)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// mostWords bounds what is kept of runs that were stopped.
const mostWords = 100

// keepWords keeps the end of a log that goes with its task; nil forgets it.
func (s *Swarm) keepWords(id string, log []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.words, id); log == nil {
		return
	}
	if s.words == nil || len(s.words) >= mostWords {
		s.words = map[string][]string{}
	}
	s.words[id] = log
}

// keepRunLog reads the last lines of a run, as they may be shown anywhere.
func (s *Swarm) keepRunLog(ctx context.Context, m manager, a ring.Action) (ring.Done, error) {
	cannot := "cannot read the log of service " + a.Name
	done := ring.Done{Instance: a.Instance}
	o, all := s.docker.secretsOf(a, container.InspectResponse{Config: &container.Config{}})
	if !s.docker.knowFiles(o, a.App) || !all {
		done.Log = []string{withheld}
		return done, nil
	}
	t, err := s.taskOfRun(ctx, m, cannot, a.Instance)
	if err != nil {
		return done, err
	}
	s.mu.Lock()
	words := slices.Clone(s.words[a.Instance])
	s.mu.Unlock()
	if t == nil || words != nil {
		done.Log = words
		return done, nil
	}
	if l, is := m.(leased); is {
		m = l.manager // to read asks no lease
	}
	reader, can := m.(taskReader)
	if !can {
		return done, errNotOnSwarm(cannot, "this engine hands out none")
	}
	body, err := reader.TaskLogs(ctx, t.ID, container.LogsOptions{ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(tailMore * max(a.Lines, 1))})
	if err != nil {
		return done, fault(cannot, "", err)
	}
	defer func() { _ = body.Close() }()
	out := &ending{max: tailBytes}
	if err := copyLog(out, body, t.Spec.ContainerSpec.TTY); err != nil && !errors.Is(err, io.EOF) {
		return done, &ring.EngineError{Err: fmt.Errorf("%s: %w", cannot, err)}
	}
	done.Log = lastLines(o.redactAll(string(out.b)), a.Lines)
	return done, nil
}

// taskOfRun is the task that a run had or has; nil for none.
func (s *Swarm) taskOfRun(ctx context.Context, m manager, cannot, id string) (*swarm.Task, error) {
	list, err := tasksOfService(ctx, m, id)
	if err != nil {
		return nil, swarmFault(cannot, err)
	}
	list = slices.DeleteFunc(list, func(t swarm.Task) bool { return !s.ours(&t) })
	live, over, _ := tasksByState(list)
	return cmp.Or(live, over), nil
}

// tasksByState are, of the tasks of a run, one that runs, the newest one that is over, and one that is
// on its way. What Swarm would start in the place of one that failed counts for none.
func tasksByState(tasks []swarm.Task) (live, over, waits *swarm.Task) {
	for i := range tasks {
		switch t := &tasks[i]; {
		case t.Status.State == swarm.TaskStateRunning || t.Status.State == swarm.TaskStateStarting:
			live = t
		case stateOfTask(t.Status.State) == ring.StateExited:
			if over == nil || t.Status.Timestamp.After(over.Status.Timestamp) {
				over = t
			}
		case t.DesiredState != swarm.TaskStateReady:
			waits = t
		}
	}
	return live, over, waits
}

// countBegun is how many tasks of a run began. Of one that was lost with its node nobody knows, so it counts.
func countBegun(tasks []swarm.Task) (n int) {
	for i := range tasks {
		switch tasks[i].Status.State {
		case swarm.TaskStateStarting, swarm.TaskStateRunning, swarm.TaskStateComplete, swarm.TaskStateFailed, swarm.TaskStateOrphaned:
			n++
		}
	}
	return n
}

// seenRun is the run of a job as an instance. It is a function of its arguments.
func seenRun(s *swarm.Service, tasks []swarm.Task, nodes map[string]string) ring.Instance {
	l := s.Spec.Labels
	slot, _ := strconv.Atoi(l[labelSlot])
	due, _ := time.Parse(time.RFC3339, l[labelDue])
	in := ring.Instance{
		ID: s.ID, Name: s.Spec.Name, App: l[labelApp], Source: l[labelSource], Service: l[labelService], Kind: ring.Kind(l[labelKind]), Slot: max(1, slot),
		Version: ring.Version(l[labelVersion]), Commit: ring.SHA(l[labelCommit]), Created: s.CreatedAt, State: ring.StateCreated,
		Run: &ring.RunMark{Trigger: l[labelTrigger], For: l[labelFor], Due: due},
	}
	if c := s.Spec.TaskTemplate.ContainerSpec; c != nil {
		in.Image, in.Writes = c.Image, writtenByTask(c)
		if c.StopGracePeriod != nil {
			in.Grace = *c.StopGracePeriod
		}
	}
	begun, stopped := wasBegun(s)
	live, over, waits := tasksByState(tasks)
	in.Restarts = max(0, countBegun(tasks)-1)
	switch {
	case !begun:
	case stopped && (live != nil || waits != nil):
		in.State, in.Node = ring.StateRemoving, nodes[cmp.Or(live, waits).NodeID]
	case live != nil:
		in.State, in.Node, in.Started = ring.StateRunning, nodes[live.NodeID], live.Status.Timestamp
	case stopped && (over == nil || over.DesiredState == swarm.TaskStateRemove): // its task is about to be gone
		in.State, in.Finished, in.ExitCode, in.Says = ring.StateExited, s.UpdatedAt, exitStopped, "stopped"
	case over != nil && waits != nil && waits.DesiredState == swarm.TaskStateComplete: // begun again, without its delay: its node is drained
		in.Restarts++
		in.State, in.Node, in.Says = ring.StateRestarting, nodes[waits.NodeID], cmp.Or(waits.Status.Err, waits.Status.Message)
	case over != nil:
		in.State, in.Node, in.Started, in.Finished = ring.StateExited, nodes[over.NodeID], over.CreatedAt, over.Status.Timestamp
		in.ExitCode, in.Says = endOfTask(over)
	case waits != nil:
		in.State, in.Node, in.Says = ring.StateRestarting, nodes[waits.NodeID], cmp.Or(waits.Status.Err, waits.Status.Message)
	case waitsForGood(tasks): // a swarm that keeps no history of tasks
		in.State, in.Finished, in.ExitCode, in.Says = ring.StateExited, s.UpdatedAt, exitNeverRan, "it failed, and the swarm remembers no more"
	default:
		in.State, in.Says = ring.StateRestarting, "no task of it is made yet"
	}
	return in
}

// waitsForGood reports whether a task waits in the place of one that failed (see neverAgain).
func waitsForGood(tasks []swarm.Task) bool {
	return slices.ContainsFunc(tasks, func(t swarm.Task) bool { return t.DesiredState == swarm.TaskStateReady })
}

// Exit codes of a task that has none of its own.
const (
	exitNeverRan = 125
	exitStopped  = 143
	exitLost     = 137
)

// endOfTask is how a task ended: its exit code, and the words of its node where that says too little.
// Only one that is complete ended well.
func endOfTask(t *swarm.Task) (code int, says string) {
	if c := t.Status.ContainerStatus; c != nil {
		code = max(0, c.ExitCode)
	}
	switch {
	case t.Status.State == swarm.TaskStateComplete, code > 0:
		return code, ""
	case t.Status.State == swarm.TaskStateOrphaned:
		return exitLost, "lost with its node"
	case t.Status.State == swarm.TaskStateShutdown:
		return exitStopped, ""
	}
	return exitNeverRan, cmp.Or(t.Status.Err, t.Status.Message)
}

// seenRunOf is what the service of a run names.
func seenRunOf(s *swarm.Service, named map[string]string) ring.ClusterRun {
	l := s.Spec.Labels
	return ring.ClusterRun{
		Name: s.Spec.Name, App: l[labelApp], Service: l[labelService], Files: filesOf(s.PreviousSpec, filesOf(&s.Spec, nil)), Networks: networksOf(&s.Spec, named),
	}
}
