package runtime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// conforms runs the stories that every engine passes, each on one of its own. A story is
// a sentence; its name is that of the subtest.
func conforms(t *testing.T, start func(*testing.T) *kit) {
	for _, s := range []struct {
		name  string
		story func(*testing.T, *kit)
	}{
		{"a host without containers is seen empty", emptyHost},
		{"a created instance is seen with every field", createdIsSeen},
		{"a created instance starts at once when asked", createStarts},
		{"an instance is on the networks of its app only", onlyItsNetworks},
		{"a service without network has none", noNetwork},
		{"create repeated finishes what is there", createAgain},
		{"a name held by another's container is a conflict", foreignName},
		{"a name held by another version of ours is a conflict", collision},
		{"start, stop, restart and remove can be repeated", repeated},
		{"remove stops first and keeps volumes", removeKeepsVolumes},
		{"volumes have Compose's names and labels, one per slot where asked", volumes},
		{"the restart policy is set in place", restartPolicy},
		{"a container is renamed while it runs, and never onto another", renamed},
		{"the engine's own restarts are seen", engineRestarts},
		{"an exit is seen with its code", exitIsSeen},
		{"health is seen as the engine tells it", healthIsSeen},
		{"a network is created once and removed when free", networkLife},
		{"networks of others are used or refused, never removed", foreignNetworks},
		{"the engine's own network is used where it has one, else refused", ownNetwork},
		{"overlapping subnets are the author's to change", overlapping},
		{"a container that is not ours is not touched", notOurs},
		{"a local image is pinned by its ID", resolveLocal},
		{"a registry's image is pinned by digest, pulled once, and again when pruned", registryImage},
		{"an image that nobody has is refused", imageNobodyHas},
		{"a program that is not there is permanent, and its container can go", missingProgram},
		{"a taken host port is transient", takenPort},
		{"ports clash on the engine as the plan says", clashingPorts},
		{"content is mounted or missing, data is made", filesThere},
		{"contents are named as mounted while a container has them", contentsMounted},
		{"a network made again is joined anew", networkMadeAgain},
		{"start without a spec joins no further network", startBare},
		{"start with a spec finishes what create began", startFinishes},
		{"exec gives code and capped output", execs},
		{"logs have both streams and a tail", logs},
		{"a drain delay ends with its context", delay},
		{"an event pokes", eventPokes},
		{"a quiet look costs two calls", quietLook},
		{"an instance joins the namespaces and volumes of its owner, by its ID", joins},
		{"an owner that is gone or stopped is waited for", ownerAway},
		{"an external volume is used, and never made", externalVolume},
		{"an external network is used, and never made", externalNetwork},
		{"nothing is made beside a container of Compose's on the same volume", besideStranger},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.story(t, start(t))
		})
	}
}

// subnet is a small one of its own, so that tests do not drain the engine's pools.
func subnet() string {
	return fmt.Sprintf("10.%d.%d.%d/28", 150+rand.IntN(80), rand.IntN(256), 16*rand.IntN(16))
}

// CreateAction is a small worker of the test's app.
func (r *kit) CreateAction(edit func(*ring.Service)) ring.Action {
	s := &ring.Service{Name: "web", Kind: ring.Worker, Replicas: 1, Pin: ring.Pin{Image: r.Image}, Spec: ring.Spec{
		Image: r.ImageName, Entrypoint: []string{"/app"}, Command: []string{"serve"}, NoNetwork: true, StopGrace: time.Second,
	}}
	if edit != nil {
		edit(s)
	}
	app := &ring.App{Name: r.App, Source: "prod", Path: "apps/" + r.App, Files: []string{"compose.yaml", "compose.prod.yaml"}}
	s.Version = ring.VersionOf(app, s, s.Pin)
	return ring.Action{
		Kind: ring.DoCreate, App: r.App, Service: s.Name, Slot: 1, Version: s.Version, Commit: "c0ffee0000000000000000000000000000000000",
		Of: app, Want: s, Start: true, Networks: map[string]string{},
	}
}

// Must carries a step out.
func (r *kit) Must(t *testing.T, a ring.Action) ring.Done {
	t.Helper()
	done, err := r.Engine.Do(t.Context(), a)
	require.NoError(t, err, "%s", a.Kind)
	return done
}

