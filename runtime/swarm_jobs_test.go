package runtime

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// job is to make a run of job migrate.
func (r *swarmRig) job(t *testing.T, change func(a *ring.Action, s *ring.Service), words ...string) ring.Action {
	a := r.action(func(a *ring.Action, s *ring.Service) {
		s.Name, s.Kind, s.Replicas, s.Job = "migrate", ring.JobK, 1, &ring.Job{Run: "on_change"}
		s.Spec.Command = words
		a.Kind, a.Service, a.Slot, a.Run = ring.DoCreate, "migrate", 1, &ring.RunMark{Trigger: ring.OnChange}
		if change != nil {
			change(a, s)
		}
	})
	a.Name = ring.RunName(a.App, a.Service, a.Version, *a.Run)
	t.Cleanup(func() {
		list, err := r.c.ServiceList(context.WithoutCancel(t.Context()), swarm.ServiceListOptions{})
		require.NoError(t, err)
		for _, s := range list {
			if isRun("cluster-"+r.app, r.app, &s) {
				require.NoError(t, r.c.ServiceRemove(context.WithoutCancel(t.Context()), s.ID))
			}
		}
	})
	return a
}

// on is a step on a run.
func (r *swarmRig) on(a ring.Action, kind ring.ActionKind, in ring.Instance) ring.Action {
	a.Kind, a.Instance, a.Name, a.Run, a.Lines = kind, in.ID, in.Name, nil, 10
	return a
}

// runSeen is the only run that is seen.
func (r *swarmRig) runSeen(t *testing.T) ring.Instance {
	t.Helper()
	seen := r.look(t)
	require.Len(t, seen.Cluster.Runs, 1)
	require.Len(t, seen.Instances, 1)
	require.Empty(t, seen.Cluster.Services, "a run is no service that is updated")
	return seen.Instances[0]
}

func (r *swarmRig) awaitRun(t *testing.T, is func(ring.Instance) bool) (in ring.Instance) {
	t.Helper()
	for range 600 {
		if in = r.runSeen(t); is(in) {
			return in
		}
		r.pass(100 * time.Millisecond)
	}
	t.Fatalf("never: %+v", in)
	return in
}

func runEnded(in ring.Instance) bool { return in.Ended() }

func runsOnce(t *testing.T, r *swarmRig) {
	a := r.job(t, nil, "tell", "done", "0")
	r.must(t, a)
	in := r.runSeen(t)
	require.Equal(t, []any{ring.StateCreated, ring.JobK, "migrate", 1, a.Version}, []any{in.State, in.Kind, in.Service, in.Slot, in.Version})
	require.Equal(t, &ring.RunMark{Trigger: ring.OnChange}, in.Run)
	require.Equal(t, "already present", r.must(t, a).Note, "its name is its lock")
	r.pass(2 * time.Second)
	require.Equal(t, ring.StateCreated, r.runSeen(t).State, "nothing begins by itself")

	start := r.on(a, ring.DoStart, in)
	require.Empty(t, r.must(t, start).Note)
	require.Equal(t, "already begun", r.must(t, start).Note, "an answer that was lost begins nothing twice")
	in = r.awaitRun(t, runEnded)
	require.Zero(t, in.ExitCode, in.Says)
	require.NotEmpty(t, in.Node)
	require.Equal(t, "already begun", r.must(t, start).Note, "what ran does not run again")
	require.Equal(t, "already present", r.must(t, a).Note)
	r.pass(2 * time.Second)
	require.Equal(t, in, r.runSeen(t))

	r.must(t, r.on(a, ring.DoRemove, in))
	require.Equal(t, "already gone", r.must(t, r.on(a, ring.DoRemove, in)).Note)
	require.Empty(t, r.look(t).Cluster.Runs)
}

func runFails(t *testing.T, r *swarmRig) {
	a := r.job(t, nil, "tell", "broken", "3")
	r.must(t, a)
	r.must(t, r.on(a, ring.DoStart, r.runSeen(t)))
	in := r.awaitRun(t, runEnded)
	require.Equal(t, 3, in.ExitCode)
	tasks := func() (begun int) {
		list, err := r.c.TaskList(t.Context(), swarm.TaskListOptions{})
		require.NoError(t, err)
		for _, x := range list {
			if x.ServiceID == in.ID && x.Status.State != swarm.TaskStateReady && x.Status.State != swarm.TaskStateNew && x.Status.ContainerStatus != nil && x.Status.ContainerStatus.ContainerID != "" {
				begun++
			}
		}
		return begun
	}
	require.Equal(t, 1, tasks())
	for range 10 {
		r.pass(time.Second)
		require.Equal(t, 3, r.runSeen(t).ExitCode)
	}
	require.LessOrEqual(t, tasks(), 1, "the swarm tried it again")
	require.True(t, r.wantsTasksOf(t, in.ID), "one waits in its place")
	r.must(t, r.on(a, ring.DoRemove, in))
	require.False(t, r.wantsTasksOf(t, in.ID), "nothing of it waits on")
	for range 10 {
		require.Empty(t, r.look(t).Instances, "what is left of it is no run")
		r.pass(200 * time.Millisecond)
	}
}

