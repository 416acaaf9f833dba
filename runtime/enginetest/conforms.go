package enginetest

import (
	"runtime/debug"
	"testing"
)

// Conforms runs the stories that every engine passes, each on one of its own. A story is
// a sentence; its name is that of the subtest.
func Conforms(t *testing.T, start func(*testing.T) *Rig) {
	for _, s := range []struct {
		name  string
		story func(*testing.T, *Rig)
	}{
		{"a host without containers is seen empty", emptyHost},
		{"a created instance is seen with every field", createdIsSeen},
		{"a created instance starts at once when asked", createStarts},
		{"an instance is on the networks of its app only", onlyItsNetworks},
		{"a service without network has none", noNetwork},
		{"create repeated finishes what is there", createAgain},
		{"a name held by another's container is a conflict", foreignName},
		{"a name held by another version of ours is a conflict", collision},
		{"start, stop, restart and remove can be repeated", repeated},
		{"remove stops first and keeps volumes", removeKeepsVolumes},
		{"volumes have Compose's names and labels, one per slot where asked", volumes},
		{"the restart policy is set in place", restartPolicy},
		{"a container is renamed while it runs, and never onto another", renamed},
		{"the engine's own restarts are seen", engineRestarts},
		{"an exit is seen with its code", exitIsSeen},
		{"health is seen as the engine tells it", healthIsSeen},
		{"a network is created once and removed when free", networkLife},
		{"networks of others are used or refused, never removed", foreignNetworks},
		{"the engine's own network is used where it has one, else refused", ownNetwork},
		{"overlapping subnets are the author's to change", overlapping},
		{"a container that is not ours is not touched", notOurs},
		{"a local image is pinned by its ID", resolveLocal},
		{"a registry's image is pinned by digest, pulled once, and again when pruned", registryImage},
		{"an image that nobody has is refused", imageNobodyHas},
		{"a program that is not there is permanent, and its container can go", missingProgram},
		{"a taken host port is transient", takenPort},
		{"ports clash on the engine as the plan says", clashingPorts},
		{"content is mounted or missing, data is made", filesThere},
		{"contents are named as mounted while a container has them", contentsMounted},
		{"a network made again is joined anew", networkMadeAgain},
		{"start without a spec joins no further network", startBare},
		{"start with a spec finishes what create began", startFinishes},
		{"exec gives code and capped output", execs},
		{"logs have both streams and a tail", logs},
		{"a drain delay ends with its context", delay},
		{"an event pokes", eventPokes},
		{"a quiet look costs two calls", quietLook},
		{"an instance joins the namespaces and volumes of its owner, by its ID", joins},
		{"an owner that is gone or stopped is waited for", ownerAway},
		{"an external volume is used, and never made", externalVolume},
		{"an external network is used, and never made", externalNetwork},
		{"nothing is made beside a container of Compose's on the same volume", besideStranger},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			defer failOnPanic(t)
			s.story(t, start(t))
		})
	}
}

// failOnPanic has a panic fail its own story alone: an engine that answers otherwise than
// expected may leave a value empty that a story reads.
func failOnPanic(t *testing.T) {
	if p := recover(); p != nil {
		t.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}
