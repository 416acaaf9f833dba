package ring_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What starts for the first time is not down for a moment; what should serve and does not is.
func TestWhatIsDown(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	lacks := func(d time.Duration) []ring.Condition {
		return []ring.Condition{{Type: ring.ConditionAvailable, Status: ring.ConditionFalse, Since: now.Add(-d)}}
	}
	failing := []ring.InstanceStatus{{State: ring.SlotStarting, Failing: true}}
	for name, tt := range map[string]struct {
		sv   ring.ServiceStatus
		down bool
	}{
		"starts":                     {ring.ServiceStatus{Kind: ring.Worker, Wanted: 1, Phase: ring.PhaseProgressing, Conditions: lacks(time.Second)}, false},
		"starts for long":            {ring.ServiceStatus{Kind: ring.Worker, Wanted: 1, Phase: ring.PhaseProgressing, Conditions: lacks(time.Minute)}, true},
		"a check of it fails":        {ring.ServiceStatus{Kind: ring.Worker, Wanted: 1, Phase: ring.PhaseProgressing, Instances: failing}, true},
		"the older version serves":   {ring.ServiceStatus{Kind: ring.Worker, Wanted: 2, Ready: 1, Phase: ring.PhaseProgressing, Instances: failing, Conditions: lacks(time.Minute)}, false},
		"degraded":                   {ring.ServiceStatus{Kind: ring.Worker, Wanted: 1, Phase: ring.PhaseDegraded}, true},
		"failed":                     {ring.ServiceStatus{Kind: ring.Worker, Wanted: 1, Phase: ring.PhaseFailed}, true},
		"held":                       {ring.ServiceStatus{Kind: ring.Worker, Wanted: 1, Phase: ring.PhaseHeld, Conditions: lacks(time.Minute)}, false},
		"waits for what it needs":    {ring.ServiceStatus{Kind: ring.Worker, Wanted: 1, Phase: ring.PhasePending, Conditions: lacks(time.Minute)}, false},
		"none is wanted":             {ring.ServiceStatus{Kind: ring.Worker, Phase: ring.PhaseProgressing, Conditions: lacks(time.Minute)}, false},
		"a job that failed":          {ring.ServiceStatus{Kind: ring.JobK, Wanted: 1, Phase: ring.PhaseFailed}, false},
		"nobody says since when":     {ring.ServiceStatus{Kind: ring.Worker, Wanted: 1, Phase: ring.PhaseProgressing, Conditions: []ring.Condition{{Type: ring.ConditionAvailable, Status: ring.ConditionFalse}}}, false},
		"something else is long off": {ring.ServiceStatus{Kind: ring.Worker, Wanted: 1, Phase: ring.PhaseProgressing, Conditions: []ring.Condition{{Type: ring.ConditionProgressing, Status: ring.ConditionTrue, Since: now.Add(-time.Hour)}}}, false},
	} {
		require.Equal(t, tt.down, ring.IsDown(&tt.sv, now), name)
	}
}
