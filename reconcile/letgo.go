package reconcile

import "github.com/gitring/gitring/ring"

// An instance that a front sends requests to is taken out of the front's table before it is
// stopped, by an intent. The table follows from that (table.go); the stop comes once the
// front has let go. Each arrow between them is a look.

// The kinds of intents of what is taken out of its front first. A removal that was only meant
// has stopped nothing yet, and may be taken back at any time.
const (
	intentDrain = "drain" // to be removed
	intentOut   = "out"   // to be stopped and kept for a restore
	intentLeft  = "left"  // of a front: nobody sends it requests any more, and it is to be removed
)

// drainFirst reports whether an instance has to leave its front before it is removed, and
// has that written down.
func (t *decider) drainFirst(v *service, in *instance, why string) bool {
	if t.isOut(v, in) {
		return false
	}
	if !in.isDraining() {
		t.setFact(t.removalIntent(v, in, intentDrain, why))
	}
	return true
}

// removalIntent is what is written down of an instance that goes: whose slot it empties, where
// that is to be filled again.
func (t *Pass) removalIntent(v *service, in *instance, kind, why string) ring.Intent {
	it := ring.Intent{Instance: in.ID, Kind: kind, Reason: why, At: t.now, Unstarted: t.isUnstarted(in)}
	if in.Version == v.target.Version && in.Slot <= v.target.Replicas {
		it.ID, it.Slot = v.id, in.Slot
	}
	return it
}

// isUnstarted reports whether an instance is to be started again: it was meant to be, or its
// last start was not seen through.
func (t *Pass) isUnstarted(in *instance) bool {
	return in.Live() && (in.startUnseen() || in.intent == intentRestart || t.Facts.Intents[in.ID].Unstarted)
}

// takenBack is that an instance stays after all, which was meant to go.
func (t *Pass) takenBack(in *instance) outcome {
	if t.isUnstarted(in) {
		return noting(ring.Intent{Instance: in.ID, Kind: intentRestart, Reason: "its last start was not seen through", At: t.now})
	}
	return noting(ring.Forget{Table: "intent", Key: in.ID})
}

// drainsIn reports whether an instance of a slot still has the name that the next one of the
// target is to have.
func (v *service) drainsIn(slot int) bool {
	for _, in := range v.instances {
		if in.isDraining() && in.Slot == slot && in.Version == v.target.Version {
			return true
		}
	}
	return false
}

// mayDrainMore reports whether one instance more may drain without one being cut for it that
// drains by the same rollout. What an earlier one left draining is cut for it.
func (t *Pass) mayDrainMore(v *service) bool {
	n := 0
	for _, in := range v.instances {
		if (in.isDraining() || in.intent == intentOut) && !t.Facts.Intents[in.ID].At.Before(v.rollout.Began) {
			n++
		}
	}
	return n < max(1, v.target.Replicas)
}