// MustFail carries a step out that must fail, and returns what it means.
func (r *kit) MustFail(t *testing.T, a ring.Action) *ring.EngineError {
	t.Helper()
	_, err := r.Engine.Do(t.Context(), a)
	require.Error(t, err)
	var e *ring.EngineError
	require.True(t, errors.As(err, &e), "%T %v", err, err)
	if e.Refusal == nil {
		require.True(t, strings.HasPrefix(err.Error(), "cannot "), err.Error())
	}
	return e
}

func (r *kit) Seen(t *testing.T) ring.Seen {
	t.Helper()
	s, err := r.Engine.Look(t.Context())
	require.NoError(t, err)
	return s
}

// OnlyInstance is the only instance.
func (r *kit) OnlyInstance(t *testing.T) ring.Instance {
	t.Helper()
	s := r.Seen(t)
	require.Len(t, s.Instances, 1)
	return s.Instances[0]
}

// AddNetwork creates a network of the app and joins the action's service to it.
func (r *kit) AddNetwork(t *testing.T, a *ring.Action, key string, aliases ...string) ring.Action {
	t.Helper()
	n := ring.Network{Key: key, Pools: []ring.Pool{{Subnet: subnet()}}}
	name := ring.NetworkName(r.App, key)
	made := ring.Action{Kind: ring.DoNetwork, App: r.App, Network: n, NetworkName: name}
	r.Must(t, made)
	a.Of.Networks = append(a.Of.Networks, n)
	a.Networks[key] = name
	a.Want.Spec.NoNetwork = false
	a.Want.Spec.Networks = append(a.Want.Spec.Networks, ring.Attachment{Network: key, Aliases: aliases})
	a.Want.Version = ring.VersionOf(a.Of, a.Want, a.Want.Pin)
	a.Version = a.Want.Version
	return made
}

func on(kind ring.ActionKind, in ring.Instance) ring.Action {
	return ring.Action{Kind: kind, App: in.App, Service: in.Service, Slot: in.Slot, Version: in.Version, Instance: in.ID, Name: in.Name, Grace: time.Second}
}

func emptyHost(t *testing.T, r *kit) {
	s := r.Seen(t)
	require.Empty(t, s.Instances)
	require.NotEmpty(t, s.Networks, "the engine's own networks are seen")
	require.WithinDuration(t, time.Now(), s.At, time.Minute)
}

func createdIsSeen(t *testing.T, r *kit) {
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Labels = map[string]string{"mine": "1", "gitring.host": "elsewhere", "com.docker.compose.project": "other"}
	})
	a.Start = false
	done := r.Must(t, a)
	in := r.OnlyInstance(t)
	require.WithinDuration(t, time.Now(), in.Created, time.Minute)
	in.Created = time.Time{}
	require.Contains(t, in.Addresses, "none")
	require.Equal(t, &ring.Resources{}, in.Limits)
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

func createStarts(t *testing.T, r *kit) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, in.State)
	require.WithinDuration(t, time.Now(), in.Started, time.Minute)
	require.Zero(t, in.Finished)
	require.Empty(t, in.Health)
}

func onlyItsNetworks(t *testing.T, r *kit) {
	a := r.CreateAction(nil)
	r.AddNetwork(t, &a, "front", "www", "site")
	r.AddNetwork(t, &a, "back")
	r.Must(t, a)
	in := r.OnlyInstance(t)
	front, back := ring.NetworkName(r.App, "front"), ring.NetworkName(r.App, "back")
	require.Len(t, in.Addresses, 2)
	require.NotEmpty(t, in.Addresses[front])
	require.NotEmpty(t, in.Addresses[back])
	nets := r.Inspect(t, in.ID).NetworkSettings.Networks
	require.Subset(t, nets[front].Aliases, []string{"web", "www", "site"})
	require.Subset(t, nets[back].Aliases, []string{"web"})
	require.NotContains(t, nets[back].Aliases, "www")
}

func noNetwork(t *testing.T, r *kit) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	require.Equal(t, "", in.Addresses["none"])
	require.Len(t, in.Addresses, 1)
}

