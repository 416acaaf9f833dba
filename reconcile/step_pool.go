package reconcile

import (
	"context"
	"sync"

	"github.com/gitring/gitring/ring"
)

// pool bounds how many steps run at once. Those that wait are let in by what
// they do: what makes an instance run, or stop, before what only prepares it or
// looks after it. The engine makes networks one after the other and starts
// containers side by side, so that a hundred networks first and then a hundred
// starts would leave it idle in both.
type pool struct {
	mu      sync.Mutex
	free    int                // guarded by mu
	waiting [2][]chan struct{} // guarded by mu: closed as each gets its place; in order of coming
}

func newPool(n int) *pool { return &pool{free: n} }

// stepRank is where a step waits: 0 is let in first.
func stepRank(k ring.ActionKind) int {
	switch k {
	case ring.DoNetwork, ring.DoNetworkOff, ring.DoAdmit, ring.DoPolicy:
		return 1
	}
	return 0
}

// enter waits for a place; it returns false without one when ctx ends.
func (p *pool) enter(ctx context.Context, rank int) bool {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	p.waiting[rank] = append(p.waiting[rank], turn)
	p.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	p.mu.Lock()
	for i, x := range p.waiting[rank] {
		if x == turn {
			p.waiting[rank] = append(p.waiting[rank][:i:i], p.waiting[rank][i+1:]...)
			p.mu.Unlock()
			return false
		}
	}
	p.mu.Unlock()
	p.leave() // it was given one in the same moment
	return false
}

// leave hands a place on.
func (p *pool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.waiting {
		if len(p.waiting[i]) > 0 {
			close(p.waiting[i][0])
			p.waiting[i] = p.waiting[i][1:]
			return
		}
	}
	p.free++
}

// queued reports whether a step waits for a place.
func (p *pool) queued() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting[0])+len(p.waiting[1]) > 0
}
