package daemon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// docs/design/rollout.md#one-look: how long after the remote was reached a plan may take away.
func TestAPlanMayTakeAwayForTenPollsOrTwoTurnsOfACron(t *testing.T) {
	for _, c := range []struct {
		poll     string
		interval time.Duration
		want     time.Duration
	}{
		{"1s", time.Second, 5 * time.Minute},
		{"30s", 30 * time.Second, 5 * time.Minute},
		{"1m", time.Minute, 10 * time.Minute},
		{"1h", time.Hour, 10 * time.Hour},
		{"* * * * *", time.Minute, 5 * time.Minute},
		{"0 * * * *", time.Hour, 2 * time.Hour},
		{"0 3 * * *", 24 * time.Hour, 48 * time.Hour},
	} {
		require.Equal(t, c.want, freshFor(c.poll, c.interval), c.poll)
	}
}
