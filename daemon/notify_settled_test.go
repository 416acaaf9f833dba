package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestACommitHasSettledWhenNothingOfItIsUnderWay(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(src *ring.SourceStatus)
		want   bool
	}{
		"it is in force":                     {func(*ring.SourceStatus) {}, true},
		"a service of it is degraded":        {func(src *ring.SourceStatus) { src.Sync = ring.SyncDegraded }, true},
		"it is held":                         {func(src *ring.SourceStatus) { src.Sync = ring.SyncHeld }, false},
		"another commit is in force":         {func(src *ring.SourceStatus) { src.Commit = "c0" }, false},
		"it is to come":                      {func(src *ring.SourceStatus) { src.Next = &ring.Next{Commit: "c1"} }, false},
		"a rollout runs":                     {rolling(ring.RolloutProgressing), false},
		"the version before is brought back": {rolling(ring.RolloutRestoring), false},
		"it was brought back":                {rolling(ring.RolloutIsRestored), true},
		"a rollout waits for a person":       {rolling(ring.RolloutPaused), true},
	} {
		st := ring.Status{Sources: []ring.SourceStatus{{Name: "other", Commit: "c1"}, {
			Name: "prod", Commit: "c1", Sync: ring.SyncSynced, Apps: []ring.AppStatus{{Services: []ring.ServiceStatus{{}, {}}}},
		}}}
		tt.change(&st.Sources[1])
		require.Equal(t, tt.want, hasSettled(&st, "prod", "c1"), name)
		require.False(t, hasSettled(&st, "none", "c1"), name)
	}
}

func rolling(phase string) func(src *ring.SourceStatus) {
	return func(src *ring.SourceStatus) {
		src.Sync = ring.SyncDegraded
		src.Apps[0].Services[1].Rollout = &ring.RolloutStatus{Phase: phase}
	}
}
