package manifest

import (
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// joinOwnContainers reads container:<name> of a container of the app as service:<its
// service>: the name is the app's own, and its instance is replaced by each rollout.
func (a *appReader) joinOwnContainers() {
	own := a.ownContainers()
	for _, f := range a.files {
		for _, s := range f.root.get("services").mappingPairs() {
			for _, key := range []string{"network_mode", "pid", "ipc"} {
				if n := s.val.get(key); n != nil {
					a.joinOwn(own, s.key, n, key, types.ServicePrefix)
				}
			}
			if n := s.val.get("volumes_from"); n != nil {
				for _, it := range n.items {
					a.joinOwn(own, s.key, it, "volumes_from", "")
				}
			}
		}
	}
}

// joinOwn rewrites one value, which is this use's own node.
func (a *appReader) joinOwn(own map[string]string, service string, n *node, key, prefix string) {
	written, ok := strings.CutPrefix(n.text, types.ContainerPrefix)
	if n.kind != scalar || n.broken || !ok {
		return
	}
	name, rest, _ := strings.Cut(written, ":")
	owner := own[name]
	if owner == "" || owner == service {
		a.byName[service] = true
		return
	}
	a.noteOnce(service + ": " + key + " container:" + name + " is service " + owner + " of this app")
	a.byName[service] = true
	n.text = prefix + owner
	if rest != "" {
		n.text += ":" + rest
	}
}

// ownContainers are the app's services by the names of their first containers: the
// container_name, else the one that Compose gives.
func (a *appReader) ownContainers() map[string]string {
	named, own := map[string]string{}, map[string]string{}
	for _, f := range a.files {
		for _, s := range f.root.get("services").mappingPairs() {
			if _, seen := named[s.key]; !seen {
				named[s.key] = ""
			}
			if n := s.val.get("container_name"); n != nil && !n.broken && n.text != "" {
				named[s.key] = n.text
			}
		}
	}
	for service, name := range named {
		own[or2(name, a.name+"-"+service+"-1")] = service
	}
	return own
}
