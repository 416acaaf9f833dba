package enginetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func joins(t *testing.T, r *Rig) {
	o := r.StartOwner(t)
	a := r.JoinAction(o.ID, func(s *ring.Spec) {
		s.NetworkOf, s.PIDOf, s.IPCOf = "vpn", "vpn", "vpn"
		s.VolumesFrom = []ring.VolumesFrom{{Service: "vpn", ReadOnly: true}}
		s.Expose = []string{"80"}
	})
	r.Must(t, a)
	in := r.InstanceOf(t, "app")
	require.Equal(t, ring.StateRunning, in.State)
	require.Equal(t, []string{o.ID}, in.Joined)
	require.Empty(t, o.Joined)
	require.Empty(t, in.Addresses, "its addresses are the owner's")
	c := r.Inspect(t, in.ID)
	require.EqualValues(t, "container:"+o.ID, c.HostConfig.NetworkMode)
	require.EqualValues(t, "container:"+o.ID, c.HostConfig.PidMode)
	require.EqualValues(t, "container:"+o.ID, c.HostConfig.IpcMode)
	require.Equal(t, []string{o.ID + ":ro"}, c.HostConfig.VolumesFrom)
	require.Empty(t, c.NetworkSettings.Networks)
	require.Len(t, c.Mounts, 1)
	require.Equal(t, r.App+"_keys", c.Mounts[0].Name)
	require.False(t, c.Mounts[0].RW)

	r.Must(t, a) // again: it is there
	a.Owners = map[string]string{"vpn": r.AddForeign(t, r.App+"-another")}
	e := r.MustFail(t, a)
	require.Contains(t, e.Error(), "replaced since")
	require.False(t, e.Permanent)
	a.Owners = map[string]string{"web": o.ID}
	a.Slot = 2
	require.ErrorContains(t, r.MustFail(t, a), "joins vpn")
	require.Len(t, r.Seen(t).Instances, 2)
}

func ownerAway(t *testing.T, r *Rig) {
	o := r.StartOwner(t)
	for _, edit := range []func(*ring.Spec){
		func(s *ring.Spec) { s.NetworkOf = "vpn" },
		func(s *ring.Spec) { s.PIDOf, s.NoNetwork = "vpn", true },
		func(s *ring.Spec) { s.IPCOf, s.NoNetwork = "vpn", true },
		func(s *ring.Spec) { s.VolumesFrom, s.NoNetwork = []ring.VolumesFrom{{Service: "vpn"}}, true },
	} {
		gone := r.MustFail(t, r.JoinAction(strings.Repeat("0", 64), edit))
		require.Equal(t, ring.CauseCreate, gone.Cause, "%v", gone)
		require.False(t, gone.Permanent, "%v", gone)
		require.Nil(t, gone.Refusal)
	}
	r.Must(t, ActionOn(ring.DoStop, o))
	for slot, edit := range []func(*ring.Spec){
		func(s *ring.Spec) { s.NetworkOf = "vpn" },
		func(s *ring.Spec) { s.PIDOf, s.NoNetwork = "vpn", true },
		func(s *ring.Spec) { s.IPCOf, s.NoNetwork = "vpn", true },
	} {
		a := r.JoinAction(o.ID, edit)
		a.Slot = slot + 2
		if r.lacks(t, OwnersFirst) { // it starts the owner, too
			r.Must(t, a)
			require.Equal(t, ring.StateRunning, r.InstanceOf(t, "vpn").State)
			r.Must(t, ActionOn(ring.DoStop, o))
			continue
		}
		stopped := r.MustFail(t, a)
		require.Equal(t, ring.CauseCreate, stopped.Cause, "%v", stopped)
		require.False(t, stopped.Permanent, "%v", stopped)
	}
	r.Must(t, ActionOn(ring.DoStart, o))
	a := r.JoinAction(o.ID, func(s *ring.Spec) { s.NetworkOf = "vpn" })
	a.Slot = 2
	r.Must(t, a) // finishes the one that was made
}
