package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// mismatch says, in one sentence, why a gitring that itself runs in a container
// cannot work: the engine mounts host paths, so each of SamePaths must be the
// same folder inside and outside, and checks reach instances through the host's
// network only. Outside a container it is nil. Once nil it is not asked again.
func (d *Docker) mismatch(ctx context.Context, e engine) error {
	d.mu.Lock()
	sound := d.sound
	d.mu.Unlock()
	if sound || len(d.opts.SamePaths) == 0 {
		return nil
	}
	if id := d.self(); id != "" {
		c, err := e.ContainerInspect(ctx, id)
		switch {
		case cerrdefs.IsNotFound(err): // another engine runs us; this one shares our paths
		case err != nil:
			return fault("cannot inspect gitring's own container", "", err)
		default:
			if err := pathMismatch(c, d.opts.SamePaths); err != nil {
				return err
			}
			d.mu.Lock()
			d.inside = true
			d.mu.Unlock()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sound = true
	return nil
}

// ownContainer is the ID of the container this process runs in, "" for none.
func ownContainer() string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil {
		if id := ownID(string(mounts)); id != "" {
			return id
		}
	}
	if _, err := os.Stat("/.dockerenv"); err != nil {
		return ""
	}
	name, err := os.Hostname() // the short ID, unless it was set
	if err != nil {
		return ""
	}
	return name
}

var ownMount = regexp.MustCompile(`containers/([0-9a-f]{64})/\S*(?:hostname|resolv\.conf|hosts) `)

// ownID finds the ID in the mounts that engines make of a container's
// /etc/hostname and its like; also with the host's network.
func ownID(mountinfo string) string {
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasPrefix(f[4], "/etc/") {
			continue
		}
		if m := ownMount.FindStringSubmatch(f[3] + " "); m != nil {
			return m[1]
		}
	}
	return ""
}

func pathMismatch(c container.InspectResponse, paths []string) error {
	if c.ContainerJSONBase == nil || c.HostConfig == nil {
		return errors.New("cannot inspect gitring's own container: the engine's answer is empty")
	}
	for _, p := range paths {
		if at := outside(c.Mounts, filepath.Clean(p)); at != filepath.Clean(p) {
			if at == "" {
				return fmt.Errorf("cannot run in this container (PathMismatch): %s is not mounted from the host; add -v %s:%s", p, p, p)
			}
			return fmt.Errorf("cannot run in this container (PathMismatch): %s is %s on the host; mount it at the same path: -v %s:%s", p, at, p, p)
		}
	}
	if !c.HostConfig.NetworkMode.IsHost() {
		return fmt.Errorf("cannot run in this container (PathMismatch): its network mode is %q, checks need the host's; add --network host", c.HostConfig.NetworkMode)
	}
	return nil
}

// outside is the host's path of a path inside, by the innermost mount that
// holds it; "" when none does.
func outside(mounts []container.MountPoint, path string) string {
	best, at := -1, ""
	for _, m := range mounts {
		rel, err := filepath.Rel(m.Destination, path)
		if err != nil || !filepath.IsLocal(rel) || len(m.Destination) <= best {
			continue
		}
		best, at = len(m.Destination), ""
		if m.Type == mount.TypeBind || m.Type == mount.TypeVolume {
			at = filepath.Join(m.Source, rel)
		}
	}
	return at
}
