package ring_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// The default of every knob of a rollout, written out.
func TestTheKnobsHaveTheirDefaults(t *testing.T) {
	k := ring.DefaultRollout()
	require.Equal(t, ring.Rolling, k.Strategy)
	require.Equal(t, ring.Count{N: 1}, k.MaxSurge)
	require.Equal(t, ring.Count{N: 0}, k.MaxUnavailable)
	require.Equal(t, 1, k.MaxParallel)
	require.Equal(t, 10*time.Second, k.MinReadyTime)
	require.Equal(t, 120*time.Second, k.StartTimeout)
	require.Equal(t, 10*time.Minute, k.ProgressDeadline)
	require.Equal(t, 10*time.Minute, k.PullTimeout)
	require.Equal(t, 2, k.FailureThreshold)
	require.EqualValues(t, "restore", k.OnFailure)
	require.Zero(t, k.DrainDelay)
	require.Zero(t, k.Bake)
	require.Zero(t, k.WarmFor)
	require.Equal(t, 10*time.Second, (&ring.Service{}).Grace())
}