func createAgain(t *testing.T, r *kit) {
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

func foreignName(t *testing.T, r *kit) {
	a := r.CreateAction(nil)
	id := r.AddForeign(t, ring.ContainerName(a.App, a.Service, a.Slot, a.Version))
	e := r.MustFail(t, a)
	require.Equal(t, ring.Conflict, e.Refusal.Code)
	require.False(t, e.Permanent, "it is no word on the version")
	require.Positive(t, e.Wait)
	require.NotEmpty(t, e.Refusal.Hint)
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

func collision(t *testing.T, r *kit) {
	a := r.CreateAction(nil)
	r.Must(t, a)
	b := a
	b.Version = a.Version[:len(a.Version)-1] + "x" // the name has its first digits only
	e := r.MustFail(t, b)
	require.Equal(t, ring.Conflict, e.Refusal.Code)
	require.Empty(t, e.Holder, "it is nobody else's")
	r.Must(t, ring.Action{Kind: ring.DoWhose, App: a.App, Service: a.Service, Name: ring.ContainerName(a.App, a.Service, a.Slot, a.Version)})
	require.Equal(t, a.Version, r.OnlyInstance(t).Version)
}

func repeated(t *testing.T, r *kit) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	for range 2 {
		r.Must(t, on(ring.DoStop, in))
	}
	stopped := r.OnlyInstance(t)
	require.Equal(t, ring.StateExited, stopped.State)
	require.Equal(t, 0, stopped.ExitCode)
	require.False(t, stopped.Finished.IsZero())
	for range 2 {
		r.Must(t, on(ring.DoStart, in))
	}
	started := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, started.State)
	require.True(t, started.Started.After(in.Started))
	r.Must(t, on(ring.DoRestart, in))
	restarted := r.OnlyInstance(t)
	require.True(t, restarted.Started.After(started.Started))
	require.Equal(t, in.ID, restarted.ID)
	for range 2 {
		r.Must(t, on(ring.DoRemove, in))
	}
	require.Empty(t, r.Seen(t).Instances)
	require.Equal(t, "already gone", r.Must(t, on(ring.DoStop, in)).Note)
	require.False(t, r.MustFail(t, on(ring.DoStart, in)).Permanent)
}

func removeKeepsVolumes(t *testing.T, r *kit) {
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "db", Target: "/db"}}
	})
	r.Must(t, a)
	r.Must(t, on(ring.DoRemove, r.OnlyInstance(t)))
	require.Empty(t, r.Seen(t).Instances)
	require.Equal(t, r.App, r.VolumeLabels(t, r.App+"_db")["gitring.app"])
}

func volumes(t *testing.T, r *kit) {
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{
			{Kind: ring.MountVolume, Source: "db", Target: "/db"},
			{Kind: ring.MountVolume, Source: "web_{slot}_0a0a0a0a", Target: "/own", NoCopy: true},
		}
	})
	a.Of.Volumes = []ring.Volume{{Key: "db", Labels: map[string]string{"backup": "daily", "gitring.app": "other"}}}
	a.Slot = 2
	r.Must(t, a)
	require.Equal(t, map[string]string{
		"backup": "daily", "gitring.host": r.Host, "gitring.source": a.Of.Source, "gitring.app": r.App,
		"com.docker.compose.project": r.App, "com.docker.compose.volume": "db",
		"com.docker.compose.project.working_dir": a.Of.Path, "com.docker.compose.project.config_files": strings.Join(a.Of.Files, ","),
	}, r.VolumeLabels(t, r.App+"_db"))
	require.Equal(t, "web_2_0a0a0a0a", r.VolumeLabels(t, r.App+"_web_2_0a0a0a0a")["com.docker.compose.volume"])
}

func restartPolicy(t *testing.T, r *kit) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	for _, want := range []struct {
		policy string
		max    int
	}{{"always", 0}, {"unless-stopped", 0}, {"on-failure", 3}, {"no", 0}} {
		a := on(ring.DoPolicy, in)
		a.Policy, a.MaxRetries = want.policy, want.max
		r.Must(t, a)
		now := r.OnlyInstance(t)
		require.Equal(t, want.policy, now.Policy)
		require.Equal(t, want.max, now.MaxRetries)
		require.Equal(t, in.Started, now.Started)
	}
	bad := on(ring.DoPolicy, in)
	bad.Policy = "sometimes"
	require.True(t, r.MustFail(t, bad).Permanent)
}

