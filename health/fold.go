package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// Step adds one result of check c to its streak. The caller has filled
// Instance, Check and Started. Since is the first success after the last
// failure, also where that failure was too short to change the verdict; while
// the streak passes it never moves back, whatever the clock does.
func Step(s ring.Streak, c ring.Check, ok bool, says string, now time.Time) ring.Streak {
	failures, successes := thresholds(c)
	fresh := s.Count == 0 // its first answer
	if s.Last != ok {
		s.Count = 0
	}
	first := s.Count == 0 && !(fresh && s.Passing) // a green verdict that was taken over goes on
	s.Count++
	s.Last, s.Says, s.At = ok, says, now
	if ok {
		s.Says = ""
		if first {
			s.Since = later(s.Since, now, s.Passing)
		}
		s.Passing = s.Passing || s.Count >= successes
		return s
	}
	if s.Passing {
		s.Since = later(s.Since, now, true)
		s.Passing = s.Count < failures
	}
	return s
}

// later is now, or the old time where that would be a step back that keep forbids.
func later(old, now time.Time, keep bool) time.Time {
	if keep && now.Before(old) {
		return old
	}
	return now
}

// thresholds are the equal results in a row that change a verdict. The engine
// has already counted for its own check.
func thresholds(c ring.Check) (failures, successes int) {
	if c.Docker {
		return 1, 1
	}
	return max(c.Failures, 1), max(c.Successes, 1)
}

// Fold makes one verdict of the streaks of an instance, by check name. The
// order of checks means nothing. A check without a streak has no answer yet.
// min_ready_time is not applied. Without any startup or readiness check the
// result is not ready and has no reason: then the caller has to infer.
func Fold(checks []ring.Check, streaks map[string]ring.Streak) ring.Health {
	var h ring.Health
	started := true
	gates := 0
	for _, c := range ordered(checks) {
		s := streaks[c.Name]
		if !c.For.Gates() {
			continue
		}
		gates++
		if !s.Passing {
			started = started && c.For != ring.Startup
			h.Reason, h.Failing = cmp.Or(h.Reason, reason(c, s)), h.Failing || failing(c, s)
			continue
		}
		if since := steadySince(c, s); since.After(h.Since) {
			h.Since = since
		}
	}
	h.Ready = gates > 0 && h.Reason == ""
	if !h.Ready {
		h.Since = time.Time{}
	}
	if started {
		foldLiveness(&h, checks, streaks)
	}
	if h.Ready {
		foldCanary(&h, checks, streaks)
	}
	return h
}

// foldCanary adds what the checks of a canary say. They decide nothing else.
func foldCanary(h *ring.Health, checks []ring.Check, streaks map[string]ring.Streak) {
	for _, c := range ordered(checks) {
		if s := streaks[c.Name]; c.For == ring.OfCanary && h.Canary == "" && failing(c, s) {
			h.Canary = reason(c, s)
		}
	}
}

// foldLiveness adds what the liveness checks say. Only an instance whose
// startup checks passed comes here: before, none of them may act.
func foldLiveness(h *ring.Health, checks []ring.Check, streaks map[string]ring.Streak) {
	alert := ""
	for _, c := range ordered(checks) {
		s := streaks[c.Name]
		if c.For != ring.Liveness || !failing(c, s) {
			continue
		}
		if c.OnFailure == "alert" {
			alert = cmp.Or(alert, reason(c, s))
			continue
		}
		if !h.Unlive {
			h.Unlive, h.Act, h.Reason = true, cmp.Or(c.OnFailure, "restart"), reason(c, s)
		}
	}
	h.Reason = cmp.Or(h.Reason, alert)
}

// failing reports whether a check failed as often in a row as its threshold asks.
// No answer is no failure.
func failing(c ring.Check, s ring.Streak) bool {
	failures, _ := thresholds(c)
	return !s.Passing && !s.Last && s.Count >= failures
}

// steadySince is since when s is green without a break. After a failure too
// short to change the verdict the break may last until the next answer, which
// is not in yet; so the time is then that answer's latest moment, in the future.
func steadySince(c ring.Check, s ring.Streak) time.Time {
	if s.Count > 0 && !s.Last {
		return s.At.Add(c.Interval + c.Interval/10 + c.Timeout)
	}
	return s.Since
}

// ordered is startup before readiness, liveness and the canary's, by name within each.
func ordered(checks []ring.Check) []ring.Check {
	rank := map[ring.CheckFor]int{ring.Startup: 0, ring.Readiness: 1, ring.Liveness: 2, ring.OfCanary: 3}
	out := slices.Clone(checks)
	slices.SortFunc(out, func(a, b ring.Check) int {
		return cmp.Or(cmp.Compare(rank[a.For], rank[b.For]), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func reason(c ring.Check, s ring.Streak) string {
	says := s.Says
	if says == "" {
		says = "no answer yet"
		if s.Last && s.Count > 0 {
			_, successes := thresholds(c)
			says = fmt.Sprintf("answered well %d of %d times in a row", s.Count, successes)
		}
	}
	return fmt.Sprintf("%s check %s: %s", c.For, c.Name, says)
}
