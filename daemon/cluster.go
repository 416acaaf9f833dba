package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/secrets"
)

const clusterKeyHint = "copy it from a manager that runs gitring, or make the first: (umask 077; head -c 32 /dev/urandom > %s)"

// ClusterKey is the key of the keyed hashes on a swarm. It is never made here: one for each
// manager would make each move of a service's files another version.
func ClusterKey(c *config.Config) ([]byte, error) {
	file := c.Engine.KeyFile
	key, err := disk.ReadOwned(file, disk.Owned{User: os.Geteuid(), Closed: secrets.ClosedTo(file), Most: EnvKeySize})
	if err != nil {
		return nil, &ring.HostError{Says: "engine.key_file: " + err.Error(), Hint: fmt.Sprintf(clusterKeyHint, file), Err: err}
	}
	if len(key) != EnvKeySize {
		return nil, &ring.HostError{
			Says: fmt.Sprintf("engine.key_file: %s is no key: it has %d bytes and not %d", file, len(key), EnvKeySize),
			Hint: "copy it from a manager that runs gitring",
		}
	}
	return key, nil
}

// cluster is a swarm that remembers whether it had quorum at the last look.
type cluster struct {
	*runtime.Swarm
	noQuorum atomic.Bool
}

// Look is that of the swarm.
func (c *cluster) Look(ctx context.Context) (ring.Seen, error) {
	seen, err := c.Swarm.Look(ctx)
	e, is := errors.AsType[*ring.EngineError](err)
	c.noQuorum.Store(is && e.NoQuorum)
	return seen, err
}

// clusterStatus puts into a status what only this daemon knows of its cluster. The loop knows
// the cluster's name alone; the host is this machine.
func (d *Daemon) clusterStatus(st *ring.Status) {
	c, is := d.engine.(*cluster)
	if !is {
		return
	}
	st.Host = d.cfg.Host
	if !c.noQuorum.Load() {
		return
	}
	now := ring.ClusterStatus{Name: d.cfg.OwnerName(), Nodes: []ring.NodeStatus{}}
	if st.Cluster != nil {
		now.Nodes = st.Cluster.Nodes
	}
	now.State = ring.ClusterNoQuorum
	st.Cluster = &now
}

// notOnSwarm refuses what a person asks for and a swarm has no place for; nil on one engine.
func (d *Daemon) notOnSwarm(cannot, why, hint string) error {
	if !d.cfg.Engine.Swarm() {
		return nil
	}
	return api.Conflicting(hint, "%s on a swarm: %s", cannot, why)
}
