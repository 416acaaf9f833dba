package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/upgrade"
)

// trialEvery is how often a daemon on trial looks whether that is over.
const trialEvery = 500 * time.Millisecond

// trial is the probation of this process after an upgrade: until done is closed, nothing
// acts. The state folder says when that is.
type trial struct {
	state string
	from  string
	until time.Time // when it is over at the latest
	done  chan struct{}

	mu    sync.Mutex // guards what follows
	since time.Time  // of the first whole look
}

// newTrial is nil where the daemon of a state folder may act at once. A note about other
// releases is removed: it would bind one of them later, when nobody watches it.
func newTrial(state string, log *slog.Logger) *trial {
	t, on := upgrade.ReadTrial(state)
	switch {
	case !on:
		return nil
	case t.Stale(ring.Release):
		log.Warn("an upgrade left a note of a trial of another release: it is removed", "from", t.From, "to", t.To)
		if err := upgrade.EndTrial(state); err != nil {
			log.Warn("could not remove the note of a trial", "err", err)
		}
		return nil
	case !t.For(ring.Release):
		return nil
	}
	return &trial{state: state, from: t.From, until: time.Now().Add(t.Longest()), done: make(chan struct{})}
}

// is what the loop asks: nil once it is over, and where there is none.
func (t *trial) is() *ring.Trial {
	if t.over() {
		return nil
	}
	return &ring.Trial{From: t.from}
}

func (t *trial) over() bool {
	if t == nil {
		return true
	}
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// after has a part begin when the trial is over.
func (t *trial) after(part func(context.Context) error) func(context.Context) error {
	if t.over() {
		return part
	}
	return func(ctx context.Context) error {
		select {
		case <-t.done:
			return part(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// watchTrial ends the trial when the upgrade says so. Whoever ran the upgrade may be gone: then
// it ends when nothing is wrong for long enough, and in any case when its time is over.
func (d *Daemon) watchTrial(ctx context.Context) error {
	if d.trial.over() {
		return nil
	}
	d.log.Warn("on trial after an upgrade, nothing is changed until that is over", "before", d.trial.from)
	tick := time.NewTicker(trialEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, on := upgrade.ReadTrial(d.cfg.State)
		st, _ := d.loop.Status()
		passed, late := on && d.trial.passed(&st, now, time.Now()), on && d.trial.late(time.Now())
		if passed || late {
			if passed {
				d.log.Warn("nobody ended the trial, and nothing is wrong: it is over", "before", d.trial.from)
			} else {
				d.log.Error("nobody ended the trial in its time: it is over, and this release acts though it did not pass",
					"before", d.trial.from, "put_back", now.Back, "hint", "gitring upgrade --resume")
			}
			if err := upgrade.EndTrial(d.cfg.State); err != nil {
				d.log.Error("could not end the trial, will be tried again", "err", err)
				continue
			}
			on = false
		}
		if !on {
			close(d.trial.done)
			d.log.Info("the trial is over", "version", ring.Release)
			d.loop.Poke()
			return nil
		}
	}
}

// passed reports whether a daemon that nobody judges may believe itself.
func (t *trial) passed(st *ring.Status, told upgrade.Trial, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	well := st.Trial != nil && st.Trial.Looks > 0 && st.Engine == "" && st.Store == ""
	if !well || told.Back || surprises(told, st.Trial.Would) {
		t.since = time.Time{}
		return false
	}
	if t.since.IsZero() {
		t.since = now
	}
	return now.Sub(t.since) >= told.Probation+upgrade.Grace
}

// late reports whether a trial has lasted as long as any may.
func (t *trial) late(now time.Time) bool { return !now.Before(t.until) }

// surprises reports whether one of the steps ends something that runs, and was not told of by
// the rehearsals.
func surprises(told upgrade.Trial, steps []ring.TrialStep) bool {
	for _, s := range steps {
		if s.Ends && !told.Knows(s) {
			return true
		}
	}
	return false
}

// refused is the answer to whoever wants something changed meanwhile.
func (t *trial) refused() error {
	if t.over() {
		return nil
	}
	return api.Conflicting("gitring status shows it until it is over, which is by itself within "+time.Until(t.until).Round(time.Second).String()+"; then ask again",
		"gitring is on trial after an upgrade from %s: nothing is changed meanwhile", t.from)
}

// onTrial are the calls of a daemon that may be on trial: those that change something, or
// wait for a change, are refused until it is over.
func (d *Daemon) onTrial(c api.Calls) api.Calls {
	t := d.trial
	if t.over() {
		return c
	}
	c.Look, c.Poke = refusing(t, c.Look), refusing(t, c.Poke)
	c.Approve, c.Accept = refusingAct(t, c.Approve), refusingAct(t, c.Accept)
	c.Reverify, c.Refresh, c.Act = refusingAsked(t, c.Reverify), refusingAsked(t, c.Refresh), refusingAsked(t, c.Act)
	c.Prove, c.RefreshSecrets = refusingAsked(t, c.Prove), refusingAsked(t, c.RefreshSecrets)
	c.Adopt, c.Leave, c.NotifyTest = refusingAsked(t, c.Adopt), refusingAsked(t, c.Leave), refusingAsked(t, c.NotifyTest)
	c.OutboxRetry, c.TrafficUpgrade = refusingAsked(t, c.OutboxRetry), refusingAsked(t, c.TrafficUpgrade)
	return c
}

func refusing(t *trial, call func(context.Context, string) error) func(context.Context, string) error {
	return func(ctx context.Context, source string) error {
		if err := t.refused(); err != nil {
			return err
		}
		return call(ctx, source)
	}
}

func refusingAct[R any](t *trial, call func(context.Context, api.Peer, R) error) func(context.Context, api.Peer, R) error {
	return func(ctx context.Context, p api.Peer, r R) error {
		if err := t.refused(); err != nil {
			return err
		}
		return call(ctx, p, r)
	}
}

func refusingAsked[R, A any](t *trial, call func(context.Context, api.Peer, R) (A, error)) func(context.Context, api.Peer, R) (A, error) {
	return func(ctx context.Context, p api.Peer, r R) (A, error) {
		if err := t.refused(); err != nil {
			var none A
			return none, err
		}
		return call(ctx, p, r)
	}
}
