package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// stuckReason is what is wrong on this host where no other version would fare better,
// such as a disk that is not mounted; or whatever the host refuses where there is
// nothing to restore. It fails nothing, and is tried again for as long as it is wanted.
func (t *Pass) stuckReason(v *service) string {
	if try, ok := t.refusedStep(v); ok {
		return t.stuckSays(v, try)
	}
	if n := t.Facts.Fronts[v.id].Restarts; n >= frontTries && t.awaitsFrontWord(v) {
		return restartedInVain(n)
	}
	if t.awaitsItsFront(v) {
		if why := t.untoldTable(v); why != "" {
			return why
		}
	}
	return t.memoryShort(v)
}

// stuckSays is what v is stuck with. The engine does not say who has a port; where it is a service
// of ours, nobody has to look for it.
func (t *Pass) stuckSays(v *service, try ring.Try) string {
	if says, _ := t.portPublishers(v); says != "" {
		return says + ": publish one of them on another port"
	}
	return withHint(try)
}

// awaitsFrontWord reports whether a rollout waits for nothing but the word of a front that is
// silent, or not believed: that its new instance is reached, or that the old one is let go.
func (t *Pass) awaitsFrontWord(v *service) bool {
	return v.hasFront() && !t.Facts.Fronts[v.id].Silent.IsZero() && t.awaitsItsFront(v)
}

// awaitsItsFront reports whether a rollout waits for nothing but its front.
func (t *Pass) awaitsItsFront(v *service) bool {
	return v.hasFront() && slices.ContainsFunc(v.instances, func(in *instance) bool {
		return in.Version == v.want.Version && in.fit && !in.ready || in.intent == intentOut && in.Live()
	})
}

// heldUp reports whether a rollout gets no further now for what is no fault of its
// version: a step of it waits for its turn, or an instance of another version has
// not ended yet, which has the time that it was promised.
func (t *Pass) heldUp(v *service) bool {
	if v.group == nil {
		return t.heldUpItself(v)
	}
	return slices.ContainsFunc(v.group.members, t.heldUpItself)
}

func (t *Pass) heldUpItself(v *service) bool {
	a := t.inFlight(v.id)
	if a == nil {
		return t.networkQueued(v.app)
	}
	ends := a.Kind == ring.DoStop || a.Kind == ring.DoRemove
	return ends && a.Version != v.want.Version || t.Queued[string(v.id)]
}

// networkQueued reports whether a network of an app waits for its turn to be made: no service of
// the app gets further meanwhile.
func (t *Pass) networkQueued(app *ring.App) bool {
	for target := range t.Queued {
		if a := t.Busy[target]; a.Kind == ring.DoNetwork && a.App == app.Name {
			return true
		}
	}
	return false
}

// awaitsHost reports whether a rollout goes on once something of this host is mended:
// it is not closed, however long that takes.
func (t *Pass) awaitsHost(v *service) bool {
	if v.failed != nil {
		return false
	}
	if v.rollout.Done {
		return t.replacesLost(v)
	}
	try, ok := t.refusedStep(v)
	return ok && !try.Permanent || t.undoneReason(v) != "" || t.memoryShort(v) != "" || t.awaitsFrontWord(v)
}

// refusedStep is the try that v is stuck with.
func (t *Pass) refusedStep(v *service) (ring.Try, bool) {
	if len(t.Tries) == 0 {
		return ring.Try{}, false
	}
	for slot := 0; slot <= v.target.Replicas; slot++ {
		key := string(v.id)
		if slot > 0 {
			key += " " + ring.ContainerName(v.app.Name, v.want.Name, slot, v.target.Version)
		}
		try := t.Tries[key]
		if try.Refusal == nil || try.Version != v.target.Version || try.Kind != ring.DoCreate && try.Kind != ring.DoStart && try.Kind != ring.DoServe {
			continue
		}
		if !try.Permanent || try.Kind != ring.DoStart && (!v.wouldRestore() || v.isRestoring()) {
			return try, true
		}
	}
	return ring.Try{}, false
}

// lastGap is how rarely a version is tried at last for whose tries the old one has
// to stop.
const lastGap = 6 * time.Hour

// triesPort reports whether it is time to look again whether a port of the host that
// somebody else has is free. Only a start tells, and for that the old one stops: so
// it is done ever more rarely.
func (t *Pass) triesPort(try ring.Try) bool {
	if !isPortTaken(try.Err) {
		return false
	}
	due := try.At.Add(min(lastGap, permanentWait<<min(try.N-1, 8)))
	if t.now.Before(due) {
		t.wakeBy(due)
		return false
	}
	return true
}

// undoneReason is why the wanted version cannot be started now that the old one has
// stopped for it; the old one serves until that is mended.
func (t *Pass) undoneReason(v *service) string {
	if !v.wouldRestore() {
		return ""
	}
	for _, in := range v.instances {
		if in.Version != v.want.Version || in.Live() || !in.holdsSlot() {
			continue
		}
		try := t.Tries[string(v.id)+" "+in.Name]
		if try.Kind != ring.DoStart || try.Version != in.Version || try.Refusal == nil || try.Permanent || t.triesPort(try) {
			continue
		}
		if slices.ContainsFunc(v.instances, func(old *instance) bool { return old.Version == v.good.Service.Version && old.holdsSlot() }) {
			return withHint(try)
		}
	}
	return ""
}
