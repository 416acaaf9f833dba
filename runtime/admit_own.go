package runtime

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/gitring/gitring/ring"
)

// dataOfInstances looks for instances of the app that have their data elsewhere than the app
// would begin with an empty volume or folder, where no plan of it is known. A lost
// database forgets what signed answers gave the app; what an instance mounts tells.
func (b beside) dataOfInstances(a ring.Action) []*ring.Refusal {
	if a.Was != nil {
		return nil
	}
	var all []*ring.Refusal
	for i := range b.containers {
		c := &b.containers[i]
		s, ok := a.Of.Service(c.Labels[labelService])
		if !ok || c.Labels[labelHost] != b.host || c.Labels[labelApp] != a.App || c.Labels[labelSource] != a.Of.Source {
			continue
		}
		a.Slot, _ = strconv.Atoi(c.Labels[labelSlot])
		for _, m := range s.Spec.Mounts {
			at := slices.IndexFunc(c.Mounts, func(x container.MountPoint) bool { return x.Destination == m.Target && x.RW })
			if at < 0 || m.ReadOnly {
				continue
			}
			if r := b.dataOfInstance(a, &s, m, c, c.Mounts[at]); r != nil && !slices.ContainsFunc(all, func(o *ring.Refusal) bool { return o.Says == r.Says }) {
				all = append(all, r)
			}
		}
	}
	return all
}

func (b beside) dataOfInstance(a ring.Action, s *ring.Service, m ring.Mount, c *container.Summary, has container.MountPoint) *ring.Refusal {
	place := s.Place("volumes." + m.Target)
	elsewhere := func(where, wanted, hint string) *ring.Refusal {
		return no(a, ring.VolumeElsewhere, &place,
			fmt.Sprintf("instance %s has its data in %s, and the app would begin with an empty %s", nameOf(*c), where, wanted), hint)
	}
	switch {
	case m.Kind == ring.MountVolume && has.Type == mount.TypeVolume:
		v := volumeOf(b.host, a, m.Source)
		if v.Name == has.Name || v.External || b.hasVolume(v.Name) || slices.Contains(a.Of.Empty, keptVolume(v.Name)) {
			return nil
		}
		i := slices.IndexFunc(a.Of.Volumes, func(x ring.Volume) bool { return x.Key == m.Source })
		if i < 0 || a.Of.Volumes[i].From == ring.FromNone {
			return nil
		}
		return elsewhere(has.Name, v.Name, b.nameIt(a, m.Source, has.Name)+"; to begin empty: docker volume create "+v.Name)
	case (m.Kind == ring.MountData || m.Kind == ring.MountSeed) && has.Type == mount.TypeBind:
		wanted := dataPath(a.Of, b.root, m.Source)
		if filepath.Clean(has.Source) == wanted || b.folders[wanted] != absent || slices.Contains(a.Of.Empty, keptData(wanted)) {
			return nil
		}
		return elsewhere(has.Source, wanted, moveStopped(a.App, filepath.Clean(has.Source), wanted)+"; to begin empty: mkdir -p "+wanted)
	}
	return nil
}

func (b beside) hasVolume(name string) bool {
	return slices.ContainsFunc(b.volumes, func(x *volume.Volume) bool { return x.Name == name })
}

// nameIt is what the Compose file says to have a volume as a key of the app.
func (b beside) nameIt(a ring.Action, key, name string) string {
	i := slices.IndexFunc(b.volumes, func(x *volume.Volume) bool { return x.Name == name })
	if i >= 0 {
		if owner := b.volumes[i].Labels[labelApp]; owner != "" && owner != a.App {
			return fmt.Sprintf("write volumes: {%s: {name: %s, x-gitring: {from: %s}}}", key, name, owner)
		}
	}
	return fmt.Sprintf("write volumes: {%s: {name: %s}}", key, name)
}
