package ring

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// LeastUpdates is the shortest time between two questions about one tag.
const LeastUpdates = time.Hour

// Updates says that the tag of a service's image is followed by the clock.
type Updates struct {
	Word string `json:"word"` // of pull_policy, as written
	// Every is how long after the last question the registry is asked again, LeastUpdates or more.
	Every time.Duration `json:"every"`
	// MinAge is how long this host has to see a tag at a new digest before that is followed. What
	// the host's policy says counts where it is longer.
	MinAge time.Duration `json:"min_age,omitempty"`
	// Window is when a new digest may come, as ParseWindow reads it; "" is at any time.
	Window string `json:"window,omitempty"`
}

// Window is a time of the week, by the clock of the host.
type Window struct {
	days     [7]bool // on which it opens
	from, to int     // minutes of the day; to at or before from is on the day after
}

var weekdays = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// ParseWindow reads "02:00-05:00", "Sat 02:00-05:00", "Mon-Fri 22:00-04:00" or "Sat,Sun 02:00-05:00".
func ParseWindow(s string) (Window, error) {
	var w Window
	parts := strings.Fields(s)
	if len(parts) == 1 {
		parts = []string{"Sun-Sat", parts[0]}
	}
	if len(parts) != 2 {
		return w, fmt.Errorf("cannot read window %q", s)
	}
	for _, span := range strings.Split(parts[0], ",") {
		first, last, ranged := strings.Cut(span, "-")
		if !ranged {
			last = first
		}
		from, to := weekdayOf(first), weekdayOf(last)
		if from < 0 || to < 0 {
			return w, fmt.Errorf("cannot read the days of window %q", s)
		}
		for day := from; ; day = (day + 1) % 7 {
			w.days[day] = true
			if day == to {
				break
			}
		}
	}
	from, to, _ := strings.Cut(parts[1], "-")
	var errFrom, errTo error
	w.from, errFrom = minuteOf(from)
	w.to, errTo = minuteOf(to)
	if errFrom != nil || errTo != nil || w.from == 24*60 || w.from == w.to {
		return w, fmt.Errorf("cannot read the hours of window %q", s)
	}
	return w, nil
}

func weekdayOf(s string) int {
	for i, name := range weekdays {
		if strings.EqualFold(s, name) {
			return i
		}
	}
	return -1
}

// minuteOf reads "05:30"; "24:00" is the end of a day.
func minuteOf(s string) (int, error) {
	h, m, ok := strings.Cut(s, ":")
	hour, errHour := strconv.ParseUint(h, 10, 8)
	minute, errMinute := strconv.ParseUint(m, 10, 8)
	if !ok || len(m) != 2 || len(h) > 2 || errHour != nil || errMinute != nil || minute > 59 || hour > 24 || hour == 24 && minute > 0 {
		return 0, fmt.Errorf("cannot read %q as a time of the day", s)
	}
	return int(hour*60 + minute), nil
}

// on is when the window of a day opens and closes; open is false where it does not open that
// day. An hour that the clock leaves out, or shows twice, makes it shorter or longer.
func (w Window) on(y int, m time.Month, d int, zone *time.Location) (opens, closes time.Time, open bool) {
	opens = time.Date(y, m, d, 0, w.from, 0, 0, zone)
	if day := time.Date(y, m, d, 12, 0, 0, 0, zone); !w.days[day.Weekday()] {
		return opens, opens, false
	}
	if w.to <= w.from {
		d++
	}
	return opens, time.Date(y, m, d, 0, w.to, 0, 0, zone), true
}

// At is when the window that is open at a time opened; open is false outside. The location of
// the time is the one whose clock counts.
func (w Window) At(at time.Time) (opened time.Time, open bool) {
	y, m, d := at.Date()
	for _, day := range []int{d, d - 1} {
		if opens, closes, ok := w.on(y, m, day, at.Location()); ok && !at.Before(opens) && at.Before(closes) {
			return opens, true
		}
	}
	return time.Time{}, false
}

// Next is when the window opens the next time after a time.
func (w Window) Next(at time.Time) time.Time {
	y, m, d := at.Date()
	for day := d; day <= d+8; day++ {
		if opens, closes, ok := w.on(y, m, day, at.Location()); ok && opens.After(at) && closes.After(opens) {
			return opens
		}
	}
	return time.Time{}
}
