package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Podman bounds processes unasked, by a number of its configuration: nobody did it by hand.
// What was asked for is compared all the same, and Docker bounds nothing by itself.
func TestABoundThatAnEngineGivesUnaskedIsNoDrift(t *testing.T) {
	pids := func(n int64) *ring.Resources { return &ring.Resources{PidsLimit: &n} }
	podman := &Pass{World: World{Seen: ring.Seen{BoundsProcesses: true}}}
	plain := &Pass{World: World{}}
	for _, tt := range []struct {
		says           string
		asked, has     *ring.Resources
		podman, docker int
	}{
		{"nothing was asked", nil, pids(2048), 0, 1},
		{"no bound was asked", pids(-1), pids(4096), 0, 1},
		{"another one was asked", pids(100), pids(2048), 1, 1},
		{"that very one was asked", pids(2048), pids(2048), 0, 0},
		{"the one that was asked is gone", pids(2048), pids(-1), 1, 1},
	} {
		require.Len(t, podman.limitsOff(tt.asked, tt.has), tt.podman, tt.says)
		require.Len(t, plain.limitsOff(tt.asked, tt.has), tt.docker, tt.says)
	}
}
