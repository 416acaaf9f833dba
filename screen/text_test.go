package screen

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALogLineKeepsItsColoursOnly(t *testing.T) {
	require.Equal(t, "plain", CleanLogLine("plain"))
	require.Equal(t, "\x1b[31mred\x1b[0m\x1b[0m", CleanLogLine("\x1b[31mred\x1b[0m"))
	require.Equal(t, "[2J[Hgone", CleanLogLine("\x1b[2J\x1b[Hgone"))
	require.Equal(t, "]8;;http://x\\link \x1b[1;32mok\x1b[0m", CleanLogLine("\x1b]8;;http://x\x1b\\link\t\x1b[1;32mok"), "a colour left on ends with its line")
}

func TestAnAgeHasOneUnit(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		-time.Hour: "just now", 0: "just now", time.Second: "1s ago", 1500 * time.Millisecond: "1s ago", 119 * time.Second: "119s ago",
		2 * time.Minute: "2m ago", 119 * time.Minute: "119m ago", 2 * time.Hour: "2h ago",
		47 * time.Hour: "47h ago", 48 * time.Hour: "2d ago", 2400 * time.Hour: "100d ago",
	} {
		require.Equal(t, want, Age(now.Add(-ago), now), ago)
	}
	require.Equal(t, "", Stamp(time.Time{}))
	require.Equal(t, "2026-11-21 11:00:00", Stamp(now.In(time.FixedZone("", 3600)).Add(-time.Hour)))
}

// What runs since a moment has a time, not a word of how long ago that was.
func TestElapsedIsATime(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{-time.Hour: "0s", 0: "0s", 1500 * time.Millisecond: "1s", 3 * time.Minute: "3m", 3 * time.Hour: "3h", 72 * time.Hour: "3d"} {
		require.Equal(t, want, Elapsed(now.Add(-d), now))
	}
}
