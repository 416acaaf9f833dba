package daemon

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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

// keyCheck is by which managers of a cluster know that they have one key. Nobody learns from it
// anything of the key, nor of a value that was hashed with it.
func keyCheck(key []byte, cluster string) string {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte("gitring cluster key\x00" + cluster)) // a hash takes all
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// leaseOf is as whom this daemon asks for the lease of its cluster. Its ID lies in the state
// folder: no backup has it, so that no second daemon comes to have it by a restore.
func leaseOf(c *config.Config, key []byte) (runtime.LeaseOptions, error) {
	file := filepath.Join(c.State, "lease.id")
	o := runtime.LeaseOptions{Manager: c.Host, Key: keyCheck(key, c.Engine.Cluster)}
	id, err := os.ReadFile(file)
	switch {
	case err == nil && leaseID.Match(id):
		o.ID = string(id)
		return o, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return o, fmt.Errorf("cannot read the ID of this manager: %w", err)
	}
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails
	o.ID = hex.EncodeToString(raw)
	if err := disk.WriteWhole(file, "tmp-lease-id-", []byte(o.ID), 0o600); err != nil {
		return o, fmt.Errorf("cannot keep the ID of this manager: %w", err)
	}
	return o, nil
}

var leaseID = regexp.MustCompile(`^[0-9a-f]{32}$`)

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
