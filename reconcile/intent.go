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

// meantBefore carries on with what was meant before: a daemon that ended between the
// record and the call, or a call that failed.
func (t *Pass) meantBefore(v *service, in *instance) outcome {
	switch in.intent {
	case intentRemove:
		return t.removalMeant(v, in)
	case intentDrain, intentLeft:
		return t.drainMeant(v, in)
	case intentOut:
		return t.outMeant(v, in)
	case intentPark:
		if in.fit && in.Version == v.target.Version {
			// It was to make room and is wanted again. Not before it is ready:
			// a stop that a daemon before us asked for may still be under way.
			return noting(ring.Forget{Table: "intent", Key: in.ID})
		}
	case intentAgain:
		if in.Live() || in.Version != v.want.Version || in.Slot > v.want.Replicas { // or not wanted: it is healed as any
			return noting(ring.Forget{Table: "intent", Key: in.ID})
		}
	case intentStop:
		if in.Live() && !t.isOut(v, in) {
			return outcome{}
		}
		if in.Live() {
			return outcome{then: stop, move: move{kind: moveStop, in: in, why: t.Facts.Intents[in.ID].Reason}}
		}
	case intentReload:
		return t.reloadMeant(v, in)
	case intentRestart, intentHooks, intentRejoin:
		return t.startMeant(v, in)
	}
	return outcome{}
}

// removalMeant sees a removal through, or takes it back where what else served when it was
// meant does not serve now.
func (t *Pass) removalMeant(v *service, in *instance) outcome {
	kept := !v.isExclusive() && !v.canSpare(in)
	switch {
	case kept && t.mayBeStopping(v, in) && in.Version == v.target.Version:
		return outcome{then: stop} // its name is taken until then
	case kept && t.mayBeStopping(v, in):
		return outcome{}
	case kept, v.staysForRestore(in):
		return t.takenBack(in)
	}
	return outcome{then: stop, move: move{kind: moveFinish, in: in}}
}

// finishRemoval takes the step of a removal that was meant before.
func (t *decider) finishRemoval(v *service, in *instance) {
	it := t.Facts.Intents[in.ID]
	if t.drainFirst(v, in, it.Reason) || t.readsLog(in) || t.stopTied(in, it.Reason) {
		return
	}
	a := t.removalStep(v, in, it)
	a.Delay = max(0, a.Delay-max(0, t.now.Sub(it.At))) // it drains from the moment that it was meant to go
	t.addStep(a)
}

// mayBeStopping reports whether a stop which nobody saw the end of may be under way: a daemon
// before us asked for it, or the answer got lost. The instance may serve until its
// time is over, as one that does not hear the signal, and is not to be counted on.
func (t *Pass) mayBeStopping(v *service, in *instance) bool {
	at := t.Facts.Intents[in.ID].At
	if try, ok := t.Tries[string(v.id)+" "+in.Name]; ok && try.Kind == ring.DoRemove {
		at = laterOf(at, try.At)
	}
	until := at.Add(max(v.want.Grace(), in.ownGrace()) + v.want.Rollout.DrainDelay + stopMargin)
	if !in.Live() || at.After(t.now) || !t.now.Before(until) { // a clock that was set back says nothing
		return false
	}
	t.wakeBy(until)
	return true
}

// stopMargin is how much longer than its grace a stop may take.
const stopMargin = 2 * time.Second

// startMeant begins a start again that nobody saw the end of.
func (t *Pass) startMeant(v *service, in *instance) outcome {
	it := t.Facts.Intents[in.ID]
	again := outcome{then: stop, move: move{kind: moveRestart, in: in, why: it.Reason}}
	switch {
	case in.intent != intentRestart && v.want.Kind.Ends(): // a run is never begun twice
		return noting(ring.Forget{Table: "intent", Key: in.ID})
	case in.intent != intentRestart && in.Live() && !t.providerMissing(in) && t.isOut(v, in):
		return again
	case in.intent != intentRestart && in.Live() && !t.providerMissing(in): // its front lets go of it first
		return noting(ring.Intent{Instance: in.ID, Kind: intentRestart, Reason: it.Reason, At: t.now})
	case in.intent != intentRestart:
		return outcome{}
	case in.Live() && in.Since.After(it.At) && !v.runsHooks(in):
		return noting(ring.Forget{Table: "intent", Key: in.ID})
	case in.Live() && !t.isOut(v, in) && in.Since.After(it.At): // it was restarted, and its hooks not seen through
		it.At = t.now
		return noting(it)
	case in.Live() && !t.isOut(v, in):
		return outcome{}
	case !in.Live() && t.providerMissing(in): // tied to what is not there: kept until it is
		return noting(ring.Intent{Instance: in.ID, Kind: intentPark, Reason: it.Reason, At: t.now})
	}
	return again
}

// restartInstance starts an instance anew, unless another one has what it needs.
func (t *decider) restartInstance(v *service, in *instance, why string) bool {
	if !in.Live() {
		if v.missing = t.occupiedReasonOf(v, in); v.missing != "" {
			return true
		}
	}
	return t.addStep(t.stepOn(v, ring.DoRestart, in, why))
}
