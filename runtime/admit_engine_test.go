package runtime

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// What admission makes of an engine's lists, on both.
func TestFakeAdmits(t *testing.T) { admissions(t, fakeRig, func(*testing.T, *rig, string) {}) }

func TestEngineAdmits(t *testing.T) {
	c := engineOrSkip(t)
	admissions(t, realRig, func(t *testing.T, r *rig, name string) {
		t.Cleanup(func() {
			clean(t, c, r.Host) // who mounts it goes first
			require.NoError(t, c.VolumeRemove(context.WithoutCancel(t.Context()), name, true))
		})
	})
}

func admissions(t *testing.T, start func(*testing.T) *rig, dropped func(*testing.T, *rig, string)) {
	for name, story := range map[string]func(*testing.T, *evening){
		"a project that runs under Compose goes on from its volume":            fromCompose,
		"a volume of the folder's project is not made anew":                    fromElsewhere,
		"a stopped project that comes back with the engine is not passed over": fromStopped,
		"what is external must be there, and be nobody's":                      fromOutside,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			e, err := r.ready(t.Context())
			require.NoError(t, err)
			story(t, &evening{rig: r, engine: e, dropped: dropped})
		})
	}
}

// evening is the first one of a host on which Compose ran so far.
type evening struct {
	*rig
	engine  engine
	dropped func(*testing.T, *rig, string) // when the test ends
}

// compose runs a service as Compose does.
func (v *evening) compose(t *testing.T, project, dir string, mounts ...mount.Mount) (id string) {
	t.Helper()
	made, err := v.engine.ContainerCreate(t.Context(), &container.Config{Image: v.Image, Cmd: []string{"/app", "serve"}, Labels: map[string]string{
		composeProject: project, composeService: "db", composeNumber: "1", composeOneOff: "False",
		composeWorkingDir: dir, composeFiles: dir + "/compose.yaml",
	}}, &container.HostConfig{NetworkMode: network.NetworkNone, Mounts: mounts}, nil, nil, project+"-db-1")
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = v.engine.ContainerStop(context.WithoutCancel(t.Context()), made.ID, container.StopOptions{})
		_ = v.engine.ContainerRemove(context.WithoutCancel(t.Context()), made.ID, container.RemoveOptions{})
	})
	require.NoError(t, v.engine.ContainerStart(t.Context(), made.ID, container.StartOptions{}))
	return made.ID
}

// down is docker compose down.
func (v *evening) down(t *testing.T, id string) {
	t.Helper()
	zero := 0
	require.NoError(t, v.engine.ContainerStop(t.Context(), id, container.StopOptions{Timeout: &zero}))
	require.NoError(t, v.engine.ContainerRemove(t.Context(), id, container.RemoveOptions{}))
}

func (v *evening) volume(t *testing.T, name, project, key string) {
	t.Helper()
	o := volume.CreateOptions{Name: name}
	if project != "" {
		o.Labels = map[string]string{composeProject: project, composeVolume: key}
	}
	_, err := v.engine.VolumeCreate(t.Context(), o)
	require.NoError(t, err)
	v.dropped(t, v.rig, name)
}

// db is a service with a volume and a data folder.
func (v *evening) db() ring.Action {
	return v.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{
			{Kind: ring.MountVolume, Source: "pg", Target: "/pg"},
			{Kind: ring.MountData, Source: "apps/" + v.App + "/data", Target: "/data"},
		}
	})
}

func (v *evening) admit(t *testing.T, a ring.Action) *ring.Refusal {
	t.Helper()
	a.Of.Services = []ring.Service{*a.Want}
	_, err := v.Do(t.Context(), ring.Action{Kind: ring.DoAdmit, App: a.App, Of: a.Of})
	if err == nil {
		return nil
	}
	var e *ring.EngineError
	require.ErrorAs(t, err, &e)
	require.NotNil(t, e.Refusal, "%v", err)
	require.NotZero(t, e.Wait, "a person can do what it says at any moment")
	return e.Refusal
}

