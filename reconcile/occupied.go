package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// occupiedReason is why an instance of s, which is what v runs or ran, may not start now:
// another service writes what it writes. What is tied to v and on its way out with
// it is stopped first, because it waits for v.
func (t *decider) occupiedReason(v *service, app *ring.App, s *ring.Service) string {
	if s == nil {
		return ""
	}
	return t.occupiedByOthers(v, s, writesOf(app, s))
}

// occupiedByOthers is occupied for what an instance of s writes.
func (t *decider) occupiedByOthers(v *service, s *ring.Service, mine []string) string {
	if len(mine) == 0 {
		return ""
	}
	for _, a := range t.stepsOn(mine) {
		id := ring.ID(a.app, a.service)
		if id == v.id || !a.runs {
			continue
		}
		if what := t.firstClash(v, s, mine, a.app, a.service, a.version, a.its); what != "" {
			return say("waits for %s to let go of %s", t.calledName(v, id), what)
		}
	}
	for _, id := range t.holdersOf(mine) {
		other := t.views[id]
		for _, in := range t.seen[id] {
			if t.onCluster() && in.Kind.Ends() && !in.Live() && in.State != ring.StateRemoving {
				continue // a run that has not begun, or is over
			}
			// What a cluster shows else, it starts by itself, or has yet to stop.
			if id == v.id || !t.onCluster() && !in.Live() && !in.mayRestart() && !t.isOutrunBy(id, in) {
				continue
			}
			what := t.firstClash(v, s, mine, in.App, in.Service, in.Version, t.writtenOf(id, in))
			if what == "" {
				continue
			}
			why := say("waits for %s to let go of %s", t.calledName(v, id), what)
			if !t.onCluster() && other != nil && v.group != nil && v.group == other.group && in.Version != other.target.Version && !in.Kind.Ends() && !t.isBusy(string(id)) {
				t.clearInstance(other, in, other.intentFor(in), say("%s needs %s", v.want.Name, what))
			}
			return why
		}
	}
	return ""
}

// occupiedReasonOf is occupied for an instance that is there.
func (t *decider) occupiedReasonOf(v *service, in *instance) string {
	switch s := v.specOf(in); s {
	case nil: // of a version in between, of which only what it writes is remembered
		its, share := t.writtenOf(v.id, in), slices.Contains(v.rollout.Shared, in.Version)
		given := subtract(its, v.wantedWrites()) // to others meanwhile
		if why := t.occupiedByOthers(v, &ring.Service{Name: v.want.Name, Version: in.Version, Share: share}, given); why != "" {
			return why
		}
		as := *v.want
		as.Share = share
		return t.occupiedByOthers(v, &as, subtract(its, given))
	case v.want:
		return t.occupiedReason(v, v.app, s)
	default:
		return t.occupiedReason(v, &v.good.App, s)
	}
}
