package reconcile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A calendar that goes through every minute by itself: what the clock on a wall of
// the zone shows then, and what it never shows because it was set over it. It shares
// nothing with the code but the zones' tables.
type calendar struct {
	fields [5]map[int]bool // minute, hour, day, month, weekday
	either bool            // day and weekday are both named: one of them is enough
	hourly bool            // every hour is due: by the minutes that pass
	zone   *time.Location
}

func readCalendar(t *testing.T, schedule, zone string) calendar {
	t.Helper()
	c := calendar{}
	var err error
	c.zone, err = time.LoadLocation(zone)
	require.NoError(t, err)
	words := strings.Fields(schedule)
	require.Len(t, words, 5)
	for i, bounds := range [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}} {
		c.fields[i] = readField(t, words[i], bounds[0], bounds[1])
	}
	c.either = words[2] != "*" && words[4] != "*"
	c.hourly = len(c.fields[1]) == 24
	return c
}

func readField(t *testing.T, word string, low, high int) map[int]bool {
	t.Helper()
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n
	}
	out := map[int]bool{}
	for _, part := range strings.Split(word, ",") {
		span, step, stepped := strings.Cut(part, "/")
		first, last := low, high
		if span != "*" {
			from, to, ranged := strings.Cut(span, "-")
			first = number(from)
			if last = first; ranged {
				last = number(to)
			}
		}
		by := 1
		if stepped {
			by = number(step)
		}
		for n := first; n <= last; n += by {
			out[n] = true
		}
	}
	return out
}

// says whether the schedule has what a clock shows.
func (c calendar) says(show time.Time) bool {
	day, weekday := c.fields[2][show.Day()], c.fields[4][int(show.Weekday())]
	on := day && weekday
	if c.either {
		on = day || weekday
	}
	return on && c.fields[0][show.Minute()] && c.fields[1][show.Hour()] && c.fields[3][int(show.Month())]
}

// due are the due times from a moment up to another, minute by minute.
func (c calendar) due(from, to time.Time) []time.Time {
	out := map[time.Time]bool{}
	shownAt := map[time.Time]bool{} // minutes of the wall
	_, before := from.Add(-48 * time.Hour).In(c.zone).Zone()
	for at := from.Add(-48 * time.Hour); at.Before(to.Add(48 * time.Hour)); at = at.Add(time.Minute) {
		_, offset := at.In(c.zone).Zone()
		for over := time.Duration(before) * time.Second; over < time.Duration(offset)*time.Second && !c.hourly; over += time.Minute {
			if c.says(at.Add(over)) { // set over, at this moment
				out[at.Add(over-time.Duration(before)*time.Second)] = true
			}
		}
		before = offset
		show := at.Add(time.Duration(offset) * time.Second)
		if c.says(show) && (c.hourly || !shownAt[show]) {
			out[at] = true
		}
		shownAt[show] = true
	}
	var times []time.Time
	for at := range out {
		if at.After(from) && !at.After(to) {
			times = append(times, at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

var strangeDays = []struct{ zone, day string }{
	{"Europe/Berlin", "2026-03-29"},
	{"Europe/Berlin", "2026-10-25"},
	{"America/New_York", "2026-03-08"},
	{"America/New_York", "2026-11-01"},
	{"Australia/Lord_Howe", "2026-10-04"}, // half an hour
	{"Australia/Lord_Howe", "2026-04-05"},
	{"Asia/Kathmandu", "1985-12-31"},    // a quarter of one, once and for ever
	{"Pacific/Apia", "2011-12-30"},      // a day that never was
	{"Pacific/Kwajalein", "1993-08-21"}, // another, from -12 to +12
	{"America/Sao_Paulo", "2018-11-04"}, // at midnight
	{"America/Sao_Paulo", "2018-02-18"}, // back into the day before
	{"America/Goose_Bay", "2010-03-14"}, // one minute after midnight
	{"America/Goose_Bay", "2010-11-07"}, // and back into the day before
	{"Antarctica/Troll", "2026-03-29"},  // two hours
	{"Antarctica/Troll", "2026-10-25"},
	{"Antarctica/Casey", "2010-03-05"}, // three back
	{"Antarctica/Casey", "2009-10-18"},
	{"America/Caracas", "2007-12-09"}, // half an hour back, and later forth
	{"America/Caracas", "2016-05-01"},
	{"Africa/Casablanca", "2026-02-15"}, // back for Ramadan
	{"Africa/Casablanca", "2026-03-22"},
	{"Africa/Cairo", "2014-05-15"},
	{"Asia/Pyongyang", "2018-05-05"},
	{"Asia/Gaza", "2015-10-24"},
	{"Europe/Dublin", "2026-10-25"},
	{"Asia/Tokyo", "2026-10-25"},
}

// Around every kind of day on which clocks were set, each schedule is due exactly
// when a calendar says that is read minute by minute.
func TestACronJobIsDueWhenACalendarSaysSoMinuteByMinute(t *testing.T) {
	schedules := []string{
		"30 2 * * *", "0 0 * * *", "0,30 * * * *", "*/20 0-3 * * *", "59 23 * * *", "15 1,2,3 * * *", "5 */2 * * *", "45 2 * * 0",
		"0 0 30 * 1-5", "7 1 * * *", "*/7 23,0,1 * * *", "0 4 1 * *", "30 1-23 * * 6,0",
	}
	luck := rand.New(rand.NewPCG(1, 2))
	for _, strange := range strangeDays {
		for _, schedule := range schedules {
			t.Run(fmt.Sprintf("%s %s %s", strange.zone, strange.day, schedule), func(t *testing.T) {
				c := readCalendar(t, schedule, strange.zone)
				x := timetableOf(&ring.Cron{Schedule: schedule, Timezone: strange.zone})
				from := moment(t, strange.day+"T00:00:00Z").Add(-40 * time.Hour)
				want := c.due(from, from.Add(90*time.Hour))
				at := from
				for _, due := range want {
					got := x.nextAfter(at)
					require.Equal(t, due, got, "after %s", at.In(c.zone))
					at = got
				}
				for range 40 {
					at := from.Add(time.Duration(luck.Int64N(int64(90 * time.Hour))))
					i := slices.IndexFunc(want, func(due time.Time) bool { return due.After(at) })
					if i >= 0 {
						require.Equal(t, want[i], x.nextAfter(at), "after %s", at.In(c.zone))
					}
				}
			})
		}
	}
}
