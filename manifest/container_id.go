package manifest

import (
	"regexp"

	"github.com/gitring/gitring/ring"
)

// containerID is what the engine's DNS takes for the ID of a container, short or whole.
var containerID = regexp.MustCompile(`^([0-9a-f]{12}|[0-9a-f]{64})$`)

// checkContainerIDs refuses names that could be the ID of a container. Fronts find their
// instances by it: whoever took it for a name would get their requests.
func (b *builderOf) checkContainerIDs(app ring.App) {
	for _, s := range app.Services {
		refuse := func(key, name string, at place) {
			if containerID.MatchString(name) {
				b.faults.add(ring.BadName, at, "take a name that is not 12 or 64 hex digits", "services.%s: %s %q could be the ID of a container, by which fronts find it", s.Name, key, head(name))
			}
		}
		if s.FrontOf != "" {
			continue // its names are those of its service
		}
		refuse("the name", s.Name, b.declared(s.Name))
		refuse("container_name", s.Spec.ContainerName, b.place("services", s.Name, "container_name"))
		refuse("hostname", s.Spec.Hostname, b.place("services", s.Name, "hostname"))
		for _, at := range s.Spec.Networks {
			for _, name := range at.Aliases {
				if name != s.Spec.ContainerName {
					refuse("alias", name, b.place("services", s.Name, "networks", at.Network, "aliases"))
				}
			}
		}
	}
}
