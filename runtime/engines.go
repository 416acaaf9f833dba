package runtime

import (
	"cmp"
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

// A PodmanDifference is what Podman does otherwise than Docker, and what gitring does there.
type PodmanDifference struct{ What, Does, Answer string }

// PodmanDifferences are those of Podman 5.1 and newer, P1 to P10 as the comments of podman
// number them, and what the suite found besides. The type podman, admission and the checks carry them out.
func PodmanDifferences() []PodmanDifference {
	return []PodmanDifference{
		{"a container's name that is taken", "answers 500", "reads it as a conflict, and says who has the name"},
		{"the digest of a tag", "asks no registry", "asks the registry itself, as for signatures; where it cannot, Podman pulls, unless the policy wants a signature"},
		{"events", "matches no label without a value, and has names of its own", "asks for all, and picks out its own"},
		{"a change of limits", "sets the restart policy to `no`", "sends the restart policy along"},
		{"networks", "makes none of a name that is there, and says it did; removes one in use", "looks before and after, and removes none in use"},
		{"`network_mode: bridge`", "has another network of its own", "refuses the app (`Unsupported`)"},
		{"a command whose container ended", "has forgotten it", "says that it ended with its container"},
		{"`shm_size` with `ipc: host`, `init` with `pid`, `domainname`, `gpus`, a log's `tag`, a comma in a bind's path", "refuses them or leaves them out", "refuses the app (`Unsupported`)"},
		{"a bind whose path is not there", "makes a folder", "makes none where Compose's long form says so"},
		{"`healthcheck`", "has systemd as its clock", "has Podman run each check at its interval where there is no systemd"},
		{"a reboot", "starts containers by `podman-restart.service`: those of `restart: always`, and of `unless-stopped` where the unit says so", "`doctor` asks for that unit, and counts what it starts"},
		{"an image that was built here", "gives it a digest as if a registry had it", "asks the registry, unless `pull_policy: never` says not to"},
		{"a service that joins another's namespaces", "starts the owner with it, and removes no owner before", "tries again until it can"},
		{"processes of a container", "bounds them at 2048", "leaves that as it is"},
	}
}

// PodmanRefuses are the keys that no app on Podman may have, or only one without the other.
func PodmanRefuses() []string {
	return []string{"network_mode: bridge", "shm_size with ipc: host", "init with pid", "domainname", "gpus", "logging: tag", "a comma in a bind"}
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

const fitHint = "gitring works with Docker Engine 20.10 or newer, and with Podman 5.1 or newer as root; engine.url in its configuration names the engine"

// minPodman is the oldest Podman that is worked with.
const minPodman = "5.1"

// podmanVersion is the version of Podman that answers; "" where another engine does.
func podmanVersion(v types.Version) string {
	for _, c := range v.Components {
		if strings.Contains(strings.ToLower(c.Name), "podman") {
			return cmp.Or(c.Version, v.Version)
		}
	}
	return ""
}

// unfit is why an engine that answers is not worked with; nil where it is.
func unfit(url string, ping types.Ping, v types.Version) error {
	if p := podmanVersion(v); p != "" && versions.LessThan(p, minPodman) {
		return &UnfitError{Hint: fitHint, Says: fmt.Sprintf("cannot use the engine at %s: it is Podman %s, older than %s; it changes no restart policy of a container, so a replaced one would come back", url, p, minPodman)}
	}
	switch {
	case ping.APIVersion == "":
		return &UnfitError{Hint: fitHint, Says: fmt.Sprintf("cannot use the engine at %s: it does not say which API it speaks", url)}
	case apiBefore(ping.APIVersion, MinAPI):
		return &UnfitError{Hint: fitHint, Says: fmt.Sprintf("cannot use the engine at %s: its API is %s, older than %s (Docker 20.10); it would ignore platform and start images of another architecture", url, ping.APIVersion, MinAPI)}
	}
	return nil
}
