package reconcile

import (
	"math"
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

// isBegun reports whether a run was begun for a due time.
func isBegun(row ring.CronRow, due time.Time) bool {
	return slices.ContainsFunc(begunTimes(row), func(s ring.Stretch) bool {
		return !due.Before(s.First) && !due.After(s.Last)
	})
}

// withBegun is what was begun, with one due time more: the stretch that it follows
// is longer by it. Where there are too many, the two that are nearest to each other
// become one: what lies between them is left out, and years must never be.
func withBegun(row ring.CronRow, due time.Time, x timetable) []ring.Stretch {
	out := slices.Clone(begunTimes(row))
	at := slices.IndexFunc(out, func(s ring.Stretch) bool { return x.nextAfter(s.Last).Equal(due) })
	if at < 0 {
		out, at = append(out, ring.Stretch{First: due}), len(out)
	}
	out[at].Last = due
	slices.SortFunc(out, func(a, b ring.Stretch) int { return a.Last.Compare(b.Last) })
	if len(out) > mostStretches {
		near := nearestPair(out)
		out[near].Last = out[near+1].Last
		out = slices.Delete(out, near+1, near+2)
	}
	return out
}

// nearestPair is the first of two stretches in a row with the least between them.
func nearestPair(some []ring.Stretch) int {
	best, least := 0, time.Duration(math.MaxInt64)
	for i := range len(some) - 1 {
		if between := some[i+1].First.Sub(some[i].Last); between < least {
			best, least = i, between
		}
	}
	return best
}

// nextDue is the first due time after a moment that no run was begun for.
func nextDue(row ring.CronRow, x timetable, after time.Time) time.Time {
	next := x.nextAfter(after)
	for _, s := range begunTimes(row) { // by their ends: after one there may be another
		if !next.IsZero() && !next.Before(s.First) && !next.After(s.Last) {
			next = x.nextAfter(s.Last)
		}
	}
	return next
}
