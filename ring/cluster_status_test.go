package ring

import (
	"reflect"
	"testing"
)

func TestNodesAreShownWithTheirTasks(t *testing.T) {
	if ClusterStatusOf("prod", &Seen{}) != nil {
		t.Error("one engine has no nodes")
	}
	seen := Seen{
		Cluster: &Cluster{Nodes: []Node{
			{Name: "node-1", Manager: true, State: "ready", Availability: "active"},
			{Name: "node-2", State: "ready", Availability: "drain"},
			{Name: "node-3", State: "ready", Availability: "pause"},
			{Name: "node-4", State: "down", Availability: "drain"},
		}},
		Instances: []Instance{
			{Node: "node-1", State: StateRunning},
			{Node: "node-1", State: StateRunning},
			{Node: "node-1", State: StateExited},
			{Node: "node-2", State: StateRunning},
			{State: StateCreated},
		},
	}
	want := &ClusterStatus{Name: "prod", State: ClusterQuorum, Nodes: []NodeStatus{
		{Name: "node-1", Manager: true, State: "ready", Tasks: 2},
		{Name: "node-2", State: "drained", Tasks: 1},
		{Name: "node-3", State: "paused"},
		{Name: "node-4", State: "down"},
	}}
	if got := ClusterStatusOf("prod", &seen); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, not %+v", got, want)
	}
}
