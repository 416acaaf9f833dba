package ring_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// One state has one word on every screen: that of the service is the app's and what inspect says.
func TestAnAppWhoseFailedVersionIsBackIsRestored(t *testing.T) {
	restored := ring.ServiceStatus{Phase: ring.PhaseReady, Rollout: &ring.RolloutStatus{Phase: ring.RolloutIsRestored}}
	ready, broken := ring.ServiceStatus{Phase: ring.PhaseReady}, ring.ServiceStatus{Phase: ring.PhaseDegraded}
	for _, tt := range []struct {
		health   string
		services []ring.ServiceStatus
		want     string
	}{
		{ring.Degraded, []ring.ServiceStatus{restored, ready}, ring.RolloutIsRestored},
		{ring.Degraded, []ring.ServiceStatus{restored, broken}, ring.Degraded},
		{ring.Degraded, []ring.ServiceStatus{ready}, ring.Degraded},
		{ring.Healthy, []ring.ServiceStatus{ready}, ring.Healthy},
	} {
		require.Equal(t, tt.want, ring.AppWord(&ring.AppStatus{Health: tt.health, Services: tt.services}))
	}
	e := ring.Explained{Phase: restored.Phase, Rollout: restored.Rollout}
	require.Equal(t, ring.ServiceWord(&restored), e.Word())
	held := ring.Explained{Phase: ring.PhaseHeld, Code: ring.WhyPausedByPerson}
	require.Equal(t, "Paused", held.Word())
}
