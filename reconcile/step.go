package reconcile

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitring/gitring/ring"
)

// stepTimeout bounds a step beyond the grace and delay it asks for itself.
const stepTimeout = 2 * time.Minute

// lends is how long a step that may come to wait for somebody else's program keeps
// its place: from then on it costs the engine nothing, and may do so for minutes.
const lends = 2 * time.Second

// mayWait reports whether a step may wait for a program, to end or to answer, or let a
// delay pass, for as long as the service asks.
func mayWait(a ring.Action) bool {
	switch a.Kind {
	case ring.DoStop, ring.DoRemove, ring.DoRestart, ring.DoReload:
		return true
	}
	return a.Want != nil && len(a.Want.Spec.PostStart) > 0
}

// launchStep carries out one step beside the loop, which hears of its end. Steps
// and pulls have pools of their own: one slow pull delays nobody else; nor does
// what is slow to stop.
func (l *Loop) launchStep(ctx context.Context, a ring.Action) {
	l.busy[a.Target()] = a
	began := new(atomic.Bool)
	l.began[a.Target()] = began
	pool := l.steps
	if asksRegistry(a.Kind) {
		pool = l.pulls
	}
	now := time.Now()
	a.Asked = &now
	l.work.Go(func() {
		if !pool.enter(ctx, stepRank(a.Kind)) {
			l.ended <- ending{action: a, err: context.Cause(ctx)}
			return
		}
		began.Store(true)
		leave := sync.OnceFunc(pool.leave)
		if mayWait(a) {
			lend := time.AfterFunc(lends, leave)
			defer lend.Stop()
		}
		done, err := l.carryOutStep(ctx, a)
		leave() // before the loop hears of it: it may be in the middle of a look
		l.ended <- ending{action: a, done: done, err: err}
	})
}

// queuedTargets are the targets of the steps that wait for a place.
func (l *Loop) queuedTargets() map[string]bool {
	var out map[string]bool
	for target, began := range l.began {
		if !began.Load() {
			put(&out, target, true)
		}
	}
	return out
}

// gatherEnds takes the ends of steps for as long as others wait for a place: a look after each
// would find more to do, and no place to do it in. The engine answers a hundred starts sooner when
// it is not asked a hundred times what it has. Until the moment all are taken; after it, until as
// many have ended as fill all places twice, until one has that is awaited, or for crowdedMost in
// all. A request is answered, and ends the waiting if it wants a look.
func (l *Loop) gatherEnds(ctx, stop context.Context, ended []ending, until time.Time) []ending {
	least := time.NewTimer(time.Until(until))
	defer least.Stop()
	most := time.NewTimer(time.Until(until) + crowdedMost - crowdedLook)
	defer most.Stop()
	early, awaited, n := true, slices.ContainsFunc(ended, isAwaited), len(ended)
	for l.steps.queued() && (early || !awaited && n < 2*l.Steps) {
		select {
		case e := <-l.ended:
			ended = append(ended, e)
			awaited = awaited || isAwaited(e)
			n++
		case r := <-l.requests:
			l.settleEnds(stop, ended...) // what happened before is answered for
			ended = nil
			if l.answerRequest(stop, r) {
				return nil
			}
		case <-least.C:
			early = false
		case <-most.C:
			return ended
		case <-ctx.Done():
			return ended
		}
	}
	return ended
}

// asksRegistry reports whether a step is about images alone: it may take long, and can be cut
// short.
func asksRegistry(k ring.ActionKind) bool {
	return k == ring.DoPull || k == ring.DoResolve || k == ring.DoVerify
}

// carryOutStep is bounded, and is not cut short when the daemon ends: a stop that was
// sent is seen through.
func (l *Loop) carryOutStep(ctx context.Context, a ring.Action) (ring.Done, error) {
	limit := a.Timeout
	if limit == 0 {
		// The hooks before a stop have a grace of their own, those after a start
		// the time that an instance has to become ready.
		limit = stepTimeout + 2*a.Grace + a.Delay
		if a.Want != nil && len(a.Want.Spec.PostStart) > 0 {
			limit += a.Want.Rollout.StartTimeout
		}
	}
	if !asksRegistry(a.Kind) {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if a.Kind == ring.DoRoute {
		return l.tellTable(ctx, a)
	}
	return l.Engine.Do(ctx, a)
}
