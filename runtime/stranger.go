package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/gitring/gitring/ring"
)

// noStranger refuses to make an instance while a container that Compose runs
// under the app's name writes where it would write. Somebody who runs "docker
// compose up" in a clone replaces our containers by Compose's own; healing them
// would put a second program on the same volume.
func (d *Docker) noStranger(ctx context.Context, e engine, a ring.Action) error {
	written := d.written(a)
	if len(written) == 0 {
		return nil
	}
	list, err := e.ContainerList(ctx, container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", composeProject+"="+a.App))})
	if err != nil {
		return fault("cannot list containers", "", err)
	}
	for _, c := range list {
		if d.own(c.ID, c.Labels) {
			continue
		}
		for _, m := range c.Mounts {
			at := cmp.Or(m.Name, m.Source)
			if !m.RW || !slices.Contains(written, at) {
				continue
			}
			r := refused(a, ring.CauseCreate, ring.ForeignProject,
				fmt.Sprintf("container %s of Compose project %s, which gitring did not start, writes to %s", nameOf(c), a.App, at), adoptOr(a.App)+down([]container.Summary{c}))
			r.Permanent = false // it ends when that container does
			return r
		}
	}
	return nil
}

// written are the names of volumes and the paths that the instance would write to.
func (d *Docker) written(a ring.Action) []string {
	var all []string
	for _, m := range a.Of.Mounts(a.Want) {
		switch {
		case !m.Outlives():
		case m.Kind == ring.MountVolume:
			all = append(all, volumeOf(d.opts.Host, a, m.Source).Name)
		case m.Kind == ring.MountBind:
			all = append(all, m.Source)
		default:
			all = append(all, dataPath(a.Of, d.opts.DataRoot, m.Source))
		}
	}
	return all
}
