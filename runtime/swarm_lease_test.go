package runtime

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// leaseManagers dials every manager of the swarm as a daemon of its own would, with a clock that
// the test moves.
func leaseManagers(t *testing.T, r *swarmRig) (all []*Swarm, pass func(time.Duration)) {
	var now time.Duration
	for i := range r.managers {
		s, err := r.dial(t, i, Options{Host: r.docker.opts.Host, ContentDir: r.content, Lease: LeaseOptions{ID: fmt.Sprint("daemon-", i), Manager: fmt.Sprint("node-", i+1), Key: "k1"}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		s.lease.now = func() instant { return instant{up: now, wall: now} }
		all = append(all, s)
	}
	return all, func(d time.Duration) { now += d }
}

// leaseMoves is that the lease moves from one manager to the next as each dies, and whoever has it
// no more changes nothing. What the swarm then has is one service, sent once.
func leaseMoves(t *testing.T, r *swarmRig) {
	all, pass := leaseManagers(t, r)
	holder := 0
	look := func(i int) bool {
		seen, err := all[i].Look(t.Context())
		require.NoError(t, err)
		if seen.Cluster.Lease.Mine {
			require.Equal(t, fmt.Sprint("node-", i+1), seen.Cluster.Lease.Holder)
		}
		return seen.Cluster.Lease.Mine
	}
	require.True(t, look(0), "nobody had it")
	_, err := all[0].Do(t.Context(), r.action(nil))
	require.NoError(t, err)
	was := r.service(t)
	if r.lacks(t, severalManagers) {
		pass(time.Hour)
		require.True(t, look(0), "nobody else asked for it")
		return
	}
	for move := range 20 {
		for i := range all {
			require.Equal(t, i == holder, look(i), "move %d", move)
		}
		dead := holder
		for i := 0; i < 5 && holder == dead; i++ { // the holder is gone, and the others look
			pass(12 * time.Second)
			for j := range all {
				if j != dead && look(j) {
					require.Equal(t, dead, holder, "two took it in move %d", move)
					holder = j
				}
			}
		}
		require.NotEqual(t, dead, holder, "move %d: nobody took it", move)
		// The one that was stopped wakes in the middle of a step, before it looks again.
		_, err := all[dead].Do(t.Context(), r.action(func(a *ring.Action, s *ring.Service) { a.Index, s.Replicas = was.Index, 3 }))
		require.ErrorIs(t, err, errNotHolder)
		require.False(t, look(dead))
	}
	now := r.service(t)
	require.Equal(t, was.Index, now.Index, "a move sent the service again")
}

func otherKeyRefused(t *testing.T, r *swarmRig) {
	dial := func(id, key string) (*Swarm, error) {
		return r.dial(t, 0, Options{Host: r.docker.opts.Host, ContentDir: t.TempDir(), Lease: LeaseOptions{ID: id, Manager: "node-" + id, Key: key}})
	}
	first, err := dial("1", "k1")
	require.NoError(t, err)
	// It was asked before there was a lease, so it learns of it at its first look.
	second, err := dial("2", "k2")
	require.NoError(t, err)
	_, err = first.Look(t.Context())
	require.NoError(t, err)
	_, err = second.Look(t.Context())
	require.ErrorContains(t, err, "another cluster key")
	_, err = second.Do(t.Context(), r.action(nil))
	require.ErrorIs(t, err, errNotHolder)
	var unfit *UnfitError
	_, err = dial("3", "k2")
	require.ErrorAs(t, err, &unfit)
	require.Contains(t, unfit.Says, "manager node-1 has another cluster key")
	require.Contains(t, unfit.Hint, "docker config rm gitring."+r.docker.opts.Host+".lease")
	again, err := dial("1", "k1")
	require.NoError(t, err)
	seen, err := again.Look(t.Context())
	require.NoError(t, err)
	require.True(t, seen.Cluster.Lease.Mine, "a daemon that begins anew goes on at once")
	require.Empty(t, seen.Cluster.Files, "the lease is no file of an app")
}