func renamed(t *testing.T, r *kit) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	a := on(ring.DoRename, in)
	a.NewName = in.Name + "-old"
	r.Must(t, a)
	now := r.OnlyInstance(t)
	require.Equal(t, []any{in.ID, a.NewName, in.Started}, []any{now.ID, now.Name, now.Started})
	r.Must(t, a) // the second time changes nothing
	id := r.AddForeign(t, r.App+"-theirs")
	a.NewName = r.App + "-theirs"
	e := r.MustFail(t, a)
	require.Equal(t, ring.Conflict, e.Refusal.Code)
	require.Contains(t, e.Holder, id[:12])
	require.Positive(t, e.Wait)
	require.Equal(t, now.Name, r.OnlyInstance(t).Name)
	a.Kind = ring.DoName
	r.MustFail(t, a) // nor by the step that nobody waits for
	require.Equal(t, now.Name, r.OnlyInstance(t).Name)
	a.NewName = ring.ComposeName(in.App, in.Service, in.Slot)
	r.Must(t, a)
	now = r.OnlyInstance(t)
	require.Equal(t, []any{in.ID, a.NewName, in.Started}, []any{now.ID, now.Name, now.Started})
}

func engineRestarts(t *testing.T, r *kit) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	a := on(ring.DoPolicy, in)
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

func exitIsSeen(t *testing.T, r *kit) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	r.Exit(t, in.ID, 3)
	s := r.WaitFor(t, "the exit", func(s ring.Seen) bool { return s.Instances[0].State == ring.StateExited })
	require.Equal(t, 3, s.Instances[0].ExitCode)
	require.False(t, s.Instances[0].OOM)
	require.False(t, s.Instances[0].Finished.Before(in.Started))
	require.True(t, s.Instances[0].Ended())
}

func healthIsSeen(t *testing.T, r *kit) {
	r.Must(t, r.CreateAction(func(s *ring.Service) {
		s.Spec.Healthcheck = &ring.Healthcheck{Test: []string{"CMD", "/app", "check"}, Interval: 100 * time.Millisecond, Timeout: 2 * time.Second, Retries: 1}
	}))
	in := r.OnlyInstance(t)
	require.Equal(t, "starting", in.Health)
	for _, healthy := range []bool{true, false, true} {
		r.SetHealth(t, in.ID, healthy)
		want := map[bool]string{true: "healthy", false: "unhealthy"}[healthy]
		r.WaitFor(t, want, func(s ring.Seen) bool { return s.Instances[0].Health == want })
	}
}

func (r *kit) FindNetwork(t *testing.T, name string) (ring.SeenNetwork, bool) {
	t.Helper()
	for _, n := range r.Seen(t).Networks {
		if n.Name == name {
			return n, true
		}
	}
	return ring.SeenNetwork{}, false
}

func networkLife(t *testing.T, r *kit) {
	a := r.CreateAction(nil)
	made := r.AddNetwork(t, &a, "default")
	require.Equal(t, "already present", r.Must(t, made).Note)
	n, ok := r.FindNetwork(t, made.NetworkName)
	require.True(t, ok)
	require.Equal(t, ring.SeenNetwork{ID: n.ID, Name: made.NetworkName, App: r.App, Key: "default", Definition: made.Network.Definition()}, n)

	other := made
	other.Network.Internal = true
	require.False(t, r.MustFail(t, other).Permanent, "another definition under the name")

	r.Must(t, a)
	off := ring.Action{Kind: ring.DoNetworkOff, App: r.App, NetworkName: made.NetworkName}
	e := r.MustFail(t, off)
	require.Equal(t, ring.CauseNetwork, e.Cause)
	require.False(t, e.Permanent)
	r.Must(t, on(ring.DoRemove, r.OnlyInstance(t)))
	r.Must(t, off)
	_, ok = r.FindNetwork(t, made.NetworkName)
	require.False(t, ok)
	require.Equal(t, "already gone", r.Must(t, off).Note)
}

