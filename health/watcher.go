// Package health asks instances how they are and folds the answers into one
// verdict per instance. Deciding is in fold.go, which is pure; asking is in
// probe.go; watcher.go is the goroutines between them.
package health

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// Exec runs argv in a container and returns its exit code and what it printed.
// An error means that it could not be run, which says nothing of the instance.
type Exec func(ctx context.Context, instance string, argv []string) (exit int, output string, err error)

// Options of a Watcher. Exec may be nil where the engine runs no commands;
// Poke and Save may be nil.
type Options struct {
	Exec Exec
	// Poke is called when a verdict changed; it must not block.
	Poke func()
	// Save keeps streaks; when it returns nil they are on disk.
	Save func([]ring.Streak) error
	// Keep keeps results for people; what it could not keep is lost. It may be nil.
	Keep func([]ring.Result) error
	Log  *slog.Logger
	Now  func() time.Time // nil is time.Now
}

// Watcher probes the instances it is told to watch. Its methods may be called
// from any goroutine.
type Watcher struct {
	opts    Options
	ask     func(context.Context, ring.Instance, ring.Check) answer
	changed chan struct{} // the set of instances changed
	verdict chan struct{} // a verdict changed: save now

	mu     sync.Mutex // guards what follows
	seen   map[string]*watched
	loaded map[string][]ring.Streak // by container ID
	dirty  map[streakKey]ring.Streak
	log    diary
}

// New makes a Watcher that continues the loaded streaks. It starts nothing.
func New(o Options, loaded []ring.Streak) *Watcher {
	if o.Now == nil {
		o.Now = func() time.Time { return time.Now().UTC() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Poke == nil {
		o.Poke = func() {}
	}
	if o.Keep == nil {
		o.Keep = func([]ring.Result) error { return nil }
	}
	if o.Save == nil {
		o.Save = func([]ring.Streak) error { return nil }
	}
	w := &Watcher{
		opts: o, ask: newProber(o.Exec).ask,
		changed: make(chan struct{}, 1), verdict: make(chan struct{}, 1),
		seen: map[string]*watched{}, loaded: map[string][]ring.Streak{}, dirty: map[streakKey]ring.Streak{}, log: newDiary(),
	}
	for _, s := range loaded {
		w.loaded[s.Instance] = append(w.loaded[s.Instance], s)
	}
	return w
}

// Watch gives the full set of instances wanted now; what is not in it is no
// longer watched. An instance that was restarted begins anew. The engine's own
// verdicts are taken from the instances, so Health knows them at once.
func (w *Watcher) Watch(ps []ring.Probe) {
	now := w.opts.Now()
	poke := false
	w.mu.Lock()
	next := make(map[string]*watched, len(ps))
	for _, p := range ps {
		v, known := w.seen[p.Instance.ID]
		if !known || !v.in.Started.Equal(p.Instance.Started) {
			v = w.begin(*p.Instance, now)
		}
		v.take(p)
		for _, c := range p.Checks {
			if c.Docker {
				poke = w.record(v, c, engineWord(p.Instance.Health), now) || poke
			}
		}
		next[p.Instance.ID] = v
	}
	w.seen = next
	w.log.forget(func(id string) bool { _, ok := next[id]; return ok })
	w.mu.Unlock()
	nudge(w.changed)
	if poke {
		nudge(w.verdict)
		w.opts.Poke()
	}
}

// Health is the verdict on every watched instance, by container ID.
func (w *Watcher) Health() map[string]ring.Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[string]ring.Health, len(w.seen))
	for id, v := range w.seen {
		out[id] = Fold(v.order, v.streaks)
	}
	return out
}

// Printed is what the checks of an instance printed that failed when they were asked
// last, by their names, as it is: who shows it strikes out secrets. What a HEALTHCHECK
// printed only the engine knows.
func (w *Watcher) Printed(id string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]string{}
	if v := w.seen[id]; v != nil {
		for name, text := range v.printed {
			if text != "" {
				out[name] = text
			}
		}
	}
	return out
}

// Run probes until ctx ends, then saves what is not saved and returns when
// every goroutine it started has ended. It returns nil.
func (w *Watcher) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { w.keep(ctx) })
	running := map[probeKey]context.CancelFunc{}
	for ctx.Err() == nil {
		wanted := w.wanted()
		for k, stop := range running {
			if _, ok := wanted[k]; !ok {
				stop()
				delete(running, k)
			}
		}
		for k := range wanted {
			if _, ok := running[k]; ok {
				continue
			}
			one, stop := context.WithCancel(ctx)
			running[k] = stop
			wg.Go(func() { w.probe(one, k) })
		}
		select {
		case <-ctx.Done():
		case <-w.changed:
		}
	}
	for _, stop := range running {
		stop()
	}
	wg.Wait()
	if err := w.save(); err != nil {
		w.opts.Log.Warn("streaks not saved at the end", "err", err)
	}
	if err := w.opts.Keep(w.results(true)); err != nil {
		w.opts.Log.Warn("what checks answered was not kept at the end", "err", err)
	}
	return nil
}

// nudge wakes the receiver, once, without blocking.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
