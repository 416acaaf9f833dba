package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
)

// Mounted are the contents that containers of any gitring mount, by hash,
// running or not: one that is stopped needs them to start again, with or
// without us. It may name more than that, never less; an error names none. The folder of
// each is named as well, by its path.
func (d *Docker) Mounted(ctx context.Context) (map[string]bool, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return nil, err
	}
	// Any host's: after a change of our own name the containers of the old one go on.
	list, err := e.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelHost))})
	if err != nil {
		return nil, fault("cannot list containers", "", err)
	}
	hashes := map[string]bool{}
	for _, c := range list {
		mounts := c.Mounts
		if len(mounts) == 0 || vague(mounts) { // not every engine's list tells
			full, err := e.ContainerInspect(ctx, c.ID)
			if cerrdefs.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fault("cannot inspect container "+short(c.ID), "", err)
			}
			mounts = full.Mounts
		}
		if vague(mounts) {
			return nil, fmt.Errorf("cannot tell what container %s mounts", short(c.ID))
		}
		for _, m := range mounts {
			addHashes(hashes, m.Source)
		}
	}
	return hashes, nil
}

// vague reports whether a mount of the host's does not say what it mounts.
func vague(mounts []container.MountPoint) bool {
	return slices.ContainsFunc(mounts, func(m container.MountPoint) bool { return m.Type == mount.TypeBind && m.Source == "" })
}

// addHashes takes every part of a path that could be a content's: the state
// directory may have been reached by another name when the container was made.
func addHashes(hashes map[string]bool, source string) {
	before, at := "", ""
	for part := range strings.SplitSeq(source, "/") {
		at += part
		if contentHash.MatchString(part) || before == "live" { // the live folders of an instance, by their name
			hashes[part], hashes[at] = true, true
		}
		before, at = part, at+"/"
	}
}
