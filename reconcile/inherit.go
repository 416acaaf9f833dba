package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// One writer: what a service writes and what outlives its instances is written
// by one service at a time, unless one plan has several write it, which is their
// author's wish, or both say share. A service that is given another name
// changes hands so, and a volume that moves from one service to another. A host
// port is held as what is written is, and is never shared.

// transferPending is why the wanted version of v may not start yet: another service
// still runs, by an earlier plan, on what v is to write now, or may come back to
// it.
func (t *Pass) transferPending(v *service) ring.Reason {
	mine := v.wantedWrites()
	if len(mine) == 0 {
		return ring.Reason{}
	}
	for _, id := range t.holdersOf(mine) {
		other := t.views[id]
		for _, in := range t.seen[id] {
			if id == v.id || other != nil && (other == t.serviceBehind(v) || t.serviceBehind(other) == v) || !t.mayRun(other, in) { // those have gates of their own
				continue
			}
			if what := t.firstClash(v, v.want, mine, in.App, in.Service, in.Version, t.writtenOf(id, in)); what != "" {
				return t.waitsForHolder(v, id, what)
			}
		}
	}
	for _, s := range t.clusterServices() { // nothing of it may run now: it is started again at any time
		if id := ring.ID(s.App, s.Service); id != v.id {
			if what := t.firstClash(v, v.want, mine, s.App, s.Service, s.Version, s.Writes); what != "" {
				return t.waitsForHolder(v, id, what)
			}
		}
	}
	for _, other := range t.formersOf(mine) {
		if other == v || other == t.serviceBehind(v) || !other.mayReturn() {
			continue
		}
		g := &other.good.Service
		if what := t.firstClash(v, v.want, mine, other.app.Name, g.Name, g.Version, writesOf(&other.good.App, g)); what != "" {
			return t.waitsForHeir(v, other, what)
		}
	}
	return ring.Reason{}
}

// waitsForHolder is the reason while another service writes what v is to write.
func (t *Pass) waitsForHolder(v *service, id ring.ServiceID, what string) ring.Reason {
	if other := t.views[id]; other != nil {
		return t.waitsForHeir(v, other, what)
	}
	verb := "writes"
	if isPort(what) {
		verb = "publishes"
	}
	return ring.Reason{
		Code: ring.WhyTransferPending, On: id,
		Says: say("waits until %s is gone, which left the plan and %s %s", t.calledName(v, id), verb, what),
	}
}

// mayRun reports whether an instance runs, or will once it is healed.
func (t *Pass) mayRun(v *service, in *instance) bool {
	if in.Live() || in.mayRestart() {
		return true
	}
	if !in.Ended() || in.Kind.Ends() || in.intent == intentPark || in.intent == intentRemove || in.intent == intentStop {
		return false
	}
	if v == nil {
		return true
	}
	row, _ := t.slotRow(v, in)
	return !t.isResting(v, in) && !(row.Instance == in.ID && row.Stopped)
}

// waitsForHeir is the reason while v waits for another service of the plan to
// complete without what v is to write: a failure would bring it back to that.
func (t *Pass) waitsForHeir(v, other *service, what string) ring.Reason {
	name := t.calledName(v, other.id)
	why := ring.Reason{Code: ring.WhyTransferPending, On: other.id}
	failed, ok := t.Facts.Verdict(other.id, other.want.Version)
	switch {
	case isPort(what) && endsAs(v) && !endsAs(other) && anyClash(other.wantedWrites(), what):
		why.Dead, why.Says = true, say("waits for %s to let go of %s, which both publish: gitring scale %s=0 --reason '…' lets it run", name, what, other.id)
	case other.app.Name == v.app.Name && t.dependsOnAny(v.app, other.want.Name, []string{v.want.Name}), t.inTurn(other, v, map[*service]bool{}):
		why.Dead, why.Says = true, say("waits for %s to let go of %s, and %s waits for it: move it in a commit of its own", name, what, name)
	case ok && !failed.Good:
		why.Dead, why.Says = true, say("waits for %s to let go of %s, and that failed: %s", name, what, failed.Reason)
	default:
		why.Says = say("waits for %s to let go of %s", name, what)
	}
	return why
}

