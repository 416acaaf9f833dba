package health

import (
	"maps"
	"time"

	"github.com/gitring/gitring/ring"
)

// watched is one instance with its checks and streaks by check name.
type watched struct {
	in      ring.Instance
	checks  map[string]ring.Check
	order   []ring.Check
	asks    map[string]string // of each check, by name
	streaks map[string]ring.Streak
	since   time.Time         // when it was first watched by this daemon
	printed map[string]string // by each check that failed when it was asked last
}

// begin takes up an instance, with the streaks of an earlier run of the daemon
// where they are of this very start of it. Called with the lock held.
func (w *Watcher) begin(in ring.Instance, now time.Time) *watched {
	v := &watched{since: now, streaks: map[string]ring.Streak{}, printed: map[string]string{}}
	for _, s := range w.loaded[in.ID] {
		if !s.Started.Equal(in.Started) {
			continue
		}
		if s.Since.After(now) { // the clock was set back since
			s.Since = now
		}
		v.streaks[s.Check] = s
	}
	delete(w.loaded, in.ID)
	return v
}

// take gives an instance the checks of p. A definition that is new to it begins
// its streak anew; where the instance was ready it counts as green until it has
// failed as often in a row as its threshold asks: an edited check must not take
// every instance out of service for the moment until it was first asked.
func (v *watched) take(p ring.Probe) {
	if v.order != nil && len(p.Checks) == len(v.order) && (len(p.Checks) == 0 || &p.Checks[0] == &v.order[0]) {
		v.in = *p.Instance // the plan in force is the one of the look before
		return
	}
	was := Fold(v.order, v.streaks)
	known := v.order != nil
	if !known && len(v.streaks) == 0 && !p.Ready.IsZero() {
		was, known = ring.Health{Ready: true, Since: p.Ready}, true
	}
	v.in, v.order = *p.Instance, p.Checks
	v.checks, v.asks = make(map[string]ring.Check, len(p.Checks)), make(map[string]string, len(p.Checks))
	for _, c := range p.Checks {
		v.checks[c.Name] = c
		s, had := v.streaks[c.Name]
		asks := asksOf(c)
		v.asks[c.Name] = asks
		if had && (s.Asks == "" || s.Asks == asks) {
			s.Asks = asks
			v.streaks[c.Name] = s
			continue
		}
		if !had && !known {
			continue
		}
		v.streaks[c.Name] = anew(s, c, asks, v.in, was)
	}
	maps.DeleteFunc(v.streaks, func(name string, _ ring.Streak) bool { _, ok := v.checks[name]; return !ok })
	maps.DeleteFunc(v.printed, func(name, _ string) bool { _, ok := v.checks[name]; return !ok })
}

// anew is the streak of a check whose definition is another than that of old. For
// a liveness check green and unknown are the same: it acts on failures alone.
func anew(old ring.Streak, c ring.Check, asks string, in ring.Instance, was ring.Health) ring.Streak {
	s := ring.Streak{Instance: in.ID, Check: c.Name, Started: in.Started, Asks: asks}
	switch {
	case old.Passing:
		s.Passing, s.Since, s.At = true, old.Since, old.At
	case old.Check == "" && was.Ready:
		s.Passing, s.Since, s.At = true, was.Since, was.Since
	}
	return s
}

// started reports whether liveness may be asked: every startup check passed. Where
// there is none, readiness shows the end of the start, so that a slow boot is
// not killed; but not for longer than a start may take, or an instance that
// hangs while it starts would stay for ever. What was asked once goes on.
func (v *watched) started(liveness string, now time.Time) bool {
	if v.streaks[liveness].Count > 0 {
		return true
	}
	declared, ready := false, true
	for _, c := range v.order {
		passing := v.streaks[c.Name].Passing
		if c.For == ring.Startup {
			declared = true
			if !passing {
				return false
			}
		}
		if c.For == ring.Readiness {
			ready = ready && passing
		}
	}
	return declared || ready || now.Sub(v.since) >= ring.DefaultRollout().StartTimeout
}

// find is called with the lock held.
func (w *Watcher) find(k probeKey) (*watched, ring.Check, bool) {
	v, ok := w.seen[k.instance]
	if !ok || v.in.Started.UnixNano() != k.started {
		return nil, ring.Check{}, false
	}
	c, ok := v.checks[k.check]
	return v, c, ok && v.asks[c.Name] == k.asks && interval(c) == k.every
}
