package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gitring/gitring/ring"
)

// watched is what is known of a new daemon so far.
type watched struct {
	began    time.Time
	pid      int
	answered time.Time // last
	well     time.Time // since when it has looked, and engine and store answer
	lapsed   time.Time // since when it is unwell again
	says     string    // why it is not well yet
}

// seen is one look at a new daemon.
type seen struct {
	unit Unit
	st   *ring.Status // nil where it did not answer
	err  error        // why
}

// terms are what a new daemon is held to.
type terms struct {
	to                     string
	startWithin, probation time.Duration
	// knows reports whether a step is no surprise.
	knows func(ring.TrialStep) bool
}

// errOver ends the watch of a daemon that has passed.
var errOver = errors.New("passed")

// judge takes one look into account: errOver when the daemon has passed, another error when it
// has failed, nil when it is to be looked at again.
func (w *watched) judge(t terms, s seen, now time.Time) error {
	switch {
	case s.unit.Failed:
		return fmt.Errorf("it ended: the unit is %s", s.unit.State)
	case w.pid == 0:
		w.pid = s.unit.PID
	case s.unit.PID != w.pid:
		return errors.New("it ended, and was started again")
	}
	if s.st == nil {
		w.says = fmt.Sprintf("it does not answer: %v", s.err)
		if since := w.answered; !since.IsZero() && now.Sub(since) > t.startWithin {
			return fmt.Errorf("%s, for %s", w.says, now.Sub(since).Round(time.Second))
		}
		return w.late(t, now)
	}
	w.answered = now
	st := s.st
	switch {
	case st.Gitring != t.to:
		return fmt.Errorf("it says that it is gitring %s, and not %s", st.Gitring, t.to)
	case st.Trial == nil:
		return errors.New("it does not say that it is on trial")
	}
	for _, step := range st.Trial.Would {
		if step.Ends && !t.knows(step) {
			return fmt.Errorf("it would %s", Told([]ring.TrialStep{step}))
		}
	}
	if why := unwell(st); why != "" {
		if w.says = why; !w.well.IsZero() {
			w.lapsed, w.well = now, time.Time{}
		}
		return w.late(t, now)
	}
	if w.well.IsZero() {
		w.well, w.lapsed = now, time.Time{}
	}
	if now.Sub(w.well) >= t.probation {
		return errOver
	}
	return nil
}

func unwell(st *ring.Status) string {
	switch {
	case st.Store != "":
		return "its store is not well: " + st.Store
	case st.Engine != "":
		return "its engine is not well: " + st.Engine
	case st.Trial.Looks == 0:
		return "it has not looked at the engine"
	}
	return ""
}

// late is the error of a daemon that is not well after the time that it has for it. One that
// was well has as long again, until the whole is over.
func (w *watched) late(t terms, now time.Time) error {
	within := w.began.Add(t.startWithin)
	if !w.well.IsZero() || !w.lapsed.IsZero() {
		within = w.began.Add(t.startWithin + t.probation)
	}
	if lapse := w.lapsed.Add(t.startWithin); !w.lapsed.IsZero() && lapse.Before(within) {
		within = lapse
	}
	if !now.After(within) {
		return nil
	}
	return fmt.Errorf("%s, %s after its start", w.says, now.Sub(w.began).Round(time.Second))
}

// watch looks at the new daemon until it has passed or failed.
func (u *Upgrader) watch(ctx context.Context, j *journal) error {
	t := terms{to: j.To, startWithin: u.StartWithin, probation: u.Probation, knows: j.knows}
	w := watched{began: time.Now()}
	tick := time.NewTicker(u.Every)
	defer tick.Stop()
	for {
		var s seen
		var err error
		if s.unit, err = u.Manager.Unit(ctx); err != nil {
			return err
		}
		asking, cancel := context.WithTimeout(ctx, u.AskWithin)
		st, err := u.Ask(asking)
		cancel()
		if s.err = err; err == nil {
			s.st = &st
		}
		if err := w.judge(t, s, time.Now()); errors.Is(err, errOver) {
			return nil
		} else if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("the upgrade was interrupted")
		case <-tick.C:
		}
	}
}
