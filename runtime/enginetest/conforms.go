package enginetest

import (
	"runtime/debug"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Capability is what not every engine can do. On an engine without one a story that needs
// it asserts what is documented instead, and is not skipped.
type Capability string

// The capabilities that stories need.
const (
	UnboundedProcesses Capability = "bounds no number of processes unasked"
	HealthClock        Capability = "runs checks by itself"
	OwnNetwork         Capability = "lets a service join its own network"
	LocalImages        Capability = "knows which images no registry has"
	ImageNames         Capability = "tells an image as it was named"
	PortFamilies       Capability = "holds a port without address for both families"
	OwnersFirst        Capability = "starts no container whose owner is stopped"
)

// Capabilities are all of them.
var Capabilities = []Capability{UnboundedProcesses, HealthClock, OwnNetwork, LocalImages, ImageNames, PortFamilies, OwnersFirst}

// A Story is a sentence, what it needs to be true as it stands, and how it is tried. Its name
// becomes that of a folder, which engines mount: so it holds no comma.
type Story struct {
	name  string
	run   func(*testing.T, *Rig)
	needs []Capability
}

// HostStories are the part that every engine passes: looks, names, networks, volumes, images,
// files, events and commands.
func HostStories() []Story {
	return []Story{
		{"a host without containers is seen empty", emptyHost, nil},
		{"a service without network has none", noNetwork, nil},
		{"remove stops first and keeps volumes", removeKeepsVolumes, nil},
		{"volumes have Compose's names and labels and are one per slot where asked", volumes, nil},
		{"a network is created once and removed when free", networkLife, nil},
		{"networks of others are used or refused and never removed", foreignNetworks, nil},
		{"the engine's own network is used where it has one or else refused", ownNetwork, []Capability{OwnNetwork}},
		{"overlapping subnets are the author's to change", overlapping, nil},
		{"a local image is pinned by its ID", resolveLocal, []Capability{LocalImages}},
		{"a registry's image is pinned by digest and pulled once and again when pruned", registryImage, []Capability{ImageNames}},
		{"an image that nobody has is refused", imageNobodyHas, nil},
		{"a taken host port is transient", takenPort, nil},
		{"ports clash on the engine as the plan says", clashingPorts, []Capability{PortFamilies}},
		{"content is mounted or missing and data is made", filesThere, nil},
		{"contents are named as mounted while a container has them", contentsMounted, nil},
		{"exec gives code and capped output", execs, nil},
		{"logs have both streams and a tail", logs, nil},
		{"an event pokes", eventPokes, nil},
		{"a quiet look costs two calls", quietLook, nil},
		{"an external volume is used and never made", externalVolume, nil},
		{"an external network is used and never made", externalNetwork, nil},
	}
}

// InstanceStories are the part of containers that gitring makes, starts and takes away by itself.
func InstanceStories() []Story {
	return []Story{
		{"a created instance is seen with every field", createdIsSeen, []Capability{UnboundedProcesses}},
		{"a created instance starts at once when asked", createStarts, nil},
		{"a created instance has joined all its networks before it starts", createJoins, nil},
		{"an instance is on the networks of its app only", onlyItsNetworks, nil},
		{"create repeated finishes what is there", createAgain, nil},
		{"a name held by another's container is a conflict", foreignName, nil},
		{"a name held by another version of ours is a conflict", collision, nil},
		{"start and stop and restart and remove can be repeated", repeated, nil},
		{"the restart policy is set in place", restartPolicy, nil},
		{"a container is renamed while it runs and never onto another", renamed, nil},
		{"the engine's own restarts are seen", engineRestarts, nil},
		{"an exit is seen with its code", exitIsSeen, nil},
		{"health is seen as the engine tells it", healthIsSeen, []Capability{HealthClock}},
		{"a container that is not ours is not touched", notOurs, nil},
		{"a program that is not there is permanent and its container can go", missingProgram, nil},
		{"a network made again is joined anew", networkMadeAgain, nil},
		{"start without a spec joins no further network", startBare, nil},
		{"start with a spec finishes what create began", startFinishes, nil},
		{"a drain delay ends with its context", delay, nil},
		{"an instance joins the namespaces and volumes of its owner by its ID", joins, nil},
		{"an owner that is gone or stopped is waited for", ownerAway, []Capability{OwnersFirst}},
		{"nothing is made beside a container of Compose's on the same volume", besideStranger, nil},
	}
}

// Conforms runs the stories of the parts that are an engine's, each on one of its own.
func Conforms(t *testing.T, start func(*testing.T) *Rig, parts ...[]Story) {
	for _, s := range slices.Concat(parts...) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			defer FailOnPanic(t)
			r := start(t)
			r.needs = s.needs
			s.run(t, r)
		})
	}
}

// lacks reports whether the engine is without a capability, which the story has to name.
func (r *Rig) lacks(t *testing.T, c Capability) bool {
	require.Contains(t, r.needs, c, "the story does not say that it needs it")
	return slices.Contains(r.Lacks, c)
}

// FailOnPanic has a panic fail its own story alone: an engine that answers otherwise than
// expected may leave a value empty that a story reads.
func FailOnPanic(t *testing.T) {
	if p := recover(); p != nil {
		t.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}
