package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// A front in whose place another one serves leaves in three parts. It is told so, and calls
// itself unhealthy. Once the engine says that, a proxy before it sends it no more. Then what
// is in flight through it ends, and it goes.

const (
	leaveMost = 2 * time.Minute // for the engine to say so: a health check comes every 30 s
	leaveRest = 5 * time.Second // for a proxy to hear of it
)

// frontLeft reports whether nobody sends a front requests any more, and what it carries has
// ended or had its time. One in whose place no other one serves has nobody to leave to.
func (t *Pass) frontLeft(v *service, in *instance) bool {
	b := t.serviceBehind(v)
	if in.State != ring.StateRunning || b == nil || !b.hasFront() || !hasSuccessor(v, in) {
		return true
	}
	it := t.Facts.Intents[in.ID]
	if it.Kind != intentLeft {
		return false // drainMeant sees to that
	}
	rest := laterOf(it.At, t.Awake).Add(leaveRest) // by a clock that did not jump
	if t.now.Before(rest) {
		t.wakeBy(rest)
		return false
	}
	end := rest.Add(b.route().DrainTimeout)
	if !t.now.Before(end) {
		return true
	}
	t.wakeBy(end)
	f := t.toldFront(in, t.Facts.Fronts[b.id])
	return f.seen != nil && f.carries() == 0
}

// isFrontUnused reports whether a front that was told to leave is sent nothing more: the
// engine calls it unhealthy, or nobody asks the engine. One that does not say so is given up
// waiting for.
func (t *Pass) isFrontUnused(v *service, in *instance) bool {
	b := t.serviceBehind(v)
	if b == nil {
		return true
	}
	f := t.toldFront(in, t.Facts.Fronts[b.id])
	if f.has() && f.table.Leaving && in.Health != "healthy" {
		return true
	}
	until := t.Facts.Intents[in.ID].At.Add(leaveMost)
	t.wakeBy(until)
	return !t.now.Before(until)
}

// hasSuccessor reports whether another front of the service serves in the place of one.
func hasSuccessor(v *service, in *instance) bool {
	for _, x := range v.instances {
		if x != in && x.State == ring.StateRunning && x.ready && x.holdsSlot() {
			return true
		}
	}
	return false
}

// carries is how much is in flight through a front, as it says.
func (f *toldFront) carries() (n int) {
	for _, in := range f.seen.Instances {
		n += in.InFlight
	}
	return n
}

// isToldToLeave reports whether the table of a front has it call itself unhealthy: another one
// takes its place. While it is removed its table stays as it is.
func (f *toldFront) isToldToLeave() bool {
	last := f.lastTable()
	return f.in.isDraining() || f.in.isLeaving() && last != nil && last.Leaving
}
