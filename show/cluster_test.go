package show

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

func TestNodesOfASwarmStandInOneLine(t *testing.T) {
	node := func(name, state string, tasks int) ring.NodeStatus {
		return ring.NodeStatus{Name: name, State: state, Tasks: tasks}
	}
	for _, tt := range []struct {
		want string
		of   *ring.ClusterStatus
	}{
		{"", nil},
		{"swarm prod: ready node-1 (2), node-2 (0)\n", &ring.ClusterStatus{Name: "prod", State: ring.ClusterQuorum, Nodes: []ring.NodeStatus{node("node-1", "ready", 2), node("node-2", "ready", 0)}}},
		{"swarm prod: ready node-3 (1); down node-1 (0); drained node-2 (0)\n", &ring.ClusterStatus{Name: "prod", State: ring.ClusterQuorum, Nodes: []ring.NodeStatus{node("node-1", "down", 0), node("node-2", "drained", 0), node("node-3", "ready", 1)}}},
		{"swarm prod: ready 6 nodes (6)\n", &ring.ClusterStatus{Name: "prod", State: ring.ClusterQuorum, Nodes: []ring.NodeStatus{
			node("a", "ready", 1), node("b", "ready", 1), node("c", "ready", 1), node("d", "ready", 1), node("e", "ready", 1), node("f", "ready", 1),
		}}},
		{"swarm prod: manager node-2 acts; this one follows, and takes over 45s after that one is gone\nswarm prod: ready node-1 (2)\n", &ring.ClusterStatus{Name: "prod", State: ring.ClusterQuorum, Acts: "node-2", Nodes: []ring.NodeStatus{node("node-1", "ready", 2)}}},
		{"swarm prod: no quorum; nothing is decided, and what runs goes on\n", &ring.ClusterStatus{Name: "prod", State: ring.ClusterNoQuorum}},
	} {
		s := &screen.Screen{}
		showCluster(s, tt.of)
		require.Equal(t, tt.want, s.String())
	}
}
