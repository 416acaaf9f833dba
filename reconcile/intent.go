package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// The kinds of intents.
const (
	intentRemove  = "remove"
	intentPark    = "park"
	intentRestart = "restart"
	intentStop    = "stop"   // for good: a liveness check says so
	intentHooks   = "hooks"  // started, and its post_start hooks not seen through
	intentRejoin  = "rejoin" // its namespaces are none any more: to be restarted
	intentAgain   = "again"  // it ended with the engine: to be started again
)

// finishIntents carries on with what was meant before: a daemon that ended
// between the record and the call, or a call that failed.
func (t *decider) finishIntents(v *service) bool {
	for _, in := range v.all {
		switch in.intent {
		case intentRemove:
			if !v.exclusive() && !v.spare(in) && t.mayBeStopping(v, in) {
				if in.Version == v.target.Version {
					return true // its name is taken until then
				}
				continue
			}
			if !v.exclusive() && !v.spare(in) || v.stays(in) {
				// What else served when its removal was meant does not serve now.
				t.set(ring.Forget{Table: "intent", Key: in.ID})
				continue
			}
			it := t.Facts.Intents[in.ID]
			if !t.telling(in) && !t.untie(in, it.Reason) {
				a := t.removal(v, in, it)
				a.Delay = max(0, a.Delay-max(0, t.now.Sub(it.At))) // it drains from the moment that it was meant to go
				t.do(a)
			}
			return true
		case intentPark:
			if in.ready && in.Version == v.target.Version {
				// It was to make room and is wanted again. Not before it is ready:
				// a stop that a daemon before us asked for may still be under way.
				t.set(ring.Forget{Table: "intent", Key: in.ID})
			}
		case intentAgain:
			if in.Live() || in.Version != v.want.Version || in.Slot > v.want.Replicas { // or not wanted: it is healed as any
				t.set(ring.Forget{Table: "intent", Key: in.ID})
			}
		case intentStop:
			if why := t.Facts.Intents[in.ID].Reason; in.Live() {
				if !t.untie(in, why) {
					t.do(t.step(v, ring.DoStop, in, why))
				}
				return true
			}
		case intentRestart, intentHooks, intentRejoin:
			if t.seeThrough(v, in) {
				return true
			}
		}
	}
	return false
}

// mayBeStopping says that a stop which nobody saw the end of may be under way: a daemon
// before us asked for it, or the answer got lost. The instance may serve until its
// time is over, as one that does not hear the signal, and is not to be counted on.
func (t *Pass) mayBeStopping(v *service, in *inst) bool {
	at := t.Facts.Intents[in.ID].At
	if try, ok := t.Tries[string(v.id)+" "+in.Name]; ok && try.Kind == ring.DoRemove {
		at = latest(at, try.At)
	}
	until := at.Add(max(v.want.Grace(), in.ownGrace()) + v.want.Rollout.DrainDelay + stopMargin)
	if !in.Live() || at.After(t.now) || !t.now.Before(until) { // a clock that was set back says nothing
		return false
	}
	t.wake(until)
	return true
}

// stopMargin is how much longer than its grace a stop may take.
const stopMargin = 2 * time.Second

// seeThrough begins a start again that nobody saw the end of. It says whether the
// look is over for v.
func (t *decider) seeThrough(v *service, in *inst) bool {
	it := t.Facts.Intents[in.ID]
	if in.intent != intentRestart {
		if v.want.Kind.Ends() { // a run is never begun twice
			t.set(ring.Forget{Table: "intent", Key: in.ID})
			return false
		}
		if in.Live() && !t.apart(in) {
			t.do(t.step(v, ring.DoRestart, in, it.Reason))
			return true
		}
		return false
	}
	if in.Live() && in.Since.After(it.At) && !v.hooked(in) {
		t.set(ring.Forget{Table: "intent", Key: in.ID})
		return false
	}
	if !in.Live() && t.apart(in) { // tied to what is not there: kept until it is
		t.set(ring.Intent{Instance: in.ID, Kind: intentPark, Reason: it.Reason, At: t.now})
		return false
	}
	if !in.Live() {
		if v.lacks = t.occupiedFor(v, in); v.lacks != "" {
			return true
		}
	}
	t.do(t.step(v, ring.DoRestart, in, it.Reason))
	return true
}
