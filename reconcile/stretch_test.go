package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Whatever a clock shows, in whatever order: no due time begins twice, and what is
// remembered stays small.
func TestAClockThatJumpsAboutBeginsNoDueTimeTwice(t *testing.T) {
	hourly := timetableOf(&ring.Cron{Schedule: "0 * * * *", Timezone: "UTC"})
	day := time.Date(2026, 3, 1, 0, 30, 0, 0, time.UTC)
	var row ring.CronRow
	begun := map[time.Time]bool{}
	for i := range 400 {
		at := day.Add(time.Duration(i) * time.Hour)
		if i%7 == 3 {
			at = at.Add(time.Duration(i%5-2) * 31 * time.Hour)
		}
		due := nextDue(row, hourly, at)
		require.False(t, begun[due], "%s a second time", due)
		require.True(t, due.After(at))
		begun[due] = true
		row.Begun = withBegun(row, due, hourly)
		require.True(t, isBegun(row, due))
		require.LessOrEqual(t, len(row.Begun), mostStretches)
	}
}

// A row of an earlier release knows one due time.
func TestARowWithoutStretchesKnowsItsLastDueTime(t *testing.T) {
	hourly := timetableOf(&ring.Cron{Schedule: "0 * * * *", Timezone: "UTC"})
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	row := ring.CronRow{Due: noon}
	require.True(t, isBegun(row, noon))
	require.Equal(t, noon.Add(time.Hour), nextDue(row, hourly, noon.Add(-time.Minute)))
	require.Equal(t, noon.Add(-time.Hour), nextDue(row, hourly, noon.Add(-2*time.Hour)))
}
