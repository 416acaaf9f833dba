package health

import (
	"context"
	"time"

	"github.com/gitring/gitring/ring"
)

// saveEvery bounds how often streaks are written when no verdict changed
// (docs/design/rollout.md#checks).
const saveEvery = 10 * time.Second

type streakKey struct{ instance, check string }

// result adds an answer to its streak, tells of a changed verdict, and drops
// an answer that came too late to be about this start of the instance.
func (w *Watcher) result(k probeKey, a answer) {
	w.mu.Lock()
	v, c, ok := w.find(k)
	changed := ok && w.record(v, c, a, w.opts.Now())
	w.mu.Unlock()
	if changed {
		nudge(w.verdict)
		w.opts.Poke()
	}
}

// record steps a streak and says whether that changed the instance's verdict.
// Called with the lock held.
func (w *Watcher) record(v *watched, c ring.Check, a answer, now time.Time) bool {
	s := v.streaks[c.Name]
	s.Instance, s.Check, s.Started, s.Asks = v.in.ID, c.Name, v.in.Started, v.asks[c.Name]
	if !a.known {
		if !s.Passing && s.Count == 0 && a.says != "" { // nothing better is known to tell
			s.Says = a.says
			v.streaks[c.Name] = s
		}
		return false
	}
	if c.Docker && s.Count > 0 && s.Last == a.ok {
		return false // the same word as at the last look
	}
	w.log.add(s.Instance, c.Name, a, now)
	v.printed[c.Name] = a.printed
	before := Fold(v.order, v.streaks)
	next := Step(s, c, a.ok, a.says, now)
	v.streaks[c.Name] = next
	if worthSaving(s, next, c) {
		w.dirty[streakKey{v.in.ID, c.Name}] = next
	}
	after := Fold(v.order, v.streaks)
	return s.Passing != next.Passing || before.Ready != after.Ready || before.Unlive != after.Unlive ||
		(before.Reason == "") != (after.Reason == "")
}

// worthSaving leaves out what cannot change a verdict: a check that has passed
// ten thousand times is as good as one that passed once.
func worthSaving(old, s ring.Streak, c ring.Check) bool {
	failures, successes := thresholds(c)
	return old.Passing != s.Passing || old.Last != s.Last || !old.Since.Equal(s.Since) ||
		old.Says != s.Says || s.Count <= max(failures, successes)
}

// keep saves streaks: at once when a verdict changed, else every saveEvery.
func (w *Watcher) keep(ctx context.Context) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-w.verdict:
		}
		err := w.save()
		if err != nil && !failing {
			w.opts.Log.Warn("streaks not saved, will be tried again", "err", err)
		}
		failing = err != nil
		if err := w.opts.Keep(w.results(false)); err != nil {
			w.opts.Log.Debug("what checks answered was not kept", "err", err)
		}
	}
}

// results are the lines that are worth writing; all is at the end of the daemon.
func (w *Watcher) results(all bool) []ring.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.take(w.opts.Now(), all)
}

// save hands over what changed; on an error it stays to be handed over again,
// unless there is newer by then.
func (w *Watcher) save() error {
	w.mu.Lock()
	batch := w.dirty
	w.dirty = map[streakKey]ring.Streak{}
	w.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	rows := make([]ring.Streak, 0, len(batch))
	for _, s := range batch {
		rows = append(rows, s)
	}
	err := w.opts.Save(rows)
	if err == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, s := range batch {
		if _, newer := w.dirty[k]; !newer {
			w.dirty[k] = s
		}
	}
	return err
}
