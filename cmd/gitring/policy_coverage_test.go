package main

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/volume"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/runtime"
)

// A field that a newer engine library brings has no rule: until somebody
// decides about it, a plan that sets it is refused and this test is red.
func TestEveryFieldThatIsSentToTheEngineHasARule(t *testing.T) {
	unruled, idle := policy.Uncovered(
		runtime.ContainerRequest{}, runtime.NetworkRequest{}, runtime.VolumeRequest{}, runtime.ServiceRequest{}, swarm.ServiceSpec{},
		container.Config{}, container.HostConfig{}, container.ExecOptions{},
		network.NetworkingConfig{}, network.EndpointSettings{}, network.CreateOptions{}, volume.CreateOptions{},
	)
	require.Empty(t, unruled, "decide about these in policy/table.go")
	require.Empty(t, idle, "these rules are of no field")
}
