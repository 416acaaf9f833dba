package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestWhatIsWrongWithASwarmIsFound(t *testing.T) {
	wellSwarm := func() *Swarm {
		return &Swarm{Managers: 3, Autolock: true, Nodes: []ring.NodeStatus{{Name: "node-1", State: "ready"}, {Name: "node-2", State: "ready"}}}
	}
	require.Empty(t, swarmChecks(nil), "one engine is asked nothing of this")
	for _, c := range swarmChecks(wellSwarm()) {
		require.Equal(t, OK, c.Result, "%+v", c)
	}
	for _, tt := range []struct {
		wrong      func(s *Swarm)
		name, says string
	}{
		{func(s *Swarm) { s.Managers = 1 }, "managers", "when one is gone"},
		{func(s *Swarm) { s.Managers = 2 }, "managers", "when one is gone"},
		{func(s *Swarm) { s.Managers = 4 }, "managers", "than 3 would"},
		{func(s *Swarm) { s.Nodes[1].State = "down" }, "nodes", "node-2 is down"},
		{func(s *Swarm) { s.Nodes[0].State = "drained" }, "nodes", "node-1 is drained"},
		{func(s *Swarm) { s.Autolock = false }, "autolock", "has the secrets of the swarm"},
	} {
		s := wellSwarm()
		tt.wrong(s)
		var found []Check
		for _, c := range swarmChecks(s) {
			if c.Result != OK {
				found = append(found, c)
			}
		}
		require.Len(t, found, 1, tt.says)
		require.Equal(t, Warn, found[0].Result)
		require.Equal(t, tt.name, found[0].Name)
		require.Contains(t, found[0].Says, tt.says)
		require.NotEmpty(t, found[0].Hint)
	}
	r := Reboot{Asked: Asked{Asked: true}, Swarm: true, Ready: 4}
	require.Contains(t, rebootCheck(&r).Says, "the swarm starts all 4 again")
}