// inTurn reports whether x waits for what v is to give up, at whatever distance: in a
// ring of services that take over from each other none can begin.
func (t *Pass) inTurn(x, v *service, met map[*service]bool) bool {
	if met[x] {
		return false
	}
	met[x] = true
	lacks := x.wantedWrites()
	if x.good != nil {
		lacks = subtract(lacks, writesOf(&x.good.App, &x.good.Service))
	}
	return slices.ContainsFunc(t.formersOf(lacks), func(y *service) bool {
		gives := subtract(writesOf(&y.good.App, &y.good.Service), y.wantedWrites())
		gives = exclusiveWrites(x.want.Share && y.good.Service.Share, gives)
		return y != x && firstCommon(gives, lacks) != "" && (y == v || t.inTurn(y, v, met))
	})
}

// mayReturn reports whether a failure would bring the last good version back.
func (v *service) mayReturn() bool {
	return !v.want.Kind.Ends() && v.wouldRestore()
}

// isBeingMade reports whether what v writes is being made for another service: a second
// make of the same thing would not know that it was there.
func (t *Pass) isBeingMade(v *service) bool {
	mine := writesOf(v.of, v.target)
	return len(mine) > 0 && slices.ContainsFunc(t.stepsOn(mine), func(a writing) bool {
		return a.makes && ring.ID(a.app, a.service) != v.id
	})
}

// firstClash is the first of what v writes as s that another service may not write
// at the same time, though it does as that version; "" when there is nothing.
func (t *Pass) firstClash(v *service, s *ring.Service, mine []string, app, name string, version ring.Version, its []string) string {
	id := ring.ID(app, name)
	other := t.views[id]
	its = exclusiveWrites(s.Share && t.sharesOf(id, version), its)
	planned := other != nil && !other.stands && !v.stands && t.views[v.id] == v && s.Version == v.want.Version
	for _, what := range mine {
		if !anyClash(its, what) {
			continue
		}
		if isPort(what) && (endsAs(v) || endsAs(other)) { // one plan may have a run publish what its worker does, in turn
			return what
		}
		if planned && t.inOnePlan(v, other) && anyClash(other.wantedWrites(), what) {
			continue
		}
		if v.good != nil && s.Version == v.good.Service.Version && slices.Contains(v.good.With[what], id) {
			continue
		}
		if g := t.Facts.Good[id]; g != nil && g.Service.Version == version && besideOn(g, what, v.id) {
			continue
		}
		return what
	}
	return ""
}

// endsAs reports whether v, which may be nil, is a job or a cron job.
func endsAs(v *service) bool { return v != nil && v.want.Kind.Ends() }

// besideOn reports whether a version that was good ran beside a service on what.
func besideOn(g *ring.Good, what string, id ring.ServiceID) bool {
	for its, ids := range g.With {
		if slices.Contains(ids, id) && anyClash([]string{its}, what) {
			return true
		}
	}
	return false
}

// inOnePlan reports whether two services are of one plan. What two repositories write
// at once is for their authors to agree upon.
func (t *Pass) inOnePlan(a, b *service) bool {
	return a.app.Name == b.app.Name || a.app.Commit == b.app.Commit || a.app.Source != b.app.Source
}

// alsoWriting are, by what v writes, the others that its plan has write it too.
func (t *Pass) alsoWriting(v *service) map[string][]ring.ServiceID {
	mine := v.wantedWrites()
	if len(mine) == 0 || v.stands {
		return nil
	}
	if t.writers == nil {
		t.writers = map[string][]*service{}
		for _, x := range t.inOrder() {
			if x.stands {
				continue // no plan has it
			}
			for _, what := range x.wantedWrites() {
				t.writers[anyAddress(what)] = append(t.writers[anyAddress(what)], x)
			}
		}
	}
	var out map[string][]ring.ServiceID
	for _, what := range mine {
		for _, x := range t.writers[anyAddress(what)] {
			if x == v || slices.Contains(out[what], x.id) || !anyClash(x.wantedWrites(), what) {
				continue
			}
			if !t.inOnePlan(v, x) && !(v.good != nil && slices.Contains(v.good.With[what], x.id)) {
				continue // what began to write it together goes on, whichever of the two an undo, a hold or a refusal leaves behind
			}
			if out == nil {
				out = map[string][]ring.ServiceID{}
			}
			out[what] = append(out[what], x.id)
		}
	}
	return out
}

