package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// What a cron job has begun is remembered as stretches of due times in a row, so
// that a clock that was ahead and is set right keeps nothing from running but what
// it began itself.

const mostStretches = 8 // of a cron job are told apart; more only come of a clock that jumps about

// begunTimes are the stretches of a row, those of an earlier release among them,
// which knew of the last due time alone.
func begunTimes(row ring.CronRow) []ring.Stretch {
	if len(row.Begun) == 0 && !row.Due.IsZero() {
		return []ring.Stretch{{First: row.Due, Last: row.Due}}
	}
	return row.Begun
}

// isBegun says that a run was begun for a due time.
func isBegun(row ring.CronRow, due time.Time) bool {
	return slices.ContainsFunc(begunTimes(row), func(s ring.Stretch) bool {
		return !due.Before(s.First) && !due.After(s.Last)
	})
}

// withBegun is what was begun, with one due time more: the stretch that it follows
// is longer by it. Where there are too many, the two that end first become one.
func withBegun(row ring.CronRow, due time.Time, x timetable) []ring.Stretch {
	out := slices.Clone(begunTimes(row))
	at := slices.IndexFunc(out, func(s ring.Stretch) bool { return x.next(s.Last).Equal(due) })
	if at < 0 {
		out, at = append(out, ring.Stretch{First: due}), len(out)
	}
	out[at].Last = due
	slices.SortFunc(out, func(a, b ring.Stretch) int { return a.Last.Compare(b.Last) })
	if len(out) > mostStretches {
		out[1].First = out[0].First
		out = out[1:]
	}
	return out
}

// nextDue is the first due time after a moment that no run was begun for.
func nextDue(row ring.CronRow, x timetable, after time.Time) time.Time {
	next := x.next(after)
	for _, s := range begunTimes(row) { // by their ends: after one there may be another
		if !next.IsZero() && !next.Before(s.First) && !next.After(s.Last) {
			next = x.next(s.Last)
		}
	}
	return next
}