// wantsTasksOf reports whether the swarm wants a task of a service that may be gone.
func (r *swarmRig) wantsTasksOf(t *testing.T, id string) bool {
	t.Helper()
	list, err := r.c.TaskList(t.Context(), swarm.TaskListOptions{})
	require.NoError(t, err)
	return slices.ContainsFunc(list, func(x swarm.Task) bool {
		return x.ServiceID == id && x.DesiredState != swarm.TaskStateShutdown && x.DesiredState != swarm.TaskStateRemove && x.Status.State != swarm.TaskStateComplete
	})
}

// A run that is removed while it runs is told to stop first: an engine before 24 would let it go on.
func runIsRemoved(t *testing.T, r *swarmRig) {
	a := r.job(t, nil, "cry", "stay")
	r.must(t, a)
	r.must(t, r.on(a, ring.DoStart, r.runSeen(t)))
	in := r.awaitRun(t, func(in ring.Instance) bool { return in.State == ring.StateRunning })
	r.must(t, r.on(a, ring.DoRemove, in))
	require.False(t, r.wantsTasksOf(t, in.ID))
	for range 300 {
		seen := r.look(t)
		require.Empty(t, seen.Cluster.Runs)
		if len(seen.Instances) == 0 {
			return
		}
		require.Equal(t, ring.StateRemoving, seen.Instances[0].State)
		r.pass(100 * time.Millisecond)
	}
	t.Fatal("it goes on")
}

// Where a hand removes a failed run, a task may wait for ever in its place. That is no run.
func runIsRemovedByHand(t *testing.T, r *swarmRig) {
	a := r.job(t, nil, "tell", "broken", "3")
	r.must(t, a)
	r.must(t, r.on(a, ring.DoStart, r.runSeen(t)))
	in := r.awaitRun(t, runEnded)
	require.NoError(t, r.c.ServiceRemove(t.Context(), in.ID))
	for range 10 {
		require.Empty(t, r.look(t).Instances)
		r.pass(200 * time.Millisecond)
	}
}

func runStops(t *testing.T, r *swarmRig) {
	a := r.job(t, nil, "cry", "stay")
	r.must(t, a)
	start := r.on(a, ring.DoStart, r.runSeen(t))
	r.must(t, start)
	in := r.awaitRun(t, func(in ring.Instance) bool { return in.State == ring.StateRunning })
	var log bytes.Buffer
	for range 100 { // a busy node takes its time
		r.pass(200 * time.Millisecond)
		log.Reset()
		require.NoError(t, r.Logs(t.Context(), in.ID, LogOptions{Tail: -1}, &log))
		if strings.Contains(log.String(), "line 299\n") {
			break
		}
	}
	require.Contains(t, log.String(), "line 299\n")
	require.Contains(t, strings.Join(r.must(t, r.on(a, ring.DoLog, in)).Log, "\n"), "line 299")

	stop := r.on(a, ring.DoStop, in)
	require.Empty(t, r.must(t, stop).Note)
	in = r.awaitRun(t, runEnded)
	require.NotZero(t, in.ExitCode)
	require.Equal(t, "stopped", in.Says)
	require.Equal(t, "already stopped", r.must(t, stop).Note)
	require.Equal(t, "already begun", r.must(t, start).Note)
	require.Contains(t, strings.Join(r.must(t, r.on(a, ring.DoLog, in)).Log, "\n"), "line 299", "its last words are kept")
	r.pass(3 * time.Second)
	require.Equal(t, in, r.runSeen(t))
}

func runWaits(t *testing.T, r *swarmRig) {
	a := r.job(t, func(_ *ring.Action, s *ring.Service) {
		s.Spec.Cluster.Constraints = []string{"node.hostname == nowhere"}
	}, "tell", "done", "0")
	r.must(t, a)
	r.must(t, r.on(a, ring.DoStart, r.runSeen(t)))
	in := r.awaitRun(t, func(in ring.Instance) bool { return strings.Contains(in.Says, "no suitable node") })
	require.Equal(t, ring.StateRestarting, in.State)
	r.must(t, r.on(a, ring.DoStop, in))
	require.Equal(t, "stopped", r.awaitRun(t, runEnded).Says)
}

