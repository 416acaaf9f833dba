package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// The tables below are read off a calendar by hand. Europe/Berlin: on 2026-03-29
// the clocks went from 02:00 +0100 to 03:00 +0200, on 2026-10-25 from 03:00
// +0200 back to 02:00 +0100.
func TestACronJobIsDueAtTheTimesOfACalendar(t *testing.T) {
	for _, tt := range []struct {
		name, schedule, zone string
		after                string
		due                  []string
	}{
		{
			"an ordinary night", "30 2 * * *", "Europe/Berlin", "2026-01-10T12:00:00+01:00",
			[]string{"2026-01-11T02:30:00+01:00", "2026-01-12T02:30:00+01:00"},
		},
		{
			"a time that the clocks skip comes when it would have come", "30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00+01:00",
			[]string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		{
			"the first skipped time is due at the moment of the change", "0 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"},
		},
		{
			"a skipped time that falls on another due one is one", "30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00", "2026-03-30T03:30:00+02:00"},
		},
		{
			"a time that is shown twice is due once", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		{
			"asked between the two it is the next day's", "30 2 * * *", "Europe/Berlin", "2026-10-25T02:45:00+02:00",
			[]string{"2026-10-26T02:30:00+01:00"},
		},
		{
			"a range of hours has each of them once", "30 1-3 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00",
			[]string{"2026-10-25T01:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T03:30:00+01:00", "2026-10-26T01:30:00+01:00"},
		},
		{
			"what is due in every hour goes by the hours that pass, forward", "0,30 * * * *", "Europe/Berlin", "2026-03-29T01:15:00+01:00",
			[]string{"2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"},
		},
		{
			"and back", "0,30 * * * *", "Europe/Berlin", "2026-10-25T02:15:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00"},
		},
		{
			"several times in the skipped hour", "*/20 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T03:20:00+02:00", "2026-03-29T03:40:00+02:00", "2026-03-30T02:00:00+02:00"},
		},
		{
			"only on the Sunday of the change", "30 2 29 3 *", "Europe/Berlin", "2026-01-01T00:00:00Z",
			[]string{"2026-03-29T03:30:00+02:00", "2027-03-29T02:30:00+02:00"},
		},
		{
			"UTC has none of it", "30 2 * * *", "UTC", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T02:30:00Z", "2026-03-30T02:30:00Z"},
		},
		{
			"half an hour is set on Lord Howe", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:45:00+11:00", "2026-10-05T02:15:00+11:00"},
		},
		{
			"a word for midnight", "@daily", "Europe/Berlin", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		},
		{
			"the first of the month", "0 3 1 * *", "Europe/Berlin", "2026-03-02T00:00:00+01:00",
			[]string{"2026-04-01T03:00:00+02:00", "2026-05-01T03:00:00+02:00"},
		},
		{
			"every so often is by time alone", "@every 90m", "Europe/Berlin", "2026-03-29T01:00:00+01:00",
			[]string{"2026-03-29T03:30:00+02:00", "2026-03-29T05:00:00+02:00"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := timetableOf(&ring.Cron{Schedule: tt.schedule, Timezone: tt.zone})
			at := moment(t, tt.after)
			for _, want := range tt.due {
				at = x.nextAfter(at)
				require.Equal(t, moment(t, want).UTC(), at, "want %s", want)
			}
		})
	}
}

// A day of 23 hours and one of 25 have each named hour of the clock once, and
// between two runs at one time of the day there are never more than 25 hours.
func TestNoDayOfTheYearIsLeftOutAndNoneHasTwo(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"} {
		for _, schedule := range []string{"30 2 * * *", "0 0 * * *", "59 23 * * *", "15 3 * * *"} {
			x := timetableOf(&ring.Cron{Schedule: schedule, Timezone: zone})
			at := x.nextAfter(moment(t, "2015-01-01T12:00:00Z"))
			for range 5 * 365 {
				n := x.nextAfter(at)
				gap := n.Sub(at)
				require.True(t, gap >= 22*time.Hour && gap <= 26*time.Hour, "%s %s: from %s to %s", zone, schedule, at, n)
				at = n
			}
		}
	}
}

func TestTheNewestOfWhatWasMissedIsFound(t *testing.T) {
	hourly := timetableOf(&ring.Cron{Schedule: "0 * * * *", Timezone: "UTC"})
	first, now := moment(t, "2026-01-01T01:00:00Z"), moment(t, "2026-01-01T07:20:00Z")
	require.Equal(t, moment(t, "2026-01-01T07:00:00Z"), hourly.newestDue(first, now, time.Hour))
	require.Equal(t, moment(t, "2026-01-01T07:00:00Z"), hourly.newestDue(first, now, 20*time.Minute))
	require.Zero(t, hourly.newestDue(first, now, 19*time.Minute))
	require.Equal(t, first, hourly.newestDue(first, first, time.Minute))
	require.Zero(t, hourly.newestDue(first, first.Add(-time.Second), time.Hour))
	daily := timetableOf(&ring.Cron{Schedule: "0 3 * * *", Timezone: "UTC"})
	require.Zero(t, daily.newestDue(moment(t, "2025-12-20T03:00:00Z"), now, 2*time.Hour))
	minutely := timetableOf(&ring.Cron{Schedule: "* * * * *", Timezone: "UTC"})
	require.Equal(t, moment(t, "2026-01-01T07:20:00Z"), minutely.newestDue(moment(t, "2020-01-01T00:00:00Z"), now, 7*24*time.Hour))
}

func moment(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	require.NoError(t, err)
	return at
}
