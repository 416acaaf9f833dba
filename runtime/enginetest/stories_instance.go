package enginetest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func emptyHost(t *testing.T, r *Rig) {
	s := r.Seen(t)
	require.Empty(t, s.Instances)
	require.NotEmpty(t, s.Networks, "the engine's own networks are seen")
	require.WithinDuration(t, time.Now(), s.At, time.Minute)
}

func createdIsSeen(t *testing.T, r *Rig) {
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Labels = map[string]string{"mine": "1", "gitring.host": "elsewhere", "com.docker.compose.project": "other"}
	})
	a.Start = false
	done := r.Must(t, a)
	in := r.OnlyInstance(t)
	require.WithinDuration(t, time.Now(), in.Created, time.Minute)
	in.Created = time.Time{}
	require.Contains(t, in.Addresses, "none")
	bounds := &ring.Resources{}
	if r.lacks(t, UnboundedProcesses) {
		most := int64(2048)
		bounds.PidsLimit = &most
	}
	require.Equal(t, bounds, in.Limits)
	in.Addresses, in.Limits = nil, nil
	require.Equal(t, ring.Instance{
		ID: done.Instance, Name: r.App + "-web-1-" + a.Version.Short(), App: r.App, Source: "prod", Path: "apps/" + r.App, Service: "web", Slot: 1,
		Version: a.Version, Commit: a.Commit, Kind: ring.Worker, Image: r.Image, State: ring.StateCreated, Policy: "no", Grace: time.Second,
	}, in)
	_, hex, _ := strings.Cut(string(a.Version), ":")
	labels := r.Inspect(t, in.ID).Config.Labels
	delete(labels, r.ImageLabel) // of the image
	require.Equal(t, map[string]string{
		"gitring.host": r.Host, "gitring.source": "prod", "gitring.app": r.App, "gitring.service": "web", "gitring.slot": "1",
		"gitring.version": string(a.Version), "gitring.commit": string(a.Commit), "gitring.kind": "worker", "mine": "1",
		"com.docker.compose.project": r.App, "com.docker.compose.service": "web", "com.docker.compose.container-number": "1",
		"com.docker.compose.oneoff": "False", "com.docker.compose.config-hash": hex, "com.docker.compose.image": r.Inspect(t, in.ID).Image,
		"com.docker.compose.project.working_dir": "apps/" + r.App, "com.docker.compose.project.config_files": "compose.yaml,compose.prod.yaml",
	}, labels)
}

func createStarts(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, in.State)
	require.WithinDuration(t, time.Now(), in.Started, time.Minute)
	require.Zero(t, in.Finished)
	require.Empty(t, in.Health)
}

func createAgain(t *testing.T, r *Rig) {
	a := r.CreateAction(nil)
	a.Start = false
	r.AddNetwork(t, &a, "front")
	first := r.Must(t, a)
	// As after a crash of the daemon between create and the further steps.
	r.AddNetwork(t, &a, "back")
	a.Version = r.OnlyInstance(t).Version
	a.Start = true
	again := r.Must(t, a)
	require.Equal(t, first.Instance, again.Instance)
	in := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, in.State)
	require.Len(t, in.Addresses, 2)
	require.Equal(t, first.Instance, r.Must(t, a).Instance)
	require.Equal(t, in.Started, r.OnlyInstance(t).Started, "what runs is not started again")
}

// What is made in the place of another has joined before that one is stopped.
func createJoins(t *testing.T, r *Rig) {
	a := r.CreateAction(nil)
	a.Start = false
	front, back := r.AddNetwork(t, &a, "front"), r.AddNetwork(t, &a, "back")
	made := r.Inspect(t, r.Must(t, a).Instance)
	require.False(t, made.State.Running)
	require.Len(t, made.NetworkSettings.Networks, 2)
	require.Contains(t, made.NetworkSettings.Networks, front.NetworkName)
	require.Contains(t, made.NetworkSettings.Networks, back.NetworkName)
}

func foreignName(t *testing.T, r *Rig) {
	a := r.CreateAction(nil)
	id := r.AddForeign(t, ring.ContainerName(a.App, a.Service, a.Slot, a.Version))
	e := r.MustFail(t, a)
	require.Equal(t, ring.Conflict, refusalOf(t, e).Code)
	require.False(t, e.Permanent, "it is no word on the version")
	require.Positive(t, e.Wait)
	require.NotEmpty(t, refusalOf(t, e).Hint)
	require.Regexp(t, `^container `+id[:12]+` \(image .+\)$`, e.Holder, "whose it is")
	whose := ring.Action{Kind: ring.DoWhose, App: a.App, Service: a.Service, Name: ring.ContainerName(a.App, a.Service, a.Slot, a.Version)}
	require.Equal(t, e.Holder, r.MustFail(t, whose).Holder)
	require.True(t, r.Inspect(t, id).State.Running)
	require.Empty(t, r.Seen(t).Instances)
	whose.Name = id[:12] // the engine takes it for an ID
	r.Must(t, whose)
	whose.Name = a.App + "-nobodys"
	r.Must(t, whose)
}

