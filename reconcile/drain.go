package reconcile

// drainMeant goes on with an instance that leaves its front, beside all that else is to be
// done for the service; or takes that back, where it is wanted again or needed still.
func (t *Pass) drainMeant(v *service, in *instance) outcome {
	wanted := in.fit && in.Version == v.target.Version && in.Slot <= v.target.Replicas && v.inSlot(in.Slot) == nil
	switch {
	case in.Live() && (wanted || !v.isExclusive() && !v.canSpare(in) || v.staysForRestore(in)):
		return t.takenBack(in)
	case !t.isOut(v, in) && v.isFront() && in.intent == intentDrain && t.isFrontUnused(v, in):
		it := t.Facts.Intents[in.ID]
		it.Kind, it.At = intentLeft, t.now
		return noting(it)
	case !t.isOut(v, in):
		return outcome{}
	}
	why := t.Facts.Intents[in.ID].Reason
	if v.isExclusive() {
		return clearing(in, why)
	}
	return removing(in, why)
}

// outMeant keeps an instance on its way out only for as long as the rollout goes on that
// needs its place.
func (t *Pass) outMeant(v *service, in *instance) outcome {
	state := stateOf(t, v)
	if in.Live() && in.Version != v.target.Version && (state == Starting || state == Restoring) {
		return outcome{}
	}
	return t.takenBack(in)
}
