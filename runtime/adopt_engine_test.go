package runtime

import (
	"context"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What can be done with an adopted container, on both engines.
func TestFakeAdopts(t *testing.T) {
	adoptions(t, fakeRig, func(*testing.T, *rig, string) {})
}

func TestEngineAdopts(t *testing.T) {
	c := engineOrSkip(t)
	adoptions(t, realRig, func(t *testing.T, r *rig, name string) {
		t.Cleanup(func() {
			clean(t, c, r.Host)
			require.NoError(t, c.VolumeRemove(context.WithoutCancel(t.Context()), name, true))
		})
	})
}

func adoptions(t *testing.T, start func(*testing.T) *rig, dropped func(*testing.T, *rig, string)) {
	for name, story := range map[string]func(*testing.T, *evening){
		"an adopted container is seen and changed, and another of its project never": changesAdopted,
		"a project is adopted on its volumes, and its next instance has them":        adoptsVolumes,
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

func changesAdopted(t *testing.T, v *evening) {
	id, other := v.compose(t, v.App, "/srv/"+v.App), v.compose(t, v.App+"x", "/srv/x")
	require.Empty(t, v.Seen(t).Instances)
	own := v.Must(t, v.CreateAction(nil)).Instance
	v.Adopts(map[string]bool{id: true})
	v.Seen(t)
	calls := v.CallCount()
	seen := v.Seen(t).Instances
	require.Equal(t, 2, v.CallCount()-calls, "one list of containers in any case")
	require.Len(t, seen, 2)
	for _, in := range seen {
		require.Contains(t, []string{id, own}, in.ID)
		if in.ID == id {
			require.Empty(t, in.App, "its row says whose it is, not a label")
			require.Equal(t, ring.StateRunning, in.State)
		}
	}

	// By its whole ID, and no other.
	a := ring.Action{App: v.App, Service: "db", Slot: 1, Instance: id, Policy: "always"}
	for _, kind := range []ring.ActionKind{ring.DoPolicy, ring.DoRestart, ring.DoStop, ring.DoStart} {
		a.Kind = kind
		v.Must(t, a)
	}
	require.Equal(t, "always", string(v.Inspect(t, id).HostConfig.RestartPolicy.Name))
	require.True(t, v.Inspect(t, id).State.Running)
	for _, ref := range []string{other, id[:12]} {
		a.Kind, a.Instance = ring.DoStop, ref
		_, err := v.Do(t.Context(), a)
		if ref == other {
			require.ErrorIs(t, err, errNotOurs)
		}
		require.True(t, v.Inspect(t, other).State.Running)
		require.True(t, v.Inspect(t, id).State.Running)
	}

	// What happens to it is heard, and to another of Compose's not.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	require.Equal(t, "", v.NextPoke(t), "the stream stands")
	a.Kind, a.Instance = ring.DoPolicy, id
	a.Policy = "no"
	v.Must(t, a)
	require.NoError(t, v.engine.ContainerRestart(t.Context(), other, container.StopOptions{}))
	v.Exit(t, id, 3)
	require.Equal(t, id, v.NextPoke(t))
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)

	// What was given back is somebody else's again.
	v.Adopts(nil)
	a.Kind = ring.DoRemove
	require.ErrorIs(t, v.MustFail(t, a), errNotOurs)
	for _, in := range v.Seen(t).Instances {
		require.NotEqual(t, id, in.ID)
	}
}

func adoptsVolumes(t *testing.T, v *evening) {
	v.volume(t, v.App+"_pg", v.App, "pg")
	id := v.compose(t, v.App, "/srv/"+v.App, mount.Mount{Type: mount.TypeVolume, Source: v.App + "_pg", Target: "/pg"})
	a := v.CreateAction(func(s *ring.Service) {
		s.Name, s.Spec.Mounts = "db", []ring.Mount{{Kind: ring.MountVolume, Source: "pg", Target: "/pg"}}
	})
	a.Of.Services = []ring.Service{*a.Want}
	require.Equal(t, ring.ForeignProject, v.admit(t, a).Code)
	ask := ring.Action{Kind: ring.DoAdmit, App: v.App, Of: a.Of}
	found, err := v.Adoption(t.Context(), ask, true)
	require.NoError(t, err)
	require.Empty(t, found.Refusals)
	require.Empty(t, found.Starts)
	require.Len(t, found.Containers, 1)
	require.Equal(t, ring.Adopted{Instance: id, App: v.App, Service: "db", Slot: 1, Kind: ring.Worker, Policy: ring.EnginePolicy{Name: "no"}}, found.Containers[0].Row)
	require.NotContains(t, found.Containers[0].Differs, "volumes /pg")
	require.Equal(t, []ring.Kept{{App: v.App, Name: "volume " + v.App + "_pg"}}, found.Kept)

	// From here it is ours: nothing is in the way, and a second writer is.
	v.Adopts(map[string]bool{id: true})
	seen := v.Seen(t).Instances
	require.Len(t, seen, 1)
	require.Equal(t, []string{"volume " + v.App + "_pg"}, seen[0].Writes)
	a.Of.Services = []ring.Service{*a.Want}
	require.Nil(t, v.admit(t, a))
	ask.Adopted = []ring.Adopted{found.Containers[0].Row}
	_, err = v.Do(t.Context(), ask)
	require.NoError(t, err)
	moved := *a.Of
	moved.Services = []ring.Service{{Name: "other"}}
	ask.Of = &moved
	require.Equal(t, ring.ForeignProject, v.MustFail(t, ask).Refusal.Code, "the plan lost its service before it came into force")
	v.Must(t, ring.Action{Kind: ring.DoRemove, App: v.App, Service: "db", Slot: 1, Instance: id})
	v.Must(t, a)
	require.Equal(t, v.App+"_pg", v.Inspect(t, v.OnlyInstance(t).ID).Mounts[0].Name)
}