// ownNetwork asks as an app does that says network_mode: bridge. An engine that was
// started without a bridge starts it with no network, and says nothing.
func ownNetwork(t *testing.T, r *kit) {
	a := r.CreateAction(func(s *ring.Service) { s.Spec.NoNetwork, s.Spec.NetworkMode = false, "bridge" })
	a.Of.Services = []ring.Service{*a.Want}
	_, there := r.FindNetwork(t, "bridge")
	_, err := r.Engine.Do(t.Context(), ring.Action{Kind: ring.DoAdmit, App: r.App, Of: a.Of})
	if !there {
		require.ErrorContains(t, err, "this engine has none")
		return
	}
	require.NoError(t, err)
	if _, err := r.Engine.Do(t.Context(), a); err != nil && strings.Contains(err.Error(), "could not find bridge") {
		return // a second engine without a bridge took this one's away
	}
	require.NotEmpty(t, r.OnlyInstance(t).Addresses["bridge"])
}

func foreignNetworks(t *testing.T, r *kit) {
	if _, ok := r.FindNetwork(t, "bridge"); !ok {
		t.Skip("this engine has no bridge of its own")
	}
	off := ring.Action{Kind: ring.DoNetworkOff, App: r.App, NetworkName: "bridge"}
	require.True(t, r.MustFail(t, off).Permanent)
	n, ok := r.FindNetwork(t, "bridge")
	require.True(t, ok)
	require.Empty(t, n.App)
	used := ring.Action{Kind: ring.DoNetwork, App: r.App, NetworkName: "bridge", Network: ring.Network{Key: "x"}}
	require.Contains(t, r.Must(t, used).Note, "used")

	a := r.CreateAction(nil)
	made := r.AddNetwork(t, &a, "default")
	made.App = "other"
	require.Equal(t, ring.Conflict, r.MustFail(t, made).Refusal.Code)
	off = ring.Action{Kind: ring.DoNetworkOff, App: "other", NetworkName: made.NetworkName}
	require.True(t, r.MustFail(t, off).Permanent)
}

func overlapping(t *testing.T, r *kit) {
	a := r.CreateAction(nil)
	made := r.AddNetwork(t, &a, "one")
	made.NetworkName, made.Network.Key = ring.NetworkName(r.App, "two"), "two"
	e := r.MustFail(t, made)
	require.Equal(t, ring.CauseNetwork, e.Cause)
	require.True(t, e.Permanent)
	require.Equal(t, ring.Conflict, e.Refusal.Code)
}