// calledName is a service as v's reasons name it.
func (t *Pass) calledName(v *service, id ring.ServiceID) string {
	if app, name := id.Split(); app == v.app.Name {
		return name
	}
	return string(id)
}

// writtenBy is what an instance writes; nil for a version that is not remembered.
func (t *Pass) writtenBy(in *instance) []string {
	return t.writtenOf(ring.ID(in.App, in.Service), in)
}

// writtenOf is writtenBy for an instance of a service that is at hand.
func (t *Pass) writtenOf(id ring.ServiceID, in *instance) []string {
	return t.writtenAs(id, t.views[id], in)
}

// versionWrites are what the wanted version writes and what else still runs does, or
// may run in a moment: a create that is in flight, or that nobody heard the end
// of, is seen after the plan that asked for it was superseded.
func (t *Pass) versionWrites(v *service, expected []ring.Version) map[ring.Version][]string {
	var out map[ring.Version][]string
	add := func(version ring.Version, what []string) {
		if len(what) == 0 {
			return
		}
		if out == nil {
			out = map[ring.Version][]string{}
		}
		out[version] = what
	}
	for _, in := range v.instances {
		add(in.Version, t.writtenAs(v.id, v, in))
	}
	for _, version := range expected {
		add(version, v.rollout.Writes[version])
	}
	add(v.want.Version, v.wantedWrites())
	return out
}

// expectedVersions are the versions of which an instance may appear though no plan wants
// them any more: of the rollout before this one, and of a step in flight.
func (t *Pass) expectedVersions(v *service) []ring.Version {
	out := []ring.Version{v.rollout.Version}
	if a := t.inFlight(v.id); a != nil && a.Version != v.rollout.Version {
		out = append(out, a.Version)
	}
	return out
}

// sharingVersions are the versions of what runs, and the wanted one, that share what they write.
func (t *Pass) sharingVersions(v *service, expected []ring.Version) []ring.Version {
	var out []ring.Version
	if v.want.Share {
		out = append(out, v.want.Version)
	}
	for _, in := range v.instances {
		if v.sharesAs(in.Version) && !slices.Contains(out, in.Version) {
			out = append(out, in.Version)
		}
	}
	for _, version := range expected {
		if slices.Contains(v.rollout.Shared, version) && !slices.Contains(out, version) {
			out = append(out, version)
		}
	}
	return out
}

// isAwaitedAway reports whether a service of the plan waits for an instance of one that
// left to be gone: that serves nobody any more who could wait for it.
func (t *Pass) isAwaitedAway(id ring.ServiceID, in *instance) bool {
	app, _ := id.Split()
	its, share := t.writtenBy(in), t.sharesOf(id, in.Version)
	all := t.apps[app]
	for i := range all {
		v := &all[i]
		if v.rollout.Version == v.want.Version {
			continue
		}
		waits := exclusiveWrites(v.want.Share && share, its)
		if slices.ContainsFunc(v.wantedWrites(), func(what string) bool { return anyClash(waits, what) }) {
			return true
		}
	}
	return false
}

// givenUp reports whether what v's instances are tied to is on its way out, with them:
// nothing of v is healed until that is gone.
func (t *Pass) givenUp(v *service) bool {
	if len(t.tied) == 0 {
		return false // nothing is tied to anything
	}
	f := t.Facts.Apps[v.app.Name]
	if f.App.NoPrune || !t.isFresh(v.app) {
		return false
	}
	for _, in := range v.instances {
		for _, owner := range in.Joined {
			y := t.instanceByID(owner)
			if y == nil || y.App != in.App {
				continue
			}
			if id := ring.ID(y.App, y.Service); t.views[id] == nil && t.isAwaitedAway(id, y) {
				return true
			}
		}
	}
	return false
}