func runFiles(t *testing.T, r *swarmRig) {
	hash := strings.Repeat("c3", 32)
	m := r.put(t, hash, "app.conf", "a=1", "/etc/app.conf")
	a := r.job(t, func(_ *ring.Action, s *ring.Service) { s.Spec.Mounts = []ring.Mount{m} }, "tell", "done", "0")
	r.must(t, a)
	seen := r.look(t)
	require.Len(t, seen.Cluster.Files, 1)
	require.Equal(t, []string{seen.Cluster.Files[0].Name}, seen.Cluster.Runs[0].Files)
	r.must(t, r.on(a, ring.DoStart, r.runSeen(t)))
	require.Zero(t, r.awaitRun(t, runEnded).ExitCode)
	off := ring.Action{Kind: ring.DoFileOff, App: r.app, Name: seen.Cluster.Files[0].Name}
	require.True(t, r.must(t, off).InUse)
	r.must(t, r.on(a, ring.DoRemove, r.runSeen(t)))
	require.False(t, r.must(t, off).InUse)
}

func runNames(t *testing.T, r *swarmRig) {
	due := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	cron := func(at time.Time) func(a *ring.Action, s *ring.Service) {
		return func(a *ring.Action, s *ring.Service) {
			s.Kind, a.Run, a.Slot = ring.CronK, &ring.RunMark{Trigger: ring.OnSchedule, Due: at}, 2
		}
	}
	first := r.job(t, cron(due), "tell", "done", "0")
	require.Equal(t, r.app+"_migrate_"+first.Version.Short()+"_20260102T030000", first.Name)
	r.must(t, first)
	in := r.runSeen(t)
	require.True(t, in.Run.Due.Equal(due))
	require.Equal(t, []any{2, ring.OnSchedule}, []any{in.Slot, in.Run.Trigger})
	second := r.job(t, cron(due.Add(time.Hour)), "tell", "done", "0")
	r.must(t, second)
	require.Len(t, r.look(t).Cluster.Runs, 2)

	foreign := r.job(t, cron(due.Add(2*time.Hour)), "tell", "done", "0")
	spec, err := serviceSpec("another", foreign, nil)
	require.NoError(t, err)
	made, err := r.c.ServiceCreate(t.Context(), spec, swarm.ServiceCreateOptions{})
	require.NoError(t, err)
	r.refused(t, foreign, ring.ForeignProject)
	_, err = r.Do(t.Context(), ring.Action{Kind: ring.DoRemove, App: r.app, Service: "migrate", Instance: made.ID, Name: foreign.Name})
	require.ErrorIs(t, err, errNotOurs)
	require.NoError(t, r.c.ServiceRemove(t.Context(), made.ID))
}