func notOurs(t *testing.T, r *kit) {
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

func resolveLocal(t *testing.T, r *kit) {
	ask := func(image, policy string) ring.Done {
		return r.Must(t, ring.Action{Kind: ring.DoResolve, App: r.App, Service: "web", Image: image, PullPolicy: policy})
	}
	require.Equal(t, r.Image, ask(r.ImageName, "never").Pin.Image)
	require.Equal(t, r.Image, ask(r.ImageName, "").Pin.Image)
	require.NotEmpty(t, ask(r.ImageName, "").Pin.Note)
	require.Equal(t, r.Image, ask(r.Image, "").Pin.Image)
	fixed := "example.org/app:1@sha256:" + strings.Repeat("ab", 32)
	require.Equal(t, fixed, ask(fixed, "").Pin.Image)
	require.Equal(t, "already present", r.Must(t, ring.Action{Kind: ring.DoPull, Image: r.Image}).Note)
}

func registryImage(t *testing.T, r *kit) {
	name, digest := r.AddRemote(t)
	pin := r.Must(t, ring.Action{Kind: ring.DoResolve, Image: name}).Pin.Image
	require.Equal(t, name+"@"+digest, pin)
	pull := ring.Action{Kind: ring.DoPull, Image: pin}
	require.Equal(t, "pulled", r.Must(t, pull).Note)
	asked := r.RegistryCalls()
	require.Equal(t, "already present", r.Must(t, pull).Note)
	require.Equal(t, asked, r.RegistryCalls(), "what is present is not asked for")

	a := r.CreateAction(func(s *ring.Service) { s.Spec.Image, s.Pin = name, ring.Pin{Image: pin} })
	r.Must(t, a)
	in := r.OnlyInstance(t)
	require.Equal(t, pin, in.Image)
	r.Must(t, on(ring.DoRemove, in))
	r.ForgetImage(t, pin)
	e := r.MustFail(t, a)
	require.Equal(t, ring.CauseImagePull, e.Cause, "a pruned image is told, and can be had again")
	require.False(t, e.Permanent)
	require.Equal(t, "pulled", r.Must(t, pull).Note)
	r.Must(t, a)
	require.Equal(t, ring.StateRunning, r.OnlyInstance(t).State)
	require.Equal(t, pin, r.Must(t, ring.Action{Kind: ring.DoResolve, Image: name}).Pin.Image)
	r.Must(t, on(ring.DoRemove, r.OnlyInstance(t)))
}

func imageNobodyHas(t *testing.T, r *kit) {
	name, _ := r.AddRemote(t)
	repo := strings.TrimSuffix(name, ":1")
	e := r.MustFail(t, ring.Action{Kind: ring.DoResolve, App: r.App, Image: repo + ":2"})
	require.Equal(t, ring.CauseImagePull, e.Cause)
	require.Equal(t, ring.ImageNotFound, e.Refusal.Code)
	require.Equal(t, r.App, e.Refusal.App)
	require.NotEmpty(t, e.Refusal.Hint)
	gone := "sha256:" + strings.Repeat("0", 64)
	for _, a := range []ring.Action{
		{Kind: ring.DoResolve, Image: "gitring-test/nowhere:1", PullPolicy: "never"},
		{Kind: ring.DoResolve, Image: gone},
		{Kind: ring.DoPull, Image: gone},
		{Kind: ring.DoPull, Image: repo + "@" + gone},
	} {
		e := r.MustFail(t, a)
		require.Equal(t, ring.ImageNotFound, e.Refusal.Code, a.Image)
		require.True(t, e.Permanent)
	}
	bad := r.MustFail(t, ring.Action{Kind: ring.DoResolve, Image: "No Image"})
	require.Equal(t, ring.BadValue, bad.Refusal.Code)
}

func missingProgram(t *testing.T, r *kit) {
	a := r.CreateAction(func(s *ring.Service) { s.Spec.Entrypoint = []string{"/nope"} })
	done, err := r.Engine.Do(t.Context(), a)
	var e *ring.EngineError
	require.ErrorAs(t, err, &e)
	require.Equal(t, ring.CauseCreate, e.Cause)
	require.True(t, e.Permanent)
	in := r.OnlyInstance(t)
	require.Equal(t, done.Instance, in.ID, "what was made is told")
	require.False(t, in.Live())
	r.Must(t, on(ring.DoRemove, in))
	require.Empty(t, r.Seen(t).Instances)
}

func takenPort(t *testing.T, r *kit) {
	hostPort := fmt.Sprint(20000 + rand.IntN(10000))
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Ports = []ring.Port{{HostIP: "127.0.0.1", HostPort: hostPort, Container: 8080, Protocol: "tcp"}}
	})
	r.AddNetwork(t, &a, "default")
	r.Must(t, a)
	first := r.OnlyInstance(t)
	a.Slot = 2
	e := r.MustFail(t, a)
	require.Equal(t, ring.CauseCreate, e.Cause)
	require.False(t, e.Permanent)
	require.NotNil(t, e.Refusal)
	require.Contains(t, e.Refusal.Says, "port 127.0.0.1:"+hostPort+"/tcp of the host is taken")
	r.Must(t, on(ring.DoStop, first))
	r.Must(t, a) // finishes the one that was made
	s := r.Seen(t)
	require.Len(t, s.Instances, 2)
	for _, in := range s.Instances {
		require.Equal(t, in.Slot == 2, in.State == ring.StateRunning)
	}
}

