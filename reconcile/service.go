package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// service is the view of one service in one look.
type service struct {
	id   ring.ServiceID
	app  *ring.App
	want *ring.Service
	all  []*inst
	// target is what its instances should run now, of the app of: the wanted
	// one, or the last good one while the wanted one failed or has to wait.
	of     *ring.App
	target *ring.Service
	good   *ring.Good
	waits  ring.Reason // why the wanted version may not start yet
	// failed is the verdict on the wanted version when that is "failed".
	failed *ring.Verdict
	row    ring.RolloutRow
	halt   ring.Reason // why a person paused its rollouts
	says   string      // the reason people read
	lacks  string      // what it cannot have now: an owner, a name
	differ string      // see why; "" until somebody asks
	fate   *fate       // what it is tied to; nil for nothing
	its    []string    // see writes; of the service mine
	mine   *ring.Service
	was    []string // see wrote; of the good one before
	before *ring.Good
	// lone is why instances of loneOf, a target, cannot run side by side.
	lone   string
	loneOf *ring.Service
	// spoiled is the verdict on what the plan wants to be reloaded in place, where
	// that failed: want has what was good in its stead.
	spoiled *ring.Verdict
}

// view makes the view of a service in force.
func (t *decider) view(v *service, app *ring.App, want *ring.Service) {
	id := ring.ID(app.Name, want.Name)
	want = t.looked(want)
	*v = service{id: id, app: app, want: want, all: t.seen[id], of: app, target: want}
	if g, ok := t.Facts.Good[id]; ok {
		v.good = t.goodNow(id, g)
	}
	v.row = t.Facts.Rollouts[id]
	t.views[id] = v
	t.live(v)
	t.probe(v.all, v.want, v.good)
	for _, in := range v.all {
		t.judge(v, in)
	}
}

// wanted is the key of what is said of the wanted version.
func (v *service) wanted() string { return ring.VersionKey(v.id, v.want.Version) }

// goodNow is a good service as this look has it: with what its image says of
// itself, and a person's count.
func (t *Pass) goodNow(id ring.ServiceID, g *ring.Good) *ring.Good {
	looked := t.looked(&g.Service)
	n := looked.Replicas
	if count, scaled := t.scaled(id); scaled && mayCount(&g.App, looked, count) {
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

// knobs are those of the way that v goes: forth, or back.
func (v *service) knobs() ring.Rollout {
	if v.restoring() && v.want.Rollout.Back != nil {
		return v.want.Rollout.Returning()
	}
	return v.target.Rollout
}

// service decides one service.
func (t *decider) service(v *service) {
	if v.fate == nil {
		t.weigh(v)
	}
	switch v.want.Kind { // both keep their hands off what is held
	case ring.JobK:
		t.job(v)
		return
	case ring.CronK:
		t.cron(v)
		return
	}
	if t.handsOff(v.id) {
		return
	}
	if t.busy(string(v.id)) {
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
		found := t.drift(v)
		t.decideBy(v, strategyOf(v).rules)
		t.putBack(v, found)
	}
}

// weigh chooses the target and gives the verdict on it; it moves nothing.
func (t *decider) weigh(v *service) {
	if _, failed := t.quarantine(v); failed { // it may be tried again
		t.roomier(v)
		t.acquit(v)
		t.mended(v)
		t.renewed(v)
	}
	t.choose(v)
	if v.want.Kind.Ends() {
		return
	}
	if t.handsOff(v.id) {
		t.standStill(v)
		return
	}
	t.begin(v)
	if few := t.fewSlots(v); v.row.Done && few != v.row.Few {
		row := v.row
		row.Few = few
		t.set(row)
	}
	if !v.halt.None() {
		t.standStill(v)
		return
	}
	t.account(v)
	t.tryContent(v)
}

// choose sets the target: the last good version while the wanted one failed
// (restore, quarantine) or waits for what it depends on.
func (t *Pass) choose(v *service) {
	v.failed, v.waits, v.says = nil, ring.Reason{}, ""
	v.halt = t.halted(v.id)
	if d, failed := t.quarantine(v); failed {
		failure := d // on its own: most have none, and none is made for those
		v.failed = &failure
	}
	v.of, v.target = v.app, v.want
	if v.failed != nil && v.restores() {
		v.of, v.target = &v.good.App, &v.good.Service
		v.says = v.failed.Reason
		return
	}
	if t.outrun(v) {
		v.waits = ring.Reason{Code: ring.WhyStateOlder, Says: "what runs is newer than what gitring remembers; it stays until the newest commit is in force"}
	} else if v.row.Version == v.want.Version { // begun: what it depends on gates only the beginning
		if why := t.undone(v); why != "" && !v.row.Done {
			v.waits, v.says = ring.Reason{Code: ring.WhyHostNotReady, Dead: true, Says: why}, why
			v.of, v.target = &v.good.App, &v.good.Service
			return
		}
		v.waits = t.before(v) // as after a person had a version tried again that it failed
	} else {
		v.waits = t.gate(v)
	}
	if v.waits.None() {
		return
	}
	v.says = v.waits.Says
	if v.good != nil {
		v.of, v.target = &v.good.App, &v.good.Service
	}
}

// restores says that a failure of the wanted version brings another one back.
func (v *service) restores() bool {
	return v.onFailure() == ring.OnFailureRestore && v.good != nil && v.good.Service.Version != v.want.Version
}

// restoring says that the target is not what the plan in force wants, because
// that failed.
func (v *service) restoring() bool { return v.failed != nil && v.target != v.want }

// paused says that the rollout stopped where it is: what runs is kept alive,
// nothing more is created or removed.
func (v *service) paused() bool {
	return v.failed != nil && !v.restoring() && v.onFailure() != ring.OnFailureContinue && !v.row.Done
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
