package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// Where a step waits for a place; a lower rank is let in first.
const (
	rankRun     = iota // makes an instance run, or stop
	rankPrepare        // makes what instances need
	rankAfter          // looks after what runs
	ranks
)

// maxQuiet is how long a step of rankAfter lets others go first.
const maxQuiet = 30 * time.Second

// pool bounds how many steps run at once. Those that wait are let in by what
// they do: what makes an instance run, or stop, before what only prepares it. The
// engine makes networks one after the other and starts containers side by side,
// so that a hundred networks first and then a hundred starts would leave it idle
// in both. The restart policy of an instance that runs already waits until nobody
// else is at work: the engine starts a process of its own to set it.
type pool struct {
	mu      sync.Mutex
	free    int             // guarded by mu
	busy    [ranks]int      // guarded by mu: places that are taken
	waiting [ranks][]waiter // guarded by mu: in order of coming
}

// waiter is a step that waits; turn is closed as it gets its place.
type waiter struct {
	turn chan struct{}
	rank int
}

func newPool(n int) *pool { return &pool{free: n} }

// rank is where a step waits.
func rank(k ring.ActionKind) int {
	switch k {
	case ring.DoNetwork, ring.DoNetworkOff, ring.DoAdmit:
		return rankPrepare
	case ring.DoPolicy:
		return rankAfter
	}
	return rankRun
}

// enter waits for a place; it returns false without one when ctx ends.
func (p *pool) enter(ctx context.Context, rank int) bool {
	turn := make(chan struct{})
	p.mu.Lock()
	p.waiting[rank] = append(p.waiting[rank], waiter{turn, rank})
	p.admit()
	p.mu.Unlock()
	if rank == rankAfter {
		impatient := time.AfterFunc(maxQuiet, func() { p.hurry(turn) })
		defer impatient.Stop()
	}
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.waiting {
		if at := position(p.waiting[i], turn); at >= 0 {
			p.waiting[i] = slices.Delete(p.waiting[i], at, at+1)
			return false
		}
	}
	p.release(rank) // it was given one in the same moment
	return false
}

// hurry lets a step that waited for quiet wait for a place only.
func (p *pool) hurry(turn chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := position(p.waiting[rankAfter], turn); at >= 0 {
		p.waiting[rankRun] = append(p.waiting[rankRun], p.waiting[rankAfter][at])
		p.waiting[rankAfter] = slices.Delete(p.waiting[rankAfter], at, at+1)
		p.admit()
	}
}

func position(ws []waiter, turn chan struct{}) int {
	return slices.IndexFunc(ws, func(w waiter) bool { return w.turn == turn })
}

// leave gives the place of a step back.
func (p *pool) leave(rank int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(rank)
}

func (p *pool) release(rank int) {
	p.free++
	p.busy[rank]--
	p.admit()
}

// admit lets in whoever is next while there are places; mu is held.
func (p *pool) admit() {
	for i := range p.waiting {
		for p.free > 0 && len(p.waiting[i]) > 0 && (i != rankAfter || p.quiet()) {
			w := p.waiting[i][0]
			p.waiting[i] = p.waiting[i][1:]
			p.free--
			p.busy[w.rank]++
			close(w.turn)
		}
	}
}

// quiet says that nobody makes anything run; mu is held.
func (p *pool) quiet() bool { return p.busy[rankRun]+p.busy[rankPrepare] == 0 }

// queued says that a step waits for a place which others have.
func (p *pool) queued() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting[rankRun])+len(p.waiting[rankPrepare]) > 0
}
