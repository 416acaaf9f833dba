package runtime

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// leaseManagers dials every manager of the swarm as a daemon of its own would, with a clock that
// the test moves.
func leaseManagers(t *testing.T, cluster string) (all []*Swarm, pass func(time.Duration)) {
	swarmOrSkip(t)
	var now time.Duration
	for i, at := range strings.Fields(os.Getenv("GITRING_SWARM_NODES")) {
		s, err := DialSwarm(t.Context(), Options{URL: at, Host: cluster, ContentDir: t.TempDir(), Lease: LeaseOptions{ID: fmt.Sprint("daemon-", i), Manager: fmt.Sprint("node-", i+1), Key: "k1"}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		s.lease.now = func() instant { return instant{up: now, wall: now} }
		all = append(all, s)
	}
	return all, func(d time.Duration) { now += d }
}

// The lease moves from one manager to the next as each dies, and whoever has it no more changes
// nothing. What the swarm then has is one service, sent once.
func TestOnSwarmTheLeaseMoves(t *testing.T) {
	r := newSwarmRig(t, 801)
	all, pass := leaseManagers(t, r.docker.opts.Host)
	if len(all) < 2 {
		t.Skip("one manager has nobody to move the lease to")
	}
	t.Cleanup(func() { _ = r.c.ConfigRemove(t.Context(), "gitring."+r.docker.opts.Host+".lease") })
	for _, s := range all {
		s.docker.opts.ContentDir, s.docker.opts.ContentAt = r.docker.opts.ContentDir, r.docker.opts.ContentAt
	}
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

func TestOnSwarmAnotherKeyIsRefused(t *testing.T) {
	r := newSwarmRig(t, 802)
	dial := func(id, key string) (*Swarm, error) {
		return DialSwarm(t.Context(), Options{URL: os.Getenv("GITRING_SWARM"), Host: r.docker.opts.Host, ContentDir: t.TempDir(), Lease: LeaseOptions{ID: id, Manager: "node-" + id, Key: key}})
	}
	t.Cleanup(func() { _ = r.c.ConfigRemove(t.Context(), "gitring."+r.docker.opts.Host+".lease") })
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
