package runtime

import (
	"context"
	"errors"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/registry"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/ring"
)

// answers is an engine of which a test says what it answers.
type answers struct {
	engine
	err     error
	policy  container.RestartPolicy
	updated container.UpdateConfig
	nets    []network.Summary
}

func (a *answers) ContainerRename(context.Context, string, string) error { return a.err }
func (a *answers) ContainerExecInspect(context.Context, string) (container.ExecInspect, error) {
	return container.ExecInspect{}, a.err
}

func (a *answers) ContainerExecAttach(context.Context, string, container.ExecAttachOptions) (types.HijackedResponse, error) {
	return types.HijackedResponse{}, a.err
}

func (a *answers) ContainerInspect(context.Context, string) (container.InspectResponse, error) {
	return container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{HostConfig: &container.HostConfig{RestartPolicy: a.policy}}, Config: &container.Config{}}, nil
}

func (a *answers) ContainerUpdate(_ context.Context, _ string, u container.UpdateConfig) (container.UpdateResponse, error) {
	a.updated = u
	return container.UpdateResponse{}, nil
}

func (a *answers) NetworkList(context.Context, network.ListOptions) ([]network.Summary, error) {
	return a.nets, nil
}

func TestPodmansTakenNamesAreConflicts(t *testing.T) {
	for _, says := range []string{
		`creating container storage: the container name "x" is already in use by 57c6: that name is already in use`,
		"UNIQUE constraint failed: ContainerConfig.Name",
	} {
		p := podman{engine: &answers{err: errors.New(says)}}
		require.True(t, cerrdefs.IsConflict(p.ContainerRename(t.Context(), "a", "b")), says)
	}
	other := podman{engine: &answers{err: errors.New("no space left on device")}}
	require.False(t, cerrdefs.IsConflict(other.ContainerRename(t.Context(), "a", "b")))
}

func TestEachUpdateOfPodmanCarriesTheRestartPolicy(t *testing.T) {
	a := &answers{policy: container.RestartPolicy{Name: "on-failure", MaximumRetryCount: 3}}
	_, err := podman{engine: a}.ContainerUpdate(t.Context(), "x", container.UpdateConfig{Resources: container.Resources{Memory: 1 << 20}})
	require.NoError(t, err)
	require.Equal(t, a.policy, a.updated.RestartPolicy)
	_, err = podman{engine: a}.ContainerUpdate(t.Context(), "x", container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: "no"}})
	require.NoError(t, err)
	require.EqualValues(t, "no", a.updated.RestartPolicy.Name, "one that is asked for counts")
}

func TestACommandThatPodmanForgotEndedWithItsContainer(t *testing.T) {
	atTheEnd := errors.New("Error response from daemon: retrieving exec session e98 from container cdf: no such exec session")
	for _, says := range []error{cerrdefs.ErrNotFound, atTheEnd} {
		p := podman{engine: &answers{err: says}}
		_, err := p.ContainerExecInspect(t.Context(), "x")
		require.EqualError(t, err, "it ended with its container")
		_, err = p.ContainerExecAttach(t.Context(), "x", container.ExecAttachOptions{})
		require.EqualError(t, err, "it ended with its container")
		how, _, err := stageOf(t.Context(), p, overrun{exec: "x"})
		require.NoError(t, err)
		require.Equal(t, commandEnded, how, "the same command may begin again")
	}
	_, err := podman{engine: &answers{}}.ContainerExecInspect(t.Context(), "x")
	require.NoError(t, err)
}