func collision(t *testing.T, r *Rig) {
	a := r.CreateAction(nil)
	r.Must(t, a)
	b := a
	b.Version = a.Version[:len(a.Version)-1] + "x" // the name has its first digits only
	e := r.MustFail(t, b)
	require.Equal(t, ring.Conflict, refusalOf(t, e).Code)
	require.Empty(t, e.Holder, "it is nobody else's")
	r.Must(t, ring.Action{Kind: ring.DoWhose, App: a.App, Service: a.Service, Name: ring.ContainerName(a.App, a.Service, a.Slot, a.Version)})
	require.Equal(t, a.Version, r.OnlyInstance(t).Version)
}

func repeated(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	for range 2 {
		r.Must(t, ActionOn(ring.DoStop, in))
	}
	stopped := r.OnlyInstance(t)
	require.Equal(t, ring.StateExited, stopped.State)
	require.Equal(t, 0, stopped.ExitCode)
	require.False(t, stopped.Finished.IsZero())
	for range 2 {
		r.Must(t, ActionOn(ring.DoStart, in))
	}
	started := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, started.State)
	require.True(t, started.Started.After(in.Started))
	r.Must(t, ActionOn(ring.DoRestart, in))
	restarted := r.OnlyInstance(t)
	require.True(t, restarted.Started.After(started.Started))
	require.Equal(t, in.ID, restarted.ID)
	for range 2 {
		r.Must(t, ActionOn(ring.DoRemove, in))
	}
	require.Empty(t, r.Seen(t).Instances)
	require.Equal(t, "already gone", r.Must(t, ActionOn(ring.DoStop, in)).Note)
	require.False(t, r.MustFail(t, ActionOn(ring.DoStart, in)).Permanent)
}

func restartPolicy(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	for _, want := range []struct {
		policy string
		max    int
	}{{"always", 0}, {"unless-stopped", 0}, {"on-failure", 3}, {"no", 0}} {
		a := ActionOn(ring.DoPolicy, in)
		a.Policy, a.MaxRetries = want.policy, want.max
		r.Must(t, a)
		now := r.OnlyInstance(t)
		require.Equal(t, want.policy, now.Policy)
		require.Equal(t, want.max, now.MaxRetries)
		require.Equal(t, in.Started, now.Started)
	}
	bad := ActionOn(ring.DoPolicy, in)
	bad.Policy = "sometimes"
	require.True(t, r.MustFail(t, bad).Permanent)
}

func renamed(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	a := ActionOn(ring.DoRename, in)
	a.NewName = in.Name + "-old"
	r.Must(t, a)
	now := r.OnlyInstance(t)
	require.Equal(t, []any{in.ID, a.NewName, in.Started}, []any{now.ID, now.Name, now.Started})
	r.Must(t, a) // the second time changes nothing
	id := r.AddForeign(t, r.App+"-theirs")
	a.NewName = r.App + "-theirs"
	e := r.MustFail(t, a)
	require.Equal(t, ring.Conflict, refusalOf(t, e).Code)
	require.Contains(t, e.Holder, id[:12])
	require.Positive(t, e.Wait)
	require.Equal(t, now.Name, r.OnlyInstance(t).Name)
	a.Kind = ring.DoName
	_ = r.MustFail(t, a) // nor by the step that nobody waits for
	require.Equal(t, now.Name, r.OnlyInstance(t).Name)
	a.NewName = ring.ComposeName(in.App, in.Service, in.Slot)
	r.Must(t, a)
	now = r.OnlyInstance(t)
	require.Equal(t, []any{in.ID, a.NewName, in.Started}, []any{now.ID, now.Name, now.Started})
}

func engineRestarts(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	a := ActionOn(ring.DoPolicy, in)
	a.Policy, a.MaxRetries = "on-failure", 5
	r.Must(t, a)
	r.OnlyInstance(t)
	r.Exit(t, in.ID, 3)
	r.WaitFor(t, "a restart by the engine", func(s ring.Seen) bool {
		r.HearEvent()
		return len(s.Instances) == 1 && s.Instances[0].Restarts == 1 && s.Instances[0].State == ring.StateRunning &&
			s.Instances[0].Started.After(in.Started)
	})
}

func exitIsSeen(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	r.Exit(t, in.ID, 3)
	s := r.WaitFor(t, "the exit", func(s ring.Seen) bool { return s.Instances[0].State == ring.StateExited })
	require.Equal(t, 3, s.Instances[0].ExitCode)
	require.False(t, s.Instances[0].OOM)
	require.False(t, s.Instances[0].Finished.Before(in.Started))
	require.True(t, s.Instances[0].Ended())
}

func healthIsSeen(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(func(s *ring.Service) {
		s.Spec.Healthcheck = &ring.Healthcheck{Test: []string{"CMD", "/app", "check"}, Interval: 100 * time.Millisecond, Timeout: 20 * time.Second, Retries: 1}
	}))
	in := r.OnlyInstance(t)
	require.Equal(t, "starting", in.Health)
	if r.lacks(t, HealthClock) { // then whoever follows events runs them
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Engine.Run(ctx) }()
		defer func() { cancel(); <-ended }()
	}
	for _, healthy := range []bool{true, false, true} {
		r.SetHealth(t, in.ID, healthy)
		want := map[bool]string{true: "healthy", false: "unhealthy"}[healthy]
		r.WaitFor(t, want, func(s ring.Seen) bool { return s.Instances[0].Health == want })
	}
}

