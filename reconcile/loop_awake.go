package reconcile

import (
	"context"
	"sync/atomic"
	"time"
)

// beat is how often a loop notes that its process runs. A process that was stopped,
// or a host that slept, misses some.
const beat = 5 * time.Second

// pulse knows since when this process has run without a break. While it did not,
// nobody looked: what was due meanwhile is not held against anybody.
type pulse struct {
	last, awake atomic.Pointer[time.Time]
}

func (p *pulse) begin(now time.Time) {
	p.last.Store(&now)
	p.awake.Store(&now)
}

// run beats until ctx ends.
func (p *pulse) run(ctx context.Context, now func() time.Time) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.noteBeat(now())
		}
	}
}

// noteBeat is a beat. The end of a break is known before the beat after it counts, so
// that nobody takes the beat for proof that there was none.
func (p *pulse) noteBeat(now time.Time) {
	if now.Sub(*p.last.Load()) >= 2*beat {
		p.awake.Store(&now)
	}
	p.last.Store(&now)
}

// awakeSince is from when on this process has run; a break that no beat has noted yet
// is one.
func (p *pulse) awakeSince(now time.Time) time.Time {
	if now.Sub(*p.last.Load()) >= 2*beat {
		return now
	}
	return *p.awake.Load()
}
