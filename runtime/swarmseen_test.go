package runtime

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A task goes on to write until it ended, though its service is gone or it was told to stop.
func TestWhatStillStopsOnASwarmIsSeen(t *testing.T) {
	task := func(id, service, cluster string, state, desired swarm.TaskState) swarm.Task {
		return swarm.Task{
			ID: id, ServiceID: service, Slot: 1, NodeID: "n1", DesiredState: desired, Status: swarm.TaskStatus{State: state},
			Spec: swarm.TaskSpec{ContainerSpec: &swarm.ContainerSpec{
				Labels: map[string]string{labelHost: cluster, labelApp: "shop", labelService: "db", labelVersion: "v1", labelKind: "worker"},
				Mounts: []mount.Mount{
					{Type: mount.TypeVolume, Source: "shop_data", Target: "/data"},
					{Type: mount.TypeBind, Source: "/srv/x/", Target: "/x"},
					{Type: mount.TypeVolume, Source: "shop_conf", Target: "/conf", ReadOnly: true},
				},
			}},
		}
	}
	run := func(x swarm.Task) swarm.Task {
		x.Spec.ContainerSpec.Labels[labelKind] = "job"
		return x
	}
	web := swarm.Service{ID: "web", Spec: swarm.ServiceSpec{Annotations: swarm.Annotations{Name: "shop_web", Labels: map[string]string{labelHost: "prod", labelApp: "shop", labelService: "web"}}}}
	for _, tt := range []struct {
		name  string
		task  swarm.Task
		state ring.State // "" is not seen
		of    string
	}{
		{"it runs, and its service is gone", task("t", "gone", "prod", swarm.TaskStateRunning, swarm.TaskStateRemove), ring.StateRemoving, "db"},
		{"nobody told it to stop yet", task("t", "gone", "prod", swarm.TaskStateRunning, swarm.TaskStateRunning), ring.StateRemoving, "db"},
		{"its check has not passed", task("t", "gone", "prod", swarm.TaskStateStarting, swarm.TaskStateRemove), ring.StateRemoving, "db"},
		{"it ended", task("t", "gone", "prod", swarm.TaskStateShutdown, swarm.TaskStateRemove), "", ""},
		{"it never began", task("t", "gone", "prod", swarm.TaskStatePending, swarm.TaskStateRemove), "", ""},
		{"a run goes on that nobody stops", run(task("t", "gone", "prod", swarm.TaskStateRunning, swarm.TaskStateComplete)), ring.StateRemoving, "db"},
		{"a run may begin yet", run(task("t", "gone", "prod", swarm.TaskStatePreparing, swarm.TaskStateComplete)), ring.StateRemoving, "db"},
		{"a run ended", run(task("t", "gone", "prod", swarm.TaskStateComplete, swarm.TaskStateComplete)), "", ""},
		{"a task waits for good in the place of one that failed", run(task("t", "gone", "prod", swarm.TaskStateReady, swarm.TaskStateReady)), "", ""},
		{"it is of another cluster", task("t", "gone", "test", swarm.TaskStateRunning, swarm.TaskStateRemove), "", ""},
		{"its service is there, and has another one start", task("t", "web", "prod", swarm.TaskStateStarting, swarm.TaskStateShutdown), ring.StateRemoving, "web"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			web.Spec.TaskTemplate = tt.task.Spec
			all := swarmAnswers{services: []swarm.Service{web}, tasks: []swarm.Task{tt.task}, nodes: []swarm.Node{{ID: "n1", Description: swarm.NodeDescription{Hostname: "node-1"}}}}
			seen := all.seen("prod", time.Unix(1, 0))
			require.Equal(t, []string{"/srv/x", "volume shop_data"}, seen.Cluster.Services[0].Writes)
			if tt.state == "" {
				require.Empty(t, seen.Instances)
				return
			}
			require.Len(t, seen.Instances, 1)
			in := seen.Instances[0]
			require.Equal(t, tt.state, in.State)
			require.Equal(t, []string{"shop", tt.of, "v1", "node-1"}, []string{in.App, in.Service, string(in.Version), in.Node})
			require.Equal(t, []string{"/srv/x", "volume shop_data"}, in.Writes)
		})
	}
}
