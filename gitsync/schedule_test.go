package gitsync

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPollIsADurationOrACronExpressionInUTC(t *testing.T) {
	from := time.Date(2026, 11, 1, 12, 34, 56, 0, time.FixedZone("far east", 9*3600))
	for _, tt := range []struct {
		name, poll string
		next       time.Time
		interval   time.Duration
	}{
		{"five fields", "30 4 * * *", time.Date(2026, 11, 1, 4, 30, 0, 0, time.UTC), 24 * time.Hour},
		{"every five minutes", "*/5 * * * *", time.Date(2026, 11, 1, 3, 35, 0, 0, time.UTC), 5 * time.Minute},
		{"a name", "@hourly", time.Date(2026, 11, 1, 4, 0, 0, 0, time.UTC), time.Hour},
		{"leap days only", "0 0 29 2 *", time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC), 4*366*24*time.Hour - 3*24*time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parseSchedule(tt.poll)
			require.NoError(t, err)
			require.Equal(t, tt.next, s.next(from).UTC())
			require.Equal(t, tt.interval, s.interval(from))
		})
	}
}

func TestADurationIsSpreadByATenthAndNoMore(t *testing.T) {
	s, err := parseSchedule("10s")
	require.NoError(t, err)
	now := time.Now()
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := s.next(now).Sub(now)
		low, high = min(low, d), max(high, d)
	}
	require.GreaterOrEqual(t, low, 9*time.Second)
	require.LessOrEqual(t, high, 11*time.Second)
	require.Greater(t, high-low, time.Second)
	require.Equal(t, 10*time.Second, s.interval(now))
	s, err = parseSchedule("")
	require.NoError(t, err)
	require.Equal(t, time.Minute, s.interval(now))
}

func TestAPollThatCannotBeIsRefused(t *testing.T) {
	for _, poll := range []string{
		"999ms", "0s", "-5m", "sometimes", "TZ=UTC", "TZ=", "CRON_TZ=UTC", "CRON_TZ=Europe/Berlin 0 3 * * *", "TZ=UTC 0 3 * * *",
		"@every 5s", "@every -5m", "@reboot", "0 0 30 2 *", "0 0 31 4 *", "* * * *", "* * * * * *", "60 * * * *", "0 0 * * 7", "\x00",
	} {
		_, err := parseSchedule(poll)
		require.ErrorContains(t, err, "cannot poll", poll)
	}
}
