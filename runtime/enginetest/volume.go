package enginetest

import (
	"context"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/volume"
)

// AddVolume makes a volume that is not ours, as docker volume create would.
func (f *Fake) AddVolume(name string, labels map[string]string) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	f.mem.volumes[name] = maps.Clone(labels)
	if labels == nil {
		f.mem.volumes[name] = map[string]string{}
	}
}

// DropVolume removes a volume, as somebody's docker volume rm would.
func (f *Fake) DropVolume(name string) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	delete(f.mem.volumes, name)
}

func (m *Client) VolumeList(ctx context.Context, _ volume.ListOptions) (volume.ListResponse, error) {
	return call(ctx, m, "VolumeList", func() (volume.ListResponse, error) {
		var list volume.ListResponse
		for _, name := range slices.Sorted(maps.Keys(m.volumes)) {
			list.Volumes = append(list.Volumes, &volume.Volume{Name: name, Labels: maps.Clone(m.volumes[name])})
		}
		return list, nil
	})
}
