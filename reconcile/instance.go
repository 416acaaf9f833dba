package reconcile

import (
	"cmp"
	"time"

	"github.com/gitring/gitring/ring"
)

// inst is an instance in the eyes of one look.
type instance struct {
	*ring.Instance
	intent string // what a stop of ours was for; "" when none was meant
	// ready: every check green without a break for min_ready_time. down: known
	// not to serve, so that its removal costs nothing. Neither: not known, or
	// not for long enough.
	ready, down bool
	// failing reports whether a check that gates it failed as often as its threshold asks.
	failing     bool
	inferred    bool
	fit         bool // ready by its checks alone, whatever its front says
	rests       bool // it ended as it may, and stays so
	young       bool // it is green, for less than min_ready_time
	reason      string
	unlive, act string
	slotKey     string // see slot
}

// ownGrace is the time that it was made with between stop signal and kill.
func (in *instance) ownGrace() time.Duration { return cmp.Or(in.Grace, ring.DefaultStopGrace) }

// isDraining reports whether an instance is on its way out of its front, to be removed. It
// holds no slot, and counts for nothing but memory.
func (in *instance) isDraining() bool { return in.intent == intentDrain || in.intent == intentLeft }

// isLeaving reports whether we decided to remove it.
func (in *instance) isLeaving() bool { return in.intent == intentRemove || in.isDraining() }

// isGoingOut reports whether an instance is about to be stopped or to reload, so that nothing new may come
// to it. Meant is when that was written down: one that was restarted since is back.
func (in *instance) isGoingOut(meant time.Time) bool {
	switch in.intent {
	case intentDrain, intentLeft, intentOut, intentRemove, intentPark, intentStop:
		return true
	case intentRestart:
		return !in.Since.After(meant)
	case intentReload:
		return true
	}
	return false
}

// holdsSlot reports whether it takes its slot: whatever its state, but for one that goes.
func (in *instance) holdsSlot() bool { return !in.isLeaving() }

// startUnseen reports whether its start has not been seen through: it is not ready, and
// started again.
func (in *instance) startUnseen() bool { return in.intent == intentHooks || in.intent == intentRejoin }

// judgeInstance folds what is known of an instance into ready, down, or neither.
func (t *Pass) judgeInstance(v *service, in *instance) {
	if t.onCluster() {
		t.judgeTask(v, in)
		return
	}
	if !in.Live() {
		in.down = in.State != ring.StateCreated
		in.reason = string(in.State)
		if in.Ended() {
			in.reason, in.rests = t.endSays(in), t.isResting(v, in)
		}
		return
	}
	if in.State != ring.StateRunning {
		in.down, in.reason = in.State == ring.StateRestarting || in.State == ring.StatePaused, string(in.State)
		return
	}
	checks, known := t.checksOf(in, v.want, v.good)
	if !known {
		in.reason = "its checks are not known"
		return
	}
	since := in.Since
	if ring.Gated(checks) {
		h, ok := t.Health[in.ID]
		if was := t.readyUnaskedSince(in, v.want, v.good); !ok && !was.IsZero() {
			h, ok = ring.Health{Ready: true, Since: was}, true
		}
		if !ok {
			in.reason = "no check has answered yet"
			return
		}
		in.unlive, in.act = unliveReason(h), h.Act
		if !h.Ready && !(v.isFront() && in.isDraining()) { // that one says so because it was told to
			in.down, in.failing, in.reason = true, h.Failing, h.Reason
			return
		}
		since = h.Since
	} else {
		in.inferred = true
		if h, ok := t.Health[in.ID]; ok {
			in.unlive, in.act = unliveReason(h), h.Act
		}
	}
	if in.startUnseen() {
		in.reason = t.Facts.Intents[in.ID].Reason
		return
	}
	if v.isFront() {
		t.judgeFront(v, in)
		return
	}
	steady := since.Add(v.minReady(in))
	if t.now.Before(steady) && !(in.Version == v.want.Version && v.isPromoted(in.Since)) {
		t.wakeBy(steady)
		in.young, in.reason = true, t.youngSays(v, in)
		return
	}
	in.fit = true
	if why := t.unrouted(v, in); why != "" {
		in.reason = why
		return
	}
	in.ready = true
}

// youngSays is why an instance that is green does not count as ready yet.
func (t *Pass) youngSays(v *service, in *instance) string {
	if in.inferred {
		return say("runs, and counts as ready after %s", v.minReady(in))
	}
	return say("answers, and counts as ready after %s", v.minReady(in))
}

// judgeFront is the rest of judgeInstance for a front: it is ready once it took a table. While
// it is on trial one that does not answer is not; one that served is not judged by silence.
func (t *Pass) judgeFront(v *service, in *instance) {
	in.inferred, in.unlive = false, cmp.Or(in.unlive, t.lostFront(v, in))
	if in.ready = t.frontAnswers(v, in); in.ready {
		in.fit = true
		return
	}
	in.reason = "it does not answer with its table yet"
	in.down = !v.rollout.Done && v.failed == nil && in.Version == v.want.Version && !t.isUntold(v, in)
}

// minReady is how long an instance must be green; what is brought back, as long
// as the way back asks.
func (v *service) minReady(in *instance) time.Duration {
	if v.good != nil && in.Version == v.good.Service.Version && in.Version != v.want.Version {
		return v.want.Rollout.Returning().MinReadyTime
	}
	return v.want.Rollout.MinReadyTime
}

func unliveReason(h ring.Health) string {
	if h.Unlive {
		return h.Reason
	}
	return ""
}

// endSays is how an instance ended. One that gitring stopped did not fail: its exit code
// is that of the stop.
func (t *Pass) endSays(in *instance) string {
	switch in.intent {
	case intentRemove, intentPark, intentRestart, intentStop, intentDrain, intentLeft, intentOut:
		return say("stopped by gitring: %s", cmp.Or(t.Facts.Intents[in.ID].Reason, "it makes room"))
	case intentAgain:
		return "ended with the engine"
	}
	return exitSays(in.Instance)
}

func exitSays(in *ring.Instance) string {
	if in.OOM {
		return say("exited with code %d, out of memory", in.ExitCode)
	}
	return say("exited with code %d", in.ExitCode)
}

// mayRestart reports whether the engine could bring a stopped instance back.
func (in *instance) mayRestart() bool {
	return in.Policy != "no" && in.Policy != "" && in.intent != intentPark
}
