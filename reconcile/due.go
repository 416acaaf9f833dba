package reconcile

import (
	"time"
	_ "time/tzdata" // for hosts without a zone file

	"github.com/robfig/cron/v3"

	"github.com/gitring/gitring/ring"
)

// timetable is when a cron job is due: its schedule, read in its zone.
type timetable struct {
	schedule cron.Schedule
	zone     *time.Location
	// atHours says that the hours are named. On a day that the clocks are set, such
	// a time may be missing or come twice; what is due in every hour has neither.
	atHours bool
}

// timetableOf reads what manifest has found to be sound. Where a plan of an
// earlier release is not, or the host has lost its zones, nothing is due.
func timetableOf(c *ring.Cron) timetable {
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return timetable{zone: time.UTC}
	}
	s, err := cron.ParseStandard(c.Schedule)
	if err != nil {
		return timetable{zone: time.UTC}
	}
	x := timetable{schedule: s, zone: zone}
	if spec, ok := s.(*cron.SpecSchedule); ok {
		const every = 1<<24 - 1
		x.atHours = spec.Hour&every != every
	}
	return x
}

// DueTimes are the times after one and before another at which a cron job is due, the first
// of them, at most as many as are asked for.
func DueTimes(c *ring.Cron, after, before time.Time, most int) (out []time.Time) {
	x := timetableOf(c)
	for at := x.nextAfter(after); !at.IsZero() && at.Before(before) && len(out) < most; at = x.nextAfter(at) {
		out = append(out, at)
	}
	return out
}

// mostSet is the most by which clocks are set.
const mostSet = 3 * time.Hour

// nextAfter is the first time after "after" that the schedule is due; zero is never.
// A time that the clocks skip is due when it would have come, had they not been
// set; of one that they show twice, only the first is.
func (x timetable) nextAfter(after time.Time) time.Time {
	if x.schedule == nil {
		return time.Time{}
	}
	after = after.In(x.zone)
	if !x.atHours {
		return atUTC(x.schedule.Next(after))
	}
	_, offset := after.Zone()
	since, until := after.ZoneBounds()
	n := x.schedule.Next(after.In(time.FixedZone("", offset)))
	if settled := since.IsZero() || after.Sub(since) > mostSet; settled && !n.IsZero() && (until.IsZero() || n.Before(until)) {
		return n.UTC() // no clock is set in between
	}
	return x.nextOnTheClock(timeShown(after).Add(-mostSet), after)
}

// nextOnTheClock goes through what the clocks show from a time on: what comes
// later there may have come earlier.
func (x timetable) nextOnTheClock(from, after time.Time) time.Time {
	var best time.Time
	for {
		from = x.schedule.Next(from)
		if from.IsZero() || !best.IsZero() && from.After(timeShown(best).Add(mostSet)) {
			return atUTC(best)
		}
		if at := x.firstShowing(from); at.After(after) && (best.IsZero() || at.Before(best)) {
			best = at.In(x.zone)
		}
	}
}

// timeShown is what the clocks show at a moment, as if it were UTC.
func timeShown(at time.Time) time.Time {
	_, offset := at.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// firstShowing is the first moment at which the clocks show what is given, or would
// have, had they not been set over it.
func (x timetable) firstShowing(show time.Time) time.Time {
	with := func(near time.Time) (at time.Time, so bool) {
		_, offset := near.In(x.zone).Zone()
		at = show.Add(-time.Duration(offset) * time.Second)
		return at, timeShown(at.In(x.zone)).Equal(show)
	}
	early, so := with(show.Add(-24 * time.Hour))
	late, then := with(show.Add(24 * time.Hour))
	switch {
	case so && then && late.Before(early), !so && then:
		return late
	}
	return early
}

// newestDue is the last of the due times from first on that is not after now and no
// older than window; zero when all are older.
func (x timetable) newestDue(first, now time.Time, window time.Duration) time.Time {
	due := first
	if oldest := now.Add(-window); due.Before(oldest) {
		due = x.nextAfter(oldest.Add(-time.Second))
	}
	if due.IsZero() || due.After(now) {
		return time.Time{}
	}
	for {
		n := x.nextAfter(due)
		if n.IsZero() || n.After(now) {
			return due
		}
		due = n
	}
}

func atUTC(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}