func notOurs(t *testing.T, r *Rig) {
	id := r.AddForeign(t, r.App+"-theirs")
	for _, kind := range []ring.ActionKind{ring.DoStart, ring.DoStop, ring.DoRemove, ring.DoRestart, ring.DoPolicy, ring.DoRename} {
		for _, a := range []ring.Action{{Kind: kind, Instance: id, Policy: "always"}, {Kind: kind, Name: r.App + "-theirs", Policy: "always"}} {
			e := r.MustFail(t, a)
			require.True(t, e.Permanent, kind)
			require.ErrorIs(t, e, r.NotOurs)
		}
	}
	_, _, err := r.Engine.Exec(t.Context(), id, []string{"/app", "exit", "0"})
	require.ErrorIs(t, err, r.NotOurs)
	c := r.Inspect(t, id)
	require.True(t, c.State.Running)
	require.True(t, c.HostConfig.RestartPolicy.IsNone() || c.HostConfig.RestartPolicy.Name == "")
	// The first digits of an ID are no ID: another container could have them.
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	require.Error(t, func() error {
		_, err := r.Engine.Do(t.Context(), ring.Action{Kind: ring.DoRestart, Instance: in.ID[:12]})
		return err
	}())
	require.Equal(t, in.Started, r.OnlyInstance(t).Started)
}

func execs(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	exit, out, err := r.Engine.Exec(t.Context(), in.ID, []string{"/app", "say", "ab", "3"})
	require.NoError(t, err)
	require.Equal(t, 7, exit)
	require.Equal(t, "ababab", out)
	_, out, err = r.Engine.Exec(t.Context(), in.ID, []string{"/app", "say", "abcdefgh", "10000"})
	require.NoError(t, err)
	require.Len(t, out, r.MaxOutput)
	r.Must(t, ActionOn(ring.DoStop, in))
	_, _, err = r.Engine.Exec(t.Context(), in.ID, []string{"/app", "say", "x", "1"})
	require.Error(t, err)
}

func logs(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	var b strings.Builder
	r.WaitFor(t, "both lines", func(ring.Seen) bool {
		b.Reset()
		require.NoError(t, r.Engine.ReadLogs(t.Context(), in.ID, false, -1, &b))
		return strings.Contains(b.String(), "hello out\n") && strings.Contains(b.String(), "hello err\n")
	})
	b.Reset()
	require.NoError(t, r.Engine.ReadLogs(t.Context(), in.ID, false, 1, &b))
	require.Equal(t, 1, strings.Count(b.String(), "\n"), b.String())
	b.Reset()
	require.NoError(t, r.Engine.ReadLogs(t.Context(), in.ID, false, 0, &b))
	require.Empty(t, b.String(), "no line was asked for")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	follower := &until{text: "hello", then: cancel}
	require.NoError(t, r.Engine.ReadLogs(ctx, in.ID, true, -1, follower))
	require.ErrorIs(t, ctx.Err(), context.Canceled, "following shows what is there, and ends with its context")
	require.Error(t, r.Engine.ReadLogs(t.Context(), strings.Repeat("0", 64), false, -1, &b))
}

// until is what is written, and does something once a text is in it.
type until struct {
	bytes.Buffer
	text string
	then func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if strings.Contains(u.String(), u.text) {
		u.then()
	}
	return n, err
}

func delay(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	for _, kind := range []ring.ActionKind{ring.DoStop, ring.DoRemove, ring.DoRestart} {
		a := ActionOn(kind, in)
		a.Delay, a.Timeout = time.Hour, 20*time.Millisecond
		_, err := r.Engine.Do(t.Context(), a)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	now := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, now.State)
	require.Equal(t, in.Started, now.Started)
	a := ActionOn(ring.DoRemove, in)
	a.Delay = time.Millisecond
	r.Must(t, a)
	require.Empty(t, r.Seen(t).Instances)
}

func eventPokes(t *testing.T, r *Rig) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Engine.Run(ctx) }()
	require.Equal(t, "", r.NextPoke(t), "the stream stands")
	done := r.Must(t, r.CreateAction(nil))
	require.Equal(t, done.Instance, r.NextPoke(t))
	r.OnlyInstance(t)
	r.Exit(t, done.Instance, 5)
	s := r.WaitFor(t, "the exit", func(s ring.Seen) bool { return s.Instances[0].State == ring.StateExited })
	require.Equal(t, 5, s.Instances[0].ExitCode)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func quietLook(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(nil))
	a := r.CreateAction(nil)
	a.Slot = 2
	r.Must(t, a)
	before := r.Seen(t)
	calls := r.CallCount()
	after := r.Seen(t)
	require.Equal(t, 2, r.CallCount()-calls)
	before.At, after.At = time.Time{}, time.Time{}
	before.Networks, after.Networks = nil, nil // of the whole machine, other tests are at work
	require.Equal(t, before, after)
}