// clashingPorts asks the engine itself what ring.Port.Clashes says of ports.
func clashingPorts(t *testing.T, r *kit) {
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		require.NoError(t, l.Close())
	} else {
		t.Skipf("this host has no second family of addresses: %v", err)
	}
	base := r.CreateAction(nil)
	r.AddNetwork(t, &base, "default")
	for _, c := range []struct {
		held, takes string // ADDRESS/PROTOCOL
		clashes     bool
	}{
		{"127.0.0.5/tcp", "127.0.0.5/tcp", true},
		{"127.0.0.5/tcp", "0.0.0.0/tcp", true},
		{"127.0.0.5/tcp", "/tcp", true},
		{"127.0.0.5/tcp", "127.0.0.6/tcp", false},
		{"127.0.0.5/tcp", "127.0.0.5/udp", false},
		{"127.0.0.5/tcp", "::/tcp", false},
		{"::/tcp", "/tcp", true},
		{"::/tcp", "::1/tcp", true},
		{"::/tcp", "0.0.0.0/tcp", false},
		{"/tcp", "127.0.0.1/tcp", true},
	} {
		hostPort := fmt.Sprint(20000 + rand.IntN(10000))
		publish := func(slot int, at string) (ring.Action, error) {
			ip, proto, _ := strings.Cut(at, "/")
			a, want := base, *base.Want
			want.Spec.Ports = []ring.Port{{HostIP: ip, HostPort: hostPort, Container: 8080, Protocol: proto}}
			want.Version = ring.VersionOf(a.Of, &want, want.Pin)
			a.Slot, a.Want, a.Version = slot, &want, want.Version
			_, err := r.Engine.Do(t.Context(), a)
			return a, err
		}
		_, err := publish(1, c.held)
		require.NoError(t, err)
		_, err = publish(2, c.takes)
		require.Equal(t, c.clashes, err != nil, "%s beside %s: %v", c.takes, c.held, err)
		for _, in := range r.Seen(t).Instances {
			r.Must(t, on(ring.DoRemove, in))
		}
	}
}

func filesThere(t *testing.T, r *kit) {
	hash := strings.Repeat("ab", 32)
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{
			{Kind: ring.MountContent, Source: hash, Target: "/conf"},
			{Kind: ring.MountContent, Source: hash, File: "app.conf", Target: "/etc/app.conf"},
			{Kind: ring.MountData, Source: r.App + "/data/deep", Target: "/data"},
		}
	})
	e := r.MustFail(t, a)
	require.Equal(t, ring.CauseFiles, e.Cause)
	require.Contains(t, e.Error(), "content "+hash+" is missing")
	require.Empty(t, r.Seen(t).Instances)

	require.NoError(t, os.MkdirAll(filepath.Join(r.Content, hash), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(r.Content, hash, "app.conf"), []byte("a=1"), 0o444))
	r.Must(t, a)
	c := r.Inspect(t, r.OnlyInstance(t).ID)
	for _, m := range c.Mounts {
		require.Equal(t, m.Destination == "/data", m.RW, m.Destination)
	}
	st, err := os.Stat(filepath.Join(r.Data, r.App, "data/deep"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), st.Mode().Perm())
	r.Must(t, on(ring.DoRemove, r.OnlyInstance(t)))
	require.DirExists(t, filepath.Join(r.Data, r.App, "data/deep"))

	require.NoError(t, os.Symlink("/etc", filepath.Join(r.Data, r.App, "link")))
	a.Want.Spec.Mounts = []ring.Mount{{Kind: ring.MountData, Source: r.App + "/link/x", Target: "/data"}}
	require.Contains(t, r.MustFail(t, a).Error(), "symlink")
	require.Empty(t, r.Seen(t).Instances)
}

func networkMadeAgain(t *testing.T, r *kit) {
	a := r.CreateAction(nil)
	made := r.AddNetwork(t, &a, "default", "www")
	r.Must(t, a)
	in := r.OnlyInstance(t)
	r.Must(t, on(ring.DoStop, in))
	// An engine lets a network go whose containers are all stopped.
	r.Must(t, ring.Action{Kind: ring.DoNetworkOff, App: r.App, NetworkName: made.NetworkName})
	start := on(ring.DoStart, in)
	start.Networks, start.Want, start.Of = a.Networks, a.Want, a.Of
	e := r.MustFail(t, start)
	require.Equal(t, ring.CauseNetwork, e.Cause)
	require.False(t, e.Permanent)
	r.Must(t, made)
	r.Must(t, start)
	now := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, now.State)
	require.Equal(t, in.ID, now.ID)
	require.Len(t, now.Addresses, 1)
	require.NotEmpty(t, now.Addresses[made.NetworkName])
	require.Subset(t, r.Inspect(t, in.ID).NetworkSettings.Networks[made.NetworkName].Aliases, []string{"web", "www"})
}

