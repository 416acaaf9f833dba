package reconcile

import "github.com/gitring/gitring/ring"

// service is the view of one service in one look.
type service struct {
	id        ring.ServiceID
	app       *ring.App
	want      *ring.Service
	instances []*instance
	// target is what its instances should run now, of the app of: the wanted
	// one, or the last good one while the wanted one failed or has to wait.
	of     *ring.App
	target *ring.Service
	good   *ring.Good
	waits  ring.Reason // why the wanted version may not start yet
	// failed is the verdict on the wanted version when that is "failed".
	failed        *ring.Verdict
	rollout       ring.RolloutRow
	sent          *ring.ClusterService // what a cluster has of it; nil elsewhere, and where it has none
	scheduled     bool                 // its engine schedules by itself
	mark          *ring.RunMark        // on a cluster, which run of it is to begin
	pausedBy      ring.Reason          // why a person paused its rollouts
	says          string               // the reason people read
	missing       string               // what it cannot have now: an owner, a name
	differsSays   string               // see why; "" until somebody asks
	group         *group               // what it is tied to; nil for nothing
	written       []string             // see writes; of the service mine
	writtenOf     *ring.Service
	goodWritten   []string // see wrote; of the good one before
	goodWrittenOf *ring.Good
	// lone is why instances of loneOf, a target, cannot run side by side.
	aloneSays string
	loneOf    *ring.Service
	// spoiled is the verdict on what the plan wants to be reloaded in place, where
	// that failed: want has what was good in its stead.
	filesFailed *ring.Verdict
	// stands reports whether it is a front that its plan does not have any more: it stays as it
	// was good until its service serves without it.
	stands bool
}

// wantedKey is the key of what is said of the wanted version.
func (v *service) wantedKey() string { return ring.VersionKey(v.id, v.want.Version) }

// liveVersion is what the version of v runs with; "" where it reloads nothing.
func (v *service) liveVersion() ring.Version {
	if v.want.Reload == nil {
		return ""
	}
	return v.want.LiveVersion()
}

// failedVerdict is the verdict "failed" on the wanted version of s.
func (t *Pass) failedVerdict(s *service) (ring.Verdict, bool) {
	d, ok := t.Facts.Verdict(s.id, s.want.Version)
	return d, ok && !d.Good
}

// settingsNow are those of the way that v goes: forth, or back.
func (v *service) settingsNow() ring.Rollout {
	if v.isRestoring() && v.want.Rollout.Back != nil {
		return v.want.Rollout.Returning()
	}
	return v.target.Rollout
}

// wouldRestore reports whether a failure of the wanted version brings another one back.
func (v *service) wouldRestore() bool {
	return v.onFailure() == ring.OnFailureRestore && v.good != nil && v.good.Service.Version != v.want.Version
}

// isRestoring reports whether the target is not what the plan in force wants, because
// that failed.
func (v *service) isRestoring() bool { return v.failed != nil && v.target != v.want }

// failedInPlace reports whether the rollout stopped where it is: what runs is kept alive,
// nothing more is created or removed. No update of a cluster goes on past a failure.
func (v *service) failedInPlace() bool {
	goesOn := v.onFailure() == ring.OnFailureContinue && !v.scheduled
	return v.failed != nil && !v.isRestoring() && !goesOn && !v.rollout.Done
}

// hasStopped reports whether a rollout does not go on by itself: it failed, or a person
// paused it. What runs is kept alive.
func (v *service) hasStopped() bool {
	return v.failedInPlace() || !v.pausedBy.None() && !v.rollout.Done
}

// members are v and all that is replaced together with it.
func (v *service) members() []*service {
	if v.group == nil {
		return []*service{v}
	}
	return v.group.members
}

// intentFor is what becomes of an old instance that has to stop: the last good one
// is kept for a restore, any other goes.
func (v *service) intentFor(old *instance) string {
	if v.good != nil && old.Version == v.good.Service.Version && !v.isRestoring() {
		return intentPark
	}
	return intentRemove
}

// inSlot is the target's instance of a slot.
func (v *service) inSlot(slot int) *instance {
	for _, in := range v.instances {
		if in.Slot == slot && in.Version == v.target.Version && in.holdsSlot() {
			return in
		}
	}
	return nil
}

func (v *service) instanceByID(id string) *instance {
	for _, in := range v.instances {
		if in.ID == id {
			return in
		}
	}
	return nil
}

// onFailure is what follows a failure; for services that are tied together, the
// safest of what they say.
func (v *service) onFailure() string {
	if v.group == nil {
		return v.want.Rollout.OnFailure
	}
	out := ring.OnFailureContinue
	for _, m := range v.group.members {
		switch {
		case m.want.Kind.Ends():
		case m.want.Rollout.OnFailure == ring.OnFailureRestore:
			return ring.OnFailureRestore
		case m.want.Rollout.OnFailure == ring.OnFailurePause:
			out = ring.OnFailurePause
		}
	}
	return out
}

// specOf is the service as an instance runs it, nil for a version that is not known.
func (v *service) specOf(in *instance) *ring.Service {
	switch {
	case in.Version == v.want.Version:
		return v.want
	case v.good != nil && in.Version == v.good.Service.Version:
		return &v.good.Service
	}
	return nil
}
