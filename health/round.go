package health

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/gitring/gitring/ring"
)

// Defaults of a check that says nothing, and the pace of a boot.
const (
	defaultInterval = 5 * time.Second
	defaultTimeout  = 2 * time.Second
	// eager is the first pause of a check of a booting instance; it doubles up
	// to the interval. Nobody should wait 5 s for what is there after 50 ms.
	eager = 50 * time.Millisecond
	// lateness is how far beyond its timeout a failure may be noticed and still be
	// the instance's. One that comes later was asked by a process that did not run
	// meanwhile, and says nothing of the instance: it is asked again at once.
	lateness = 2 * time.Second
)

// probeKey names one goroutine: a restart of the instance is another one, and so
// is a check that asks something else, or at another pace.
type probeKey struct {
	instance, check string
	started         int64
	asks            string
	every           time.Duration
}

func (w *Watcher) wanted() map[probeKey]struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[probeKey]struct{}{}
	for id, v := range w.seen {
		for name, c := range v.checks {
			if !c.Docker {
				out[probeKey{id, name, v.in.Started.UnixNano(), v.asks[name], interval(c)}] = struct{}{}
			}
		}
	}
	return out
}

// probe is the goroutine of one check of one start of an instance.
func (w *Watcher) probe(ctx context.Context, k probeKey) {
	timer := time.NewTimer(w.firstPause(k))
	defer timer.Stop()
	for boot := eager; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		in, c, turn := w.turn(k)
		if turn == over {
			return
		}
		if turn == due {
			began := time.Now()
			a := w.ask(ctx, in, c)
			a.took = time.Since(began)
			if !a.ok && a.took > timeoutOf(c)+lateness {
				timer.Reset(0)
				continue
			}
			w.result(k, a)
		}
		pause := jittered(c)
		if len(c.Exec) == 0 && boot < pause && w.booting(k) {
			pause = boot
			boot *= 2
		}
		timer.Reset(pause)
	}
}

// firstPause is none for a new instance; what passed before a restart of the
// daemon is spread over the interval.
func (w *Watcher) firstPause(k probeKey) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, c, ok := w.find(k)
	if s := v.streaks[c.Name]; !ok || !s.Passing || s.Count == 0 {
		return 0
	}
	return rand.N(max(interval(c), 1)) //nolint:gosec // spreading load needs no secrecy
}

// turns of a check.
type turn int

const (
	due  turn = iota
	wait      // not now: the instance is starting, or not watched
	over      // a startup check that has passed
)

func (w *Watcher) turn(k probeKey) (ring.Instance, ring.Check, turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, c, ok := w.find(k)
	switch {
	case !ok:
		// Run ends it, if it is not wanted back by then: a goroutine that left by
		// itself would never be asked for again.
		return ring.Instance{}, ring.Check{}, wait
	case c.For == ring.Startup && v.streaks[c.Name].Passing:
		return v.in, c, over
	case c.For == ring.Liveness && !v.started(c.Name, w.opts.Now()):
		return v.in, c, wait
	}
	return v.in, c, due
}

// booting reports whether the instance has not passed this check since it started,
// which is worth asking more often. Liveness waits its turn instead.
func (w *Watcher) booting(k probeKey) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, c, ok := w.find(k)
	return ok && c.For.Gates() && v.streaks[c.Name].Since.IsZero()
}

func interval(c ring.Check) time.Duration {
	if c.Interval <= 0 {
		return defaultInterval
	}
	return c.Interval
}

// jittered is the check's interval ±10 %, so that many instances of one
// rollout are not asked in one moment for ever.
func jittered(c ring.Check) time.Duration {
	d := interval(c)
	return d - d/10 + rand.N(max(d/5, 1)) //nolint:gosec // spreading load needs no secrecy
}
