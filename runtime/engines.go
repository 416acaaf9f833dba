package runtime

import (
	"fmt"
	"strings"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/versions"
)

// MinAPI is the oldest Engine API that is spoken to: Docker 20.10.
const MinAPI = "1.41"

// A Capability is what not every engine that is spoken to can do.
type Capability string

// The capabilities, by what a Compose file says.
const (
	VolumeParts      Capability = "volumes: subpath"
	FurtherAddresses Capability = "networks: mac_address"
	StartInterval    Capability = "healthcheck: start_interval"
	Annotations      Capability = "annotations"
)

// A Difference is what older engines cannot do, and what becomes of an app that asks for it.
type Difference struct {
	Capability Capability
	Since      string // the first API that can; "1.45"
	Release    string // the first Docker Engine that has it; "26.0"
	Without    string // what an older engine does
	Answer     string // what gitring does there
}

// Differences is the one table of what engines do in different ways, the newest first. The
// versions are those of the Engine API's own history (docs.docker.com, version history).
func Differences() []Difference {
	return []Difference{
		{VolumeParts, "1.45", "26.0", "mounts no part of a volume", "the app is refused (`Unsupported`)"},
		{FurtherAddresses, "1.44", "25.0", "takes a hardware address for the first network alone", "those of further networks are left out, and that is told"},
		{StartInterval, "1.44", "25.0", "checks at the usual interval while a container starts", "the key is left out, and that is told"},
		{Annotations, "1.43", "24.0", "keeps no annotations", "they are left out, and that is told"},
	}
}

// can reports whether an engine of an API version has a capability.
func can(api string, c Capability) bool { return !apiBefore(api, since(c)) }

// since is the first API that has a capability.
func since(c Capability) string {
	for _, d := range Differences() {
		if d.Capability == c {
			return d.Since
		}
	}
	panic("no row for the capability " + string(c)) // a test asks for each
}

// Lacking are the rows that hold for an engine of an API version.
func Lacking(api string) (out []Difference) {
	for _, d := range Differences() {
		if apiBefore(api, d.Since) {
			out = append(out, d)
		}
	}
	return out
}

// apiBefore reports whether an API version is older than v.
func apiBefore(api, v string) bool { return versions.LessThan(api, v) }

// An UnfitError says that an engine is none that gitring works with, and what would go wrong.
type UnfitError struct{ Says, Hint string }

func (e *UnfitError) Error() string { return e.Says }

const fitHint = "gitring works with Docker Engine 20.10 or newer; engine.url in its configuration names the engine"

// unfit is why an engine that answers is not worked with; nil where it is.
func unfit(url string, ping types.Ping, v types.Version) error {
	for _, c := range v.Components {
		if strings.Contains(strings.ToLower(c.Name), "podman") {
			return &UnfitError{Hint: fitHint, Says: fmt.Sprintf("cannot use the engine at %s: it is Podman %s; every image tag would be refused, since it asks no registry for a digest", url, c.Version)}
		}
	}
	switch {
	case ping.APIVersion == "":
		return &UnfitError{Hint: fitHint, Says: fmt.Sprintf("cannot use the engine at %s: it does not say which API it speaks", url)}
	case apiBefore(ping.APIVersion, MinAPI):
		return &UnfitError{Hint: fitHint, Says: fmt.Sprintf("cannot use the engine at %s: its API is %s, older than %s (Docker 20.10); it would ignore platform and start images of another architecture", url, ping.APIVersion, MinAPI)}
	}
	return nil
}
