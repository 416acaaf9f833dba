package health

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// watched is one instance with its checks and streaks by check name.
type watched struct {
	in      ring.Instance
	checks  map[string]ring.Check
	order   []ring.Check
	streaks map[string]ring.Streak
	since   time.Time // when it was first watched by this daemon
}

// begin takes up an instance, with the streaks of an earlier run of the daemon
// where they are of this very start of it. Called with the lock held.
func (w *Watcher) begin(in ring.Instance, now time.Time) *watched {
	v := &watched{since: now, streaks: map[string]ring.Streak{}}
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

// started says that liveness may be asked: every startup check passed. Where
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
	return v, c, ok
}
