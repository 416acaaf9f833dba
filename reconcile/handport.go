package reconcile

import "github.com/gitring/gitring/ring"

// A port of the host goes from the instances of a service to its front: the front is made,
// the old instances stop and are kept, the front starts. They go once the front serves, and
// start again where it does not.

// givePort stops what publishes the port, one by one, once the front only has to be started.
func (t *Pass) givePort(v *service) outcome {
	publishers := t.publishersOf(v)
	if len(publishers) == 0 || isPortFree(publishers) || v.failed != nil || !v.waits.None() || t.frontTook(v) {
		return outcome{}
	}
	if t.keepsPort(v) != "" { // what starts is not ready yet
		return outcome{}
	}
	if why := t.frontMade(v); why != "" {
		return outcome{then: stop, reason: ring.Reason{Code: ring.WhyFrontNotReady, On: frontID(v.id), Says: why}}
	}
	for _, in := range publishers {
		if in.Live() || in.intent != intentPark {
			return outcome{then: stop, move: move{kind: moveClear, in: in, intent: intentPark, why: "its front takes its port"}}
		}
	}
	return outcome{}
}

// awaitAdded keeps the old instances for as long as the front that is added is not ready.
func (t *Pass) awaitAdded(v *service) outcome {
	if why := t.awaitsAdded(v); why != "" {
		return outcome{then: stop, reason: ring.Reason{Code: ring.WhyFrontNotReady, On: frontID(v.id), Says: why}}
	}
	return outcome{}
}

// awaitsFront keeps what cannot overlap from being started before its front serves: a version
// that nobody reaches is not to touch the data.
func (t *Pass) awaitsFront(v *service) outcome {
	if o := t.givePort(v); o.then == stop {
		return o
	}
	if o := t.awaitAdded(v); o.then == stop {
		return o
	}
	why := ring.Reason{Code: ring.WhyFrontNotReady, On: frontID(v.id), Says: "its front does not have its table yet"}
	if v.failed == nil && v.waits.None() && isPortFree(t.publishersOf(v)) && !t.frontTook(v) {
		return outcome{then: stop, reason: why}
	}
	if v.target == v.want && t.takesPortBack(v) { // on_failure: continue, and nobody would reach it
		why.Says = v.failed.Reason
		return outcome{then: stop, reason: why}
	}
	return outcome{}
}

// takePortBack starts what was stopped for a front that does not serve. What cannot overlap
// waits for the new version to stop (emptySlotMove), or for none to run where the rollout goes on.
func (t *Pass) takePortBack(v *service) outcome {
	if !t.takesPortBack(v) {
		return outcome{}
	}
	for _, in := range t.publishersOf(v) {
		if !in.Live() && in.intent == intentPark && (v.mayOverlap(in) || v.target == v.want && v.mayStart(in)) {
			return outcome{then: stop, move: move{kind: moveStart, in: in, why: "its front does not have its port"}}
		}
	}
	return outcome{}
}

// mayOverlap reports whether an old instance runs beside the wanted version once no port is
// between them.
func (v *service) mayOverlap(in *instance) bool {
	s := v.specOf(in)
	if s == nil || v.app.Alone(v.want) != "" {
		return false
	}
	bare := *s
	bare.Spec.Ports = nil
	return v.asWritten(s).Alone(&bare) == "" && (v.want.Share && s.Share || firstCommon(writesOf(v.asWritten(s), &bare), v.wantedWrites()) == "")
}

// frontAside has a front wait, or go, for as long as its service needs the port itself.
func (t *Pass) frontAside(v *service) outcome {
	b := t.serviceBehind(v)
	if b == nil {
		return outcome{}
	}
	if v.stands {
		return t.standAside(v)
	}
	why := t.portGate(v)
	if why.None() {
		return outcome{}
	}
	if t.takesPortBack(b) {
		for _, in := range v.instances {
			if !in.isLeaving() {
				return removing(in, why.Says)
			}
		}
	}
	return outcome{then: stop, reason: why}
}

// judgePort fails a rollout whose front does not take the port.
func (t *decider) judgePort(v *service) {
	if v.failed != nil {
		return
	}
	if why := t.portNotTaken(v); why != "" {
		t.failRollout(v, ring.Reason{Code: ring.WhyFrontNotReady, On: frontID(v.id), Says: why})
	}
}

// retryFront has a front that failed tried again with the next version of its service, which
// would have to do without one.
func (t *decider) retryFront(v *service) {
	b := t.serviceBehind(v)
	if b == nil || len(t.publishersOf(b)) == 0 && t.awaitsAdded(b) == "" || b.rollout.Version != b.want.Version || b.rollout.Done {
		return
	}
	if d, failed := t.failedVerdict(v); !failed || !b.rollout.Began.After(d.At) {
		return
	}
	t.takeBack(v)
	row := v.rollout
	row.Version = "" // begun anew
	t.setFact(row)
}

// isFrontTried reports whether v is a front that was given its port and has not taken it: its
// service is judged for it.
func (t *Pass) isFrontTried(v *service) bool {
	b := t.serviceBehind(v)
	return b != nil && isPortFree(t.publishersOf(b)) && !t.frontTook(b)
}
