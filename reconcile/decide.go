package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// makeView makes the view of a service in force.
func (t *decider) makeView(v *service, app *ring.App, want *ring.Service) {
	id := ring.ID(app.Name, want.Name)
	want = t.onNodes(t.withImage(want))
	*v = service{id: id, app: app, want: want, instances: t.seen[id], of: app, target: want, stands: v.stands, sent: t.clusterService(id), scheduled: t.onCluster()}
	if g, ok := t.Facts.Good[id]; ok {
		v.good = t.goodNow(id, g)
	}
	v.rollout = t.Facts.Rollouts[id]
	t.views[id] = v
	t.useGoodFiles(v)
	t.probeInstances(v.instances, v.want, v.good)
	t.watchFronts(v)
	for _, in := range v.instances {
		t.judgeInstance(v, in)
	}
}

// goodNow is a good service as this look has it: with what its image says of
// itself, and a person's count.
func (t *Pass) goodNow(id ring.ServiceID, g *ring.Good) *ring.Good {
	looked := t.onNodes(t.withImage(&g.Service))
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

// judgeGroups chooses targets and gives verdicts for all that is tied together
// before any of it is decided: what fails one fails the others.
func (t *decider) judgeGroups() {
	for _, f := range t.groups {
		if len(f.members) == 0 {
			continue
		}
		order := leadersFirst(f.members[0].app)
		place := func(v *service) int {
			return slices.IndexFunc(order, func(i int) bool { return v.app.Services[i].Name == v.want.Name })
		}
		slices.SortFunc(f.members, func(a, b *service) int { return place(a) - place(b) })
		for _, v := range f.members {
			t.judgeService(v)
		}
	}
}

// judgeService chooses the target and gives the verdict on it; it moves nothing.
func (t *decider) judgeService(v *service) {
	if t.isOutrun(v.app.Name) {
		t.forgetOlder(v)
	}
	t.inheritVerdict(v)
	if _, failed := t.failedVerdict(v); failed { // it may be tried again
		t.retryRoomier(v)
		t.acquitEngineEnds(v)
		t.retryMendedBefore(v)
		t.retryRenewed(v)
		t.retryFront(v)
	}
	t.chooseTarget(v)
	t.leaveFrontTrial(v)
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
	t.judgePort(v)
	if !v.pausedBy.None() {
		t.standStill(v)
		return
	}
	if t.onCluster() {
		t.judgeUpdate(v)
		return
	}
	t.countProgress(v)
	t.tryContent(v)
}

// decideService decides one service.
func (t *decider) decideService(v *service) {
	if v.group == nil {
		t.judgeService(v)
	}
	if v.want.Kind.Ends() && t.isOutrun(v.app.Name) { // an older job would run on newer data
		return
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
	if t.onCluster() {
		t.decideServed(v)
		return
	}
	if v.waits.Code == ring.WhyStateOlder {
		t.decideBy(v, olderRules)
		return
	}
	if t.decideBy(v, beginRules) {
		return
	}
	switch {
	case !v.waits.None() && v.good == nil: // paused or not
		t.decideBy(v, waitRules) // nothing may start yet, and nothing is to be kept at full count
	case v.hasStopped():
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

// decideServed decides a service of a cluster.
func (t *decider) decideServed(v *service) {
	if v.waits.Code == ring.WhyStateOlder || !v.waits.None() && v.good == nil {
		return // nothing may come, and nothing is to be kept
	}
	if v.hasStopped() {
		t.decideBy(v, clusterStoppedRules)
		return
	}
	t.tellHands(v)
	t.decideBy(v, clusterRules)
}
