package ring_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestAWindowIsOpenWhenTheClockOfTheHostSaysSo(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	at := func(s string) time.Time {
		out, err := time.ParseInLocation("2006-01-02 15:04", s, berlin)
		require.NoError(t, err)
		return out
	}
	for _, x := range []struct{ name, window, at, since, next string }{
		{"inside", "Sat 02:00-05:00", "2026-11-28 03:00", "2026-11-28 02:00", "2026-12-05 02:00"},
		{"as it opens", "Sat 02:00-05:00", "2026-11-28 02:00", "2026-11-28 02:00", "2026-12-05 02:00"},
		{"as it closes", "Sat 02:00-05:00", "2026-11-28 05:00", "", "2026-12-05 02:00"},
		{"another day", "Sat 02:00-05:00", "2026-11-27 03:00", "", "2026-11-28 02:00"},
		{"every day", "02:00-05:00", "2026-11-27 04:59", "2026-11-27 02:00", "2026-11-28 02:00"},
		{"past midnight, on the day after", "Fri 22:00-04:00", "2026-11-28 03:59", "2026-11-27 22:00", "2026-12-04 22:00"},
		{"past midnight, the day does not open it", "Sat 22:00-04:00", "2026-11-28 03:00", "", "2026-11-28 22:00"},
		{"a range over the end of the week", "Sat-Mon 01:00-02:00", "2026-11-30 01:30", "2026-11-30 01:00", "2026-12-05 01:00"},
		{"a list", "mon,WED 01:00-02:00", "2026-11-25 01:30", "2026-11-25 01:00", "2026-11-30 01:00"},
		{"to the end of the day", "Fri 23:00-24:00", "2026-11-27 23:59", "2026-11-27 23:00", "2026-12-04 23:00"},
		{"the hour that spring leaves out", "Sun 02:00-03:00", "2026-03-29 03:30", "", "2026-04-05 02:00"},
		{"the hour that autumn has twice", "Sun 02:00-03:30", "2026-10-25 03:15", "2026-10-25 02:00", "2026-11-01 02:00"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, err := ring.ParseWindow(x.window)
			require.NoError(t, err)
			since, open := w.At(at(x.at))
			require.Equal(t, x.since != "", open)
			if open {
				require.Equal(t, at(x.since), since)
			}
			require.Equal(t, at(x.next), w.Next(at(x.at)))
		})
	}
	for _, wrong := range []string{"", "Sat", "Sat 02:00", "Sat 2-5", "Sat 05:00-05:00", "Sat 24:00-05:00", "Sat 02:00-25:00", "Sat 02:60-05:00", "Sam 02:00-05:00", "Sat 02:00-05:00 UTC", "Sat,, 02:00-05:00", "Sat -1:00-05:00"} {
		_, err := ring.ParseWindow(wrong)
		require.Error(t, err, wrong)
	}
}
