package ring

import "testing"

func TestWhichNodesTakeAServiceOnEachNode(t *testing.T) {
	node := func() Node {
		return Node{
			ID: "id1", Name: "node-1", Manager: true, State: "ready", Availability: "active", OS: "linux", Arch: "x86_64", Addr: "10.1.2.3",
			Labels: map[string]string{"Disk": "ssd"}, EngineLabels: map[string]string{"rack": "7"},
		}
	}
	for _, tt := range []struct {
		constraint string
		takes      bool
	}{
		{"node.id==id1", true},
		{"node.id==ID1", true},
		{"node.id != id1", false},
		{"node.id==id2", false},
		{"node.hostname == NODE-1", true},
		{"NODE.HOSTNAME==node-1", true},
		{"node.hostname!=node-2", true},
		{"node.hostname==node-2", false},
		{"node.role==manager", true},
		{"node.role==worker", false},
		{"node.role != worker", true},
		{"node.platform.os==linux", true},
		{"node.platform.arch==x86_64", true},
		{"node.platform.arch==amd64", false},
		{"node.ip==10.1.2.3", true},
		{"node.ip==10.1.0.0/16", true},
		{"node.ip!=10.1.0.0/16", false},
		{"node.ip==10.2.0.0/16", false},
		{"node.ip!=10.1.2.3", false},
		{"node.ip!=10.1.2.4", true},
		{"node.ip==nonsense", false},
		{"node.ip!=nonsense", false},
		{"node.labels.Disk==SSD", true},
		{"node.labels.disk==ssd", false},
		{"node.labels.Disk!=hdd", true},
		{"node.labels.none!=x", true},
		{"node.labels.==x", false},
		{"engine.labels.rack==7", true},
		{"engine.labels.rack==8", false},
		{"node.colour==red", false},
		{"node.colour!=red", false},
		{"node.id", false},
	} {
		n := node()
		if got := n.Takes(&Spec{Cluster: &ClusterSpec{Global: true, Constraints: []string{tt.constraint}}}); got != tt.takes {
			t.Errorf("%s: %v", tt.constraint, got)
		}
	}
	for name, change := range map[string]func(*Node, *Spec){
		"down":             func(n *Node, _ *Spec) { n.State = "down" },
		"drained":          func(n *Node, _ *Spec) { n.Availability = "drain" },
		"paused":           func(n *Node, _ *Spec) { n.Availability = "pause" },
		"another platform": func(_ *Node, s *Spec) { s.Platform = "linux/arm64" },
		"another system":   func(_ *Node, s *Spec) { s.Platform = "windows" },
		"one of two":       func(_ *Node, s *Spec) { s.Cluster.Constraints = []string{"node.id==id1", "node.role==worker"} },
	} {
		n, s := node(), &Spec{Cluster: &ClusterSpec{Global: true}}
		if !n.Takes(s) {
			t.Fatal("nothing is against it")
		}
		if change(&n, s); n.Takes(s) {
			t.Errorf("%s takes it", name)
		}
	}
	n := node()
	if !n.Takes(&Spec{Platform: "linux/amd64", Cluster: &ClusterSpec{}}) {
		t.Error("amd64 is what the kernel calls x86_64")
	}
}