func fromCompose(t *testing.T, v *evening) {
	a := v.db()
	dir := filepath.Join(t.TempDir(), v.App)
	beside := filepath.Join(dir, "data")
	require.NoError(t, os.MkdirAll(beside, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(beside, "x"), []byte("kept"), 0o644))
	v.volume(t, v.App+"_pg", v.App, "pg")
	id := v.compose(t, v.App, dir,
		mount.Mount{Type: mount.TypeVolume, Source: v.App + "_pg", Target: "/pg"},
		mount.Mount{Type: mount.TypeBind, Source: beside, Target: "/data"})

	r := v.admit(t, a)
	require.Equal(t, ring.ForeignProject, r.Code)
	require.Contains(t, r.Says, v.App+"-db-1")
	ours := filepath.Join(v.Data, "apps", v.App, "data")
	require.Contains(t, r.Hint, "mv -T "+beside+" "+ours)
	require.True(t, v.Inspect(t, id).State.Running, "nothing was touched")
	require.NoDirExists(t, ours)

	v.down(t, id)
	require.NoError(t, os.MkdirAll(filepath.Dir(ours), 0o755))
	require.NoError(t, os.Rename(beside, ours))
	require.Nil(t, v.admit(t, a))
	v.Must(t, a)
	for _, m := range v.Inspect(t, v.OnlyInstance(t).ID).Mounts {
		if m.Destination == "/pg" {
			require.Equal(t, v.App+"_pg", m.Name, "the volume of Compose")
		}
	}
	require.Equal(t, v.App, v.rig.VolumeLabels(t, v.App+"_pg")[composeProject])
	require.NotContains(t, v.rig.VolumeLabels(t, v.App+"_pg"), labelHost, "and it was not changed")
}

func fromStopped(t *testing.T, v *evening) {
	a := v.db()
	id := v.compose(t, v.App, filepath.Join(t.TempDir(), v.App))
	zero := 0
	require.NoError(t, v.engine.ContainerStop(t.Context(), id, container.StopOptions{Timeout: &zero}))
	require.Nil(t, v.admit(t, a), "stopped for good")
	_, err := v.engine.ContainerUpdate(t.Context(), id, container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyAlways}})
	require.NoError(t, err)
	r := v.admit(t, a)
	require.NotNil(t, r)
	require.Equal(t, ring.ForeignProject, r.Code)
	require.Contains(t, r.Says, "is started again with the engine")
	require.NoError(t, v.engine.ContainerRemove(t.Context(), id, container.RemoveOptions{}))
	require.Nil(t, v.admit(t, a))
}

func fromElsewhere(t *testing.T, v *evening) {
	a := v.db()
	a.Of.Path = "apps/store" + v.App // the folder has another name than the app
	a.Want.Spec.Mounts = a.Want.Spec.Mounts[:1]
	project := composeName("store" + v.App)
	v.volume(t, project+"_pg", project, "pg")
	r := v.admit(t, a)
	require.Equal(t, ring.VolumeElsewhere, r.Code)
	require.Contains(t, r.Hint, project+"_pg")
	list, err := v.engine.VolumeList(t.Context(), volume.ListOptions{})
	require.NoError(t, err)
	for _, x := range list.Volumes {
		require.NotEqual(t, v.App+"_pg", x.Name, "nothing was made")
	}

	a.Of.Volumes = []ring.Volume{{Key: "pg", External: project + "_pg"}}
	require.Nil(t, v.admit(t, a), "the volume of this folder's own project")
}

func fromOutside(t *testing.T, v *evening) {
	a := v.db()
	a.Want.Spec.Mounts = a.Want.Spec.Mounts[:1]
	a.Want.Spec.NoNetwork, a.Want.Spec.Networks = false, []ring.Attachment{{Network: "proxy"}}
	name := v.App + "-outside"
	a.Of.Volumes = []ring.Volume{{Key: "pg", External: name}}
	a.Of.Networks = []ring.Network{{Key: "proxy", External: name}}
	r := v.admit(t, a)
	require.Equal(t, ring.BadValue, r.Code)
	require.Equal(t, "docker volume create "+name+", or take external out, and gitring makes it", r.Hint)
	v.volume(t, name, "", "")
	r = v.admit(t, a)
	require.Equal(t, "docker network create "+name+", or take external out, and gitring makes it", r.Hint)
	n, err := v.engine.NetworkCreate(t.Context(), name, network.CreateOptions{Driver: "bridge", IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: enginetest.Subnet()}}}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = v.engine.NetworkRemove(context.WithoutCancel(t.Context()), n.ID) })
	require.Nil(t, v.admit(t, a))

	other := v.App + "-other_pg"
	v.volume(t, other, v.App+"-other", "pg")
	a.Of.Volumes[0].External = other
	r = v.admit(t, a)
	require.Equal(t, ring.PolicyDenied, r.Code)
	require.Equal(t, "volume "+other+" belongs to project "+v.App+"-other", r.Says)
}