func TestPodmansEventsAreToldInDockersWords(t *testing.T) {
	health := map[string]string{}
	event := func(name string, attributes map[string]string) *events.Message {
		return &events.Message{Action: events.Action(name), Actor: events.Actor{ID: "c", Attributes: attributes}}
	}
	died := event("died", map[string]string{"containerExitCode": "3"})
	require.True(t, fromPodman(died, health))
	require.Equal(t, events.ActionDie, died.Action)
	require.Equal(t, "3", died.Actor.Attributes["exitCode"])
	gone := event("remove", nil)
	require.True(t, fromPodman(gone, health))
	require.Equal(t, events.ActionDestroy, gone.Action)
	require.False(t, fromPodman(event("exec", nil), health))
	for _, c := range []struct {
		health string
		heard  bool
	}{{"healthy", true}, {"healthy", false}, {"unhealthy", true}} {
		require.Equal(t, c.heard, fromPodman(event("health_status", map[string]string{"health_status": c.health}), health), c.health)
	}
}

func TestAPlaceOfPodmansListStandsForEachOfItsPorts(t *testing.T) {
	conf := &registry.ServiceConfig{IndexConfigs: map[string]*registry.IndexInfo{"127.0.0.1": {Name: "127.0.0.1"}}}
	require.Contains(t, registriesOf(podman{}, conf, "127.0.0.1:5000").IndexConfigs, "127.0.0.1:5000")
	require.NotContains(t, registriesOf(podman{}, conf, "127.0.0.11:5000").IndexConfigs, "127.0.0.11:5000")
	require.Same(t, conf, registriesOf(&answers{}, conf, "127.0.0.1:5000"), "Docker's list has ports")
}

func TestWhatPodmanCannotCarryOutIsRefused(t *testing.T) {
	yes := true
	for says, edit := range map[string]func(*ring.Spec){
		"shm_size beside ipc: host": func(s *ring.Spec) { s.ShmSize, s.IPCMode = 1<<20, "host" },
		"init beside pid":           func(s *ring.Spec) { s.Init, s.PIDMode = &yes, "host" },
		"domainname":                func(s *ring.Spec) { s.Domainname = "example.test" },
		"devices by what they can":  func(s *ring.Spec) { s.DeviceRequests = []ring.DeviceRequest{{Count: -1}} },
		"a tag for its log": func(s *ring.Spec) {
			s.Logging = &ring.Logging{Driver: "json-file", Options: map[string]string{"tag": "x"}}
		},
		"no comma in a path": func(s *ring.Spec) { s.Mounts = []ring.Mount{{Kind: ring.MountBind, Source: "/a,b", Target: "/x"}} },
	} {
		app := &ring.App{Name: "shop", Services: []ring.Service{{Name: "web"}}}
		a := ring.Action{App: "shop", Of: app}
		require.Empty(t, beside{podman: true}.notByPodman(a))
		edit(&app.Services[0].Spec)
		all := beside{podman: true}.notByPodman(a)
		require.Len(t, all, 1, says)
		require.Equal(t, ring.Unsupported, all[0].Code)
		require.Contains(t, all[0].Says, says)
		require.NotEmpty(t, all[0].Hint)
		require.Empty(t, beside{}.notByPodman(a), "Docker carries it out")
	}
}

func TestNoImageIsPulledToBeResolvedWhereARuleWantsASignature(t *testing.T) {
	d := &Docker{}
	a := ring.Action{Image: "registry.example/app:1"}
	require.True(t, d.mayPull(a), "no rule")
	var cannot error
	d.opts.ImageRules = func() ([]imagesign.Rule, error) {
		return []imagesign.Rule{{Match: "registry.example/*", Exec: []string{"/bin/judge"}}}, cannot
	}
	require.False(t, d.mayPull(a))
	require.True(t, d.mayPull(ring.Action{Image: "elsewhere.example/app:1"}))
	cannot = errors.New("nobody can say")
	require.False(t, d.mayPull(ring.Action{Image: "elsewhere.example/app:1"}))
}

// make podman runs it beside Debian 12's Podman.
func TestAnOldPodmanIsRefused(t *testing.T) {
	if !onPodman() {
		t.Skip("takes an old Podman: make podman")
	}
	_, err := Dial(t.Context(), Options{URL: engineURL(), Host: "edge"})
	var unfit *UnfitError
	require.ErrorAs(t, err, &unfit)
	require.Contains(t, unfit.Says, "it is Podman 4.")
}
