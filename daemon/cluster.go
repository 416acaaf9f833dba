package daemon

import (
	"fmt"
	"os"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
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