// What became of the tasks of a run says how it does; nothing but a task that is complete ended well.
func TestHowTheRunOfAJobDoes(t *testing.T) {
	none, one := uint64(0), uint64(1)
	task := func(state, desired swarm.TaskState, code int, err string) swarm.Task {
		x := swarm.Task{NodeID: "n", DesiredState: desired}
		x.Status.State, x.Status.Err, x.Status.Timestamp = state, err, time.Unix(100, 0)
		if code >= 0 {
			x.Status.ContainerStatus = &swarm.ContainerStatus{ExitCode: code}
		}
		return x
	}
	next := task(swarm.TaskStateReady, swarm.TaskStateReady, -1, "")
	for _, tt := range []struct {
		name      string
		iteration uint64
		total     *uint64
		tasks     []swarm.Task
		state     ring.State
		code      int
		says      string
		restarts  int
	}{
		{"made", 0, &none, nil, ring.StateCreated, 0, "", 0},
		{"begun, and seen before it has a task", 1, &one, nil, ring.StateRestarting, 0, "no task of it is made yet", 0},
		{"on its way", 1, &one, []swarm.Task{task(swarm.TaskStatePreparing, swarm.TaskStateComplete, -1, "")}, ring.StateRestarting, 0, "", 0},
		{"without a node", 1, &one, []swarm.Task{task(swarm.TaskStatePending, swarm.TaskStateComplete, -1, "no suitable node")}, ring.StateRestarting, 0, "no suitable node", 0},
		{"running", 1, &one, []swarm.Task{task(swarm.TaskStateRunning, swarm.TaskStateComplete, -1, "")}, ring.StateRunning, 0, "", 0},
		{"complete", 1, &one, []swarm.Task{task(swarm.TaskStateComplete, swarm.TaskStateComplete, 0, "")}, ring.StateExited, 0, "", 0},
		{"failed, with what would come in its place", 1, &one, []swarm.Task{next, task(swarm.TaskStateFailed, swarm.TaskStateShutdown, 3, "x")}, ring.StateExited, 3, "", 0},
		{"failed, and only what would come in its place is remembered", 1, &one, []swarm.Task{next}, ring.StateExited, exitNeverRan, "it failed, and the swarm remembers no more", 0},
		{"failed without a code", 1, &one, []swarm.Task{task(swarm.TaskStateFailed, swarm.TaskStateShutdown, 0, "starting failed")}, ring.StateExited, exitNeverRan, "starting failed", 0},
		{"rejected", 1, &one, []swarm.Task{next, task(swarm.TaskStateRejected, swarm.TaskStateShutdown, -1, "No such image")}, ring.StateExited, exitNeverRan, "No such image", 0},
		{"lost with its node", 1, &one, []swarm.Task{task(swarm.TaskStateOrphaned, swarm.TaskStateShutdown, -1, "")}, ring.StateExited, exitLost, "lost with its node", 0},
		{"shut down though it ended well", 1, &one, []swarm.Task{task(swarm.TaskStateShutdown, swarm.TaskStateShutdown, 0, "")}, ring.StateExited, exitStopped, "", 0},
		{"told to stop", 2, &none, []swarm.Task{task(swarm.TaskStateRunning, swarm.TaskStateRemove, -1, "")}, ring.StateRemoving, 0, "", 0},
		{"told to stop before it ran", 2, &none, []swarm.Task{task(swarm.TaskStatePreparing, swarm.TaskStateRemove, -1, "")}, ring.StateRemoving, 0, "", 0},
		{"stopped", 2, &none, nil, ring.StateExited, exitStopped, "stopped", 0},
		{"stopped, and seen with its task", 2, &none, []swarm.Task{task(swarm.TaskStateShutdown, swarm.TaskStateRemove, 2, "")}, ring.StateExited, exitStopped, "stopped", 0},
		{"stopped once it was complete", 2, &none, []swarm.Task{task(swarm.TaskStateComplete, swarm.TaskStateComplete, 0, "")}, ring.StateExited, 0, "", 0},
		{"run again by a hand", 3, &one, []swarm.Task{task(swarm.TaskStateComplete, swarm.TaskStateComplete, 0, ""), task(swarm.TaskStateRunning, swarm.TaskStateComplete, -1, "")}, ring.StateRunning, 0, "", 1},
		{"failed on a drained node, and begun again", 1, &one, []swarm.Task{task(swarm.TaskStateRunning, swarm.TaskStateComplete, -1, ""), task(swarm.TaskStateFailed, swarm.TaskStateShutdown, 3, "x")}, ring.StateRunning, 0, "", 1},
		{"failed on a drained node, and on its way again", 1, &one, []swarm.Task{task(swarm.TaskStateAssigned, swarm.TaskStateComplete, -1, ""), task(swarm.TaskStateFailed, swarm.TaskStateShutdown, 3, "x")}, ring.StateRestarting, 0, "", 1},
		{"lost with its node, and begun again", 1, &one, []swarm.Task{task(swarm.TaskStateRunning, swarm.TaskStateComplete, -1, ""), task(swarm.TaskStateOrphaned, swarm.TaskStateShutdown, -1, "")}, ring.StateRunning, 0, "", 1},
		{"lost with its node, begun again and complete", 1, &one, []swarm.Task{task(swarm.TaskStateComplete, swarm.TaskStateComplete, 0, ""), task(swarm.TaskStateOrphaned, swarm.TaskStateShutdown, -1, "")}, ring.StateExited, 0, "", 1},
		{"begun by two managers", 1, &one, []swarm.Task{task(swarm.TaskStateComplete, swarm.TaskStateComplete, 0, ""), task(swarm.TaskStateComplete, swarm.TaskStateComplete, 0, "")}, ring.StateExited, 0, "", 1},
	} {
		s := &swarm.Service{JobStatus: &swarm.JobStatus{JobIteration: swarm.Version{Index: tt.iteration}}}
		s.Spec.Mode.ReplicatedJob = &swarm.ReplicatedJob{TotalCompletions: tt.total}
		in := seenRun(s, tt.tasks, map[string]string{"n": "node-1"})
		require.Equal(t, []any{tt.state, tt.code, tt.says, tt.restarts}, []any{in.State, in.ExitCode, in.Says, in.Restarts}, tt.name)
	}
}

// Who holds a lease reads the log of a run as one without a lease does.
func TestTheLogOfARunIsReadUnderALease(t *testing.T) {
	r, _ := memorySwarmRig(t, 0)
	held, err := r.dial(t, 0, Options{Host: "cluster-" + r.app, ContentDir: r.content, Lease: LeaseOptions{ID: "a", Manager: "node-1", Key: "k"}})
	require.NoError(t, err)
	r.Swarm = held
	r.look(t) // takes the lease
	a := r.job(t, nil, "cry", "stay")
	r.must(t, a)
	r.must(t, r.on(a, ring.DoStart, r.runSeen(t)))
	in := r.awaitRun(t, func(in ring.Instance) bool { return in.State == ring.StateRunning })
	require.Contains(t, strings.Join(r.must(t, r.on(a, ring.DoLog, in)).Log, "\n"), "line 299")
}