func startBare(t *testing.T, r *kit) {
	a := r.CreateAction(nil)
	front := r.AddNetwork(t, &a, "front", "www")
	r.Must(t, a)
	in := r.OnlyInstance(t)
	r.AddNetwork(t, &a, "back") // of a neighbour
	start := on(ring.DoStart, in)
	start.Networks = a.Networks
	r.Must(t, on(ring.DoStop, in))
	r.Must(t, start)
	require.Len(t, r.OnlyInstance(t).Addresses, 1)

	r.Must(t, on(ring.DoStop, in))
	r.Must(t, ring.Action{Kind: ring.DoNetworkOff, App: r.App, NetworkName: front.NetworkName})
	r.Must(t, front)
	r.Must(t, start)
	now := r.OnlyInstance(t)
	require.Len(t, now.Addresses, 1)
	require.NotEmpty(t, now.Addresses[front.NetworkName])
	require.Subset(t, r.Inspect(t, in.ID).NetworkSettings.Networks[front.NetworkName].Aliases, []string{"web", "www"})
	// A service without network gets none by being started again.
	alone := r.CreateAction(func(s *ring.Service) { s.Name = "alone" })
	done := r.Must(t, alone)
	again := ring.Action{Kind: ring.DoStart, App: r.App, Service: "alone", Instance: done.Instance, Networks: a.Networks, Grace: time.Second}
	r.Must(t, again)
	require.True(t, r.Inspect(t, done.Instance).HostConfig.NetworkMode.IsNone())
	require.Len(t, r.Inspect(t, done.Instance).NetworkSettings.Networks, 1)
}

func startFinishes(t *testing.T, r *kit) {
	a := r.CreateAction(nil)
	a.Start = false
	r.AddNetwork(t, &a, "front")
	r.Must(t, a)
	r.AddNetwork(t, &a, "back")
	start := on(ring.DoStart, r.OnlyInstance(t))
	start.Networks, start.Want = a.Networks, a.Want
	r.Must(t, start)
	in := r.OnlyInstance(t)
	require.Len(t, in.Addresses, 2)
	require.Equal(t, ring.StateRunning, in.State)
	require.Subset(t, r.Inspect(t, in.ID).NetworkSettings.Networks[ring.NetworkName(r.App, "back")].Aliases, []string{"web"})
}

func execs(t *testing.T, r *kit) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	exit, out, err := r.Engine.Exec(t.Context(), in.ID, []string{"/app", "say", "ab", "3"})
	require.NoError(t, err)
	require.Equal(t, 7, exit)
	require.Equal(t, "ababab", out)
	_, out, err = r.Engine.Exec(t.Context(), in.ID, []string{"/app", "say", "abcdefgh", "10000"})
	require.NoError(t, err)
	require.Len(t, out, r.MaxOutput)
	r.Must(t, on(ring.DoStop, in))
	_, _, err = r.Engine.Exec(t.Context(), in.ID, []string{"/app", "say", "x", "1"})
	require.Error(t, err)
}

func logs(t *testing.T, r *kit) {
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
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	b.Reset()
	require.NoError(t, r.Engine.ReadLogs(ctx, in.ID, true, -1, &b))
	require.Error(t, ctx.Err(), "following ends with its context")
	require.Contains(t, b.String(), "hello")
	require.Error(t, r.Engine.ReadLogs(t.Context(), strings.Repeat("0", 64), false, -1, &b))
}

func delay(t *testing.T, r *kit) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	for _, kind := range []ring.ActionKind{ring.DoStop, ring.DoRemove, ring.DoRestart} {
		a := on(kind, in)
		a.Delay, a.Timeout = time.Hour, 20*time.Millisecond
		_, err := r.Engine.Do(t.Context(), a)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	now := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, now.State)
	require.Equal(t, in.Started, now.Started)
	a := on(ring.DoRemove, in)
	a.Delay = time.Millisecond
	r.Must(t, a)
	require.Empty(t, r.Seen(t).Instances)
}

func eventPokes(t *testing.T, r *kit) {
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

// NextPoke is the next one.
func (r *kit) NextPoke(t *testing.T) string {
	t.Helper()
	select {
	case id := <-r.Poked:
		return id
	case <-time.After(10 * time.Second):
		require.Fail(t, "no poke")
		return ""
	}
}

func quietLook(t *testing.T, r *kit) {
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
