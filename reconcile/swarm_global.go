package reconcile

import "github.com/gitring/gitring/ring"

// A service with one instance on each node has as many as there are nodes that take it now. A
// node that joins or leaves changes that count and nothing else: no version, and no setting.

// onNodes is a service with the count of its nodes, where it runs on each.
func (t *Pass) onNodes(s *ring.Service) *ring.Service {
	if !t.onCluster() || !s.Spec.OnEachNode() {
		return s
	}
	n := 0
	for i := range t.Seen.Cluster.Nodes {
		if t.Seen.Cluster.Nodes[i].Takes(&s.Spec) {
			n++
		}
	}
	out := *s
	out.Replicas = n
	return &out
}

// noNodeSays is why a service that runs on each node runs on none; "" where one takes it.
func (t *Pass) noNodeSays(v *service) string {
	if !t.onCluster() || !v.target.Spec.OnEachNode() || v.target.Replicas > 0 {
		return ""
	}
	return "no node of the swarm is ready and meets its constraints"
}

// isElsewhere reports whether an instance of a service that runs on each node is not where one is
// wanted: its node was drained or paused, or does not meet the constraints.
func (t *Pass) isElsewhere(v *service, in *instance) bool {
	if !v.target.Spec.OnEachNode() {
		return false
	}
	for i := range t.Seen.Cluster.Nodes {
		if n := &t.Seen.Cluster.Nodes[i]; n.Name == in.Node && n.Takes(&v.target.Spec) {
			return false
		}
	}
	return true
}
