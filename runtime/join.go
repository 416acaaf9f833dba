package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/gitring/gitring/ring"
)

// join puts the instance into the namespaces of the host and of other
// containers, by their IDs: a name could have come to mean another one.
func (p *payload) join(_ site, a ring.Action) error {
	s := a.Want.Spec
	for _, o := range s.Ties() {
		if a.Owners[o] == "" {
			return fmt.Errorf("service %s joins %s, and the action names no container of that", a.Service, o)
		}
	}
	p.Owners = ownerIDs(a)
	if id := s.Elsewhere(); id != "" {
		p.Elsewhere = map[string]string{a.Owners[string(id)]: string(id)}
	}
	p.Host.NetworkMode = container.NetworkMode(namespace(s.NetworkMode, a.Owners[s.NetworkOf]))
	p.Host.PidMode = container.PidMode(namespace(s.PIDMode, a.Owners[s.PIDOf]))
	p.Host.IpcMode = container.IpcMode(namespace(s.IPCMode, a.Owners[s.IPCOf]))
	for _, v := range s.VolumesFrom {
		from := a.Owners[v.Service]
		if v.ReadOnly {
			from += ":ro"
		}
		p.Host.VolumesFrom = append(p.Host.VolumesFrom, from)
	}
	return nil
}

func namespace(mode, owner string) string {
	if owner != "" {
		return "container:" + owner
	}
	return mode
}

// joinedIDs are the containers that a container of this host configuration is
// tied to, sorted, each once.
func joinedIDs(h *container.HostConfig) []string {
	var ids []string
	for _, id := range []string{h.NetworkMode.ConnectedContainer(), h.PidMode.Container(), h.IpcMode.Container()} {
		if id != "" {
			ids = append(ids, id)
		}
	}
	for _, from := range h.VolumesFrom {
		id, _, _ := strings.Cut(from, ":")
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
