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
	pausedBy      ring.Reason // why a person paused its rollouts
	says          string      // the reason people read
	missing       string      // what it cannot have now: an owner, a name
	differsSays   string      // see why; "" until somebody asks
	group         *group      // what it is tied to; nil for nothing
	written       []string    // see writes; of the service mine
	writtenOf     *ring.Service
	goodWritten   []string // see wrote; of the good one before
	goodWrittenOf *ring.Good
	// lone is why instances of loneOf, a target, cannot run side by side.
	aloneSays string
	loneOf    *ring.Service
	// spoiled is the verdict on what the plan wants to be reloaded in place, where
	// that failed: want has what was good in its stead.
	filesFailed *ring.Verdict
}

// makeView makes the view of a service in force.
func (t *decider) makeView(v *service, app *ring.App, want *ring.Service) {
	id := ring.ID(app.Name, want.Name)
	want = t.withImage(want)
	*v = service{id: id, app: app, want: want, instances: t.seen[id], of: app, target: want}
	if g, ok := t.Facts.Good[id]; ok {
		v.good = t.goodNow(id, g)
	}
	v.rollout = t.Facts.Rollouts[id]
	t.views[id] = v
	t.useGoodFiles(v)
	t.probeInstances(v.instances, v.want, v.good)
	for _, in := range v.instances {
		t.judgeInstance(v, in)
	}
}

// wantedKey is the key of what is said of the wanted version.
func (v *service) wantedKey() string { return ring.VersionKey(v.id, v.want.Version) }

// goodNow is a good service as this look has it: with what its image says of
// itself, and a person's count.
func (t *Pass) goodNow(id ring.ServiceID, g *ring.Good) *ring.Good {
	looked := t.withImage(&g.Service)
	n := looked.Replicas
	if count, scaled := t.scaledCount(id); scaled && mayCount(&g.App, looked, count) {
		n = count
	}
	if len(t.scales) > 0 && looked.Kind == ring.Worker {
		n = t.atMost(g.App.Name, looked, n) // of what it joined then
	}
	if looked == &g.Service && n == looked.Replicas {
		return g
	}
	out := *g
	out.Service = *looked
	out.Service.Replicas = n
	return &out
}

// settingsNow are those of the way that v goes: forth, or back.
func (v *service) settingsNow() ring.Rollout {
	if v.isRestoring() && v.want.Rollout.Back != nil {
		return v.want.Rollout.Returning()
	}
	return v.target.Rollout
}

// decideService decides one service.
func (t *decider) decideService(v *service) {
	if v.group == nil {
		t.judgeService(v)
	}
	switch v.want.Kind { // both keep their hands off what is held
	case ring.JobK:
		t.decideJob(v)
		return
	case ring.CronK:
		t.decideCron(v)
		return
	}
	if t.handsOff(v.id) {
		return
	}
	if t.isBusy(string(v.id)) {
		return
	}
	// From here nothing of this service is in flight.
	if v.waits.Code == ring.WhyStateOlder {
		t.decideBy(v, keptRules) // alive, and nothing else
		return
	}
	if t.decideBy(v, beginRules) {
		return
	}
	state := stateOf(&t.Pass, v)
	switch {
	case !v.waits.None() && v.good == nil: // paused or not
		t.decideBy(v, waitRules) // nothing may start yet, and nothing is to be kept at full count
	case state == Paused, state == Stopped:
		t.decideBy(v, stoppedRules)
	default:
		if t.decideBy(v, doubleRules) {
			return
		}
		found := t.findDrift(v)
		t.decideBy(v, strategyOf(v).rules)
		t.putBack(v, found)
	}
}

// judgeService chooses the target and gives the verdict on it; it moves nothing.
func (t *decider) judgeService(v *service) {
	if _, failed := t.failedVerdict(v); failed { // it may be tried again
		t.retryRoomier(v)
		t.acquitEngineEnds(v)
		t.retryMendedBefore(v)
		t.retryRenewed(v)
	}
	t.chooseTarget(v)
	if v.want.Kind.Ends() {
		return
	}
	if t.handsOff(v.id) {
		t.standStill(v)
		return
	}
	t.beginRollout(v)
	if few := t.fewSlots(v); v.rollout.Done && few != v.rollout.Few {
		row := v.rollout
		row.Few = few
		t.setFact(row)
	}
	if !v.pausedBy.None() {
		t.standStill(v)
		return
	}
	t.countProgress(v)
	t.tryContent(v)
}

// chooseTarget sets the target: the last good version while the wanted one failed
// (restore, quarantine) or waits for what it depends on.
func (t *Pass) chooseTarget(v *service) {
	v.failed, v.waits, v.says = nil, ring.Reason{}, ""
	v.pausedBy = t.pauseReason(v.id)
	if d, failed := t.failedVerdict(v); failed {
		failure := d // on its own: most have none, and none is made for those
		v.failed = &failure
	}
	v.of, v.target = v.app, v.want
	if v.failed != nil && v.wouldRestore() {
		v.of, v.target = &v.good.App, &v.good.Service
		v.says = v.failed.Reason
		return
	}
	if t.isOutrun(v) {
		v.waits = ring.Reason{Code: ring.WhyStateOlder, Says: "what runs is newer than what gitring remembers; it stays until the newest commit is in force"}
	} else if v.rollout.Version == v.want.Version { // begun: what it depends on gates only the beginning
		if why := t.undoneReason(v); why != "" && !v.rollout.Done {
			v.waits, v.says = ring.Reason{Code: ring.WhyHostNotReady, Dead: true, Says: why}, why
			v.of, v.target = &v.good.App, &v.good.Service
			return
		}
		v.waits = t.runBeforeMissing(v) // as after a person had a version tried again that it failed
	} else {
		v.waits = t.gateReason(v)
	}
	if v.waits.None() {
		return
	}
	v.says = v.waits.Says
	if v.good != nil {
		v.of, v.target = &v.good.App, &v.good.Service
	}
}

// wouldRestore reports whether a failure of the wanted version brings another one back.
func (v *service) wouldRestore() bool {
	return v.onFailure() == ring.OnFailureRestore && v.good != nil && v.good.Service.Version != v.want.Version
}

// isRestoring reports whether the target is not what the plan in force wants, because
// that failed.
func (v *service) isRestoring() bool { return v.failed != nil && v.target != v.want }

// failedInPlace reports whether the rollout stopped where it is: what runs is kept alive,
// nothing more is created or removed.
func (v *service) failedInPlace() bool {
	return v.failed != nil && !v.isRestoring() && v.onFailure() != ring.OnFailureContinue && !v.rollout.Done
}

// hasStopped reports whether a rollout does not go on by itself: it failed, or a person
// paused it. What runs is kept alive.
func (v *service) hasStopped() bool {
	return v.failedInPlace() || !v.pausedBy.None() && !v.rollout.Done
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
