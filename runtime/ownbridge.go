package runtime

import (
	"slices"

	"github.com/docker/docker/api/types/network"

	"github.com/gitring/gitring/ring"
)

// ownBridges are the names that the engine's own network goes by: Docker's, and
// Podman's, which says one or the other.
var ownBridges = []string{network.NetworkBridge, "podman"}

// bridged are the places of network_mode: bridge in an app.
func bridged(app *ring.App) []ring.Place {
	var out []ring.Place
	for i := range app.Services {
		if s := &app.Services[i]; s.Spec.NetworkMode == network.NetworkBridge {
			out = append(out, s.Place("network_mode"))
		}
	}
	return out
}

// ownBridge judges network_mode: bridge on an engine that has no network of its
// own. It would start such a container and say nothing, with no network at all and
// with none of its ports published.
func (b beside) ownBridge(a ring.Action) (all []*ring.Refusal) {
	if b.podman {
		for _, at := range bridged(a.Of) {
			all = append(all, no(a, ring.Unsupported, &at, "network_mode: bridge is Docker's own network, and Podman's is another one (podman), where services do not find each other",
				"take network_mode out, and the service joins the app's own network"))
		}
		return all
	}
	if slices.ContainsFunc(b.networks, func(n network.Summary) bool { return slices.Contains(ownBridges, n.Name) }) {
		return nil
	}
	for _, at := range bridged(a.Of) {
		all = append(all, no(a, ring.Unsupported, &at, "network_mode: bridge needs the engine's own network, and this engine has none (dockerd --bridge none)",
			"take network_mode out, and the service joins the app's own network; or start the engine with its bridge"))
	}
	return all
}
