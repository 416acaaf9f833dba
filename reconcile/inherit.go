package reconcile

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// One writer: what a service writes and what outlives its instances is written
// by one service at a time, unless one plan has several write it, which is their
// author's wish, or both say share. A service that is given another name
// changes hands so, and a volume that moves from one service to another. A host
// port is held as what is written is, and is never shared.

// inherits is why the wanted version of v may not start yet: another service
// still runs, by an earlier plan, on what v is to write now, or may come back to
// it.
func (t *Pass) inherits(v *service) ring.Reason {
	mine := v.writes()
	if len(mine) == 0 {
		return ring.Reason{}
	}
	for _, id := range t.holdersOf(mine) {
		other := t.views[id]
		for _, in := range t.seen[id] {
			if id == v.id || !t.mayRun(other, in) {
				continue
			}
			what := t.clash(v, v.want, mine, in.App, in.Service, in.Version, t.writtenOf(id, in))
			switch {
			case what == "":
			case other == nil:
				verb := "writes"
				if isPort(what) {
					verb = "publishes"
				}
				return ring.Reason{
					Code: ring.WhyTransferPending, On: id,
					Says: say("waits until %s is gone, which left the plan and %s %s", t.called(v, id), verb, what),
				}
			default:
				return t.waitsForHeir(v, other, what)
			}
		}
	}
	for _, other := range t.formersOf(mine) {
		if other == v || !other.mayReturn() {
			continue
		}
		g := &other.good.Service
		if what := t.clash(v, v.want, mine, other.app.Name, g.Name, g.Version, writes(&other.good.App, g)); what != "" {
			return t.waitsForHeir(v, other, what)
		}
	}
	return ring.Reason{}
}

// mayRun says that an instance runs, or will once it is healed.
func (t *Pass) mayRun(v *service, in *inst) bool {
	if in.Live() || in.restartable() {
		return true
	}
	if !in.Ended() || in.Kind.Ends() || in.intent == intentPark || in.intent == intentRemove || in.intent == intentStop {
		return false
	}
	if v == nil {
		return true
	}
	row, _ := t.slot(v, in)
	return !t.rests(v, in) && !(row.Instance == in.ID && row.Stopped)
}

// waitsForHeir is the reason while v waits for another service of the plan to
// complete without what v is to write: a failure would bring it back to that.
func (t *Pass) waitsForHeir(v, other *service, what string) ring.Reason {
	name := t.called(v, other.id)
	why := ring.Reason{Code: ring.WhyTransferPending, On: other.id}
	failed, ok := t.Facts.Verdict(other.id, other.want.Version)
	switch {
	case other.app.Name == v.app.Name && t.needs(v.app, other.want.Name, []string{v.want.Name}), t.inTurn(other, v, map[*service]bool{}):
		why.Dead, why.Says = true, say("waits for %s to let go of %s, and %s waits for it: move it in a commit of its own", name, what, name)
	case ok && !failed.Good:
		why.Dead, why.Says = true, say("waits for %s to let go of %s, and that failed: %s", name, what, failed.Reason)
	default:
		why.Says = say("waits for %s to let go of %s", name, what)
	}
	return why
}

// inTurn says that x waits for what v is to give up, at whatever distance: in a
// ring of services that take over from each other none can begin.
func (t *Pass) inTurn(x, v *service, met map[*service]bool) bool {
	if met[x] {
		return false
	}
	met[x] = true
	lacks := x.writes()
	if x.good != nil {
		lacks = except(lacks, writes(&x.good.App, &x.good.Service))
	}
	return slices.ContainsFunc(t.formersOf(lacks), func(y *service) bool {
		gives := except(writes(&y.good.App, &y.good.Service), y.writes())
		gives = unshared(x.want.Share && y.good.Service.Share, gives)
		return y != x && common(gives, lacks) != "" && (y == v || t.inTurn(y, v, met))
	})
}

// except is some without what is among others.
func except(some, others []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(what string) bool { return slices.Contains(others, what) })
}

// mayReturn says that a failure would bring the last good version back.
func (v *service) mayReturn() bool {
	return !v.want.Kind.Ends() && v.restores()
}

// occupied is why an instance of s, which is what v runs or ran, may not start now:
// another service writes what it writes. What is tied to v and on its way out with
// it is stopped first, because it waits for v.
func (t *decider) occupied(v *service, app *ring.App, s *ring.Service) string {
	if s == nil {
		return ""
	}
	return t.occupiedOn(v, s, writes(app, s))
}

// occupiedOn is occupied for what an instance of s writes.
func (t *decider) occupiedOn(v *service, s *ring.Service, mine []string) string {
	if len(mine) == 0 {
		return ""
	}
	for _, a := range t.stepsOn(mine) {
		id := ring.ID(a.app, a.service)
		if id == v.id || !a.runs {
			continue
		}
		if what := t.clash(v, s, mine, a.app, a.service, a.version, a.its); what != "" {
			return say("waits for %s to let go of %s", t.called(v, id), what)
		}
	}
	for _, id := range t.holdersOf(mine) {
		other := t.views[id]
		for _, in := range t.seen[id] {
			if id == v.id || !in.Live() && !in.restartable() {
				continue
			}
			what := t.clash(v, s, mine, in.App, in.Service, in.Version, t.writtenOf(id, in))
			if what == "" {
				continue
			}
			why := say("waits for %s to let go of %s", t.called(v, id), what)
			if other != nil && v.fate != nil && v.fate == other.fate && in.Version != other.target.Version && !in.Kind.Ends() && !t.busy(string(id)) {
				t.clear(other, in, other.keep(in), say("%s needs %s", v.want.Name, what))
			}
			return why
		}
	}
	return ""
}

// making says that what v writes is being made for another service: a second
// make of the same thing would not know that it was there.
func (t *Pass) making(v *service) bool {
	mine := writes(v.of, v.target)
	return len(mine) > 0 && slices.ContainsFunc(t.stepsOn(mine), func(a writing) bool {
		return a.makes && ring.ID(a.app, a.service) != v.id
	})
}

// occupiedFor is occupied for an instance that is there.
func (t *decider) occupiedFor(v *service, in *inst) string {
	switch s := v.runs(in); s {
	case nil: // of a version in between, of which only what it writes is remembered
		its, share := t.writtenOf(v.id, in), slices.Contains(v.row.Shared, in.Version)
		given := except(its, v.writes()) // to others meanwhile
		if why := t.occupiedOn(v, &ring.Service{Name: v.want.Name, Version: in.Version, Share: share}, given); why != "" {
			return why
		}
		as := *v.want
		as.Share = share
		return t.occupiedOn(v, &as, except(its, given))
	case v.want:
		return t.occupied(v, v.app, s)
	default:
		return t.occupied(v, &v.good.App, s)
	}
}

// clash is the first of what v writes as s that another service may not write
// at the same time, though it does as that version; "" when there is nothing.
func (t *Pass) clash(v *service, s *ring.Service, mine []string, app, name string, version ring.Version, its []string) string {
	id := ring.ID(app, name)
	other := t.views[id]
	its = unshared(s.Share && t.sharesOf(id, version), its)
	planned := other != nil && t.views[v.id] == v && s.Version == v.want.Version
	for _, what := range mine {
		if !among(its, what) {
			continue
		}
		if planned && t.together(v, other) && among(other.writes(), what) {
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

// besideOn says that a version that was good ran beside a service on what.
func besideOn(g *ring.Good, what string, id ring.ServiceID) bool {
	for its, ids := range g.With {
		if slices.Contains(ids, id) && among([]string{its}, what) {
			return true
		}
	}
	return false
}

// together says that two services are of one plan. What two repositories write
// at once is for their authors to agree upon.
func (t *Pass) together(a, b *service) bool {
	return a.app.Name == b.app.Name || a.app.Commit == b.app.Commit || a.app.Source != b.app.Source
}

// beside are, by what v writes, the others that its plan has write it too.
func (t *Pass) beside(v *service) map[string][]ring.ServiceID {
	mine := v.writes()
	if len(mine) == 0 {
		return nil
	}
	if t.writers == nil {
		t.writers = map[string][]*service{}
		for _, x := range t.inOrder() {
			for _, what := range x.writes() {
				t.writers[anyAddress(what)] = append(t.writers[anyAddress(what)], x)
			}
		}
	}
	var out map[string][]ring.ServiceID
	for _, what := range mine {
		for _, x := range t.writers[anyAddress(what)] {
			if x == v || slices.Contains(out[what], x.id) || !among(x.writes(), what) {
				continue
			}
			if !t.together(v, x) && !(v.good != nil && slices.Contains(v.good.With[what], x.id)) {
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

// called is a service as v's reasons name it.
func (t *Pass) called(v *service, id ring.ServiceID) string {
	if app, name := id.Split(); app == v.app.Name {
		return name
	}
	return string(id)
}

// writtenBy is what an instance writes; nil for a version that is not remembered.
func (t *Pass) writtenBy(in *inst) []string {
	return t.writtenOf(ring.ID(in.App, in.Service), in)
}

// writtenOf is writtenBy for an instance of a service that is at hand.
func (t *Pass) writtenOf(id ring.ServiceID, in *inst) []string {
	return t.writtenAs(id, t.views[id], in)
}

// writtenAs is writtenOf for a service whose view, which may be nil, is at hand too.
func (t *Pass) writtenAs(id ring.ServiceID, v *service, in *inst) []string {
	if v != nil && v.want.Version == in.Version {
		return v.writes()
	}
	if g, ok := t.Facts.Good[id]; ok && g.Service.Version == in.Version {
		return v.wrote(g)
	}
	if in.Kind.Ends() {
		if what, known := t.runWrites(id, in); known {
			return what
		}
	} else if what, known := t.Facts.Rollouts[id].Writes[in.Version]; known {
		return what
	}
	return mounted(in)
}

// mounted is what an instance holds by its mounts and ports, in the words of writes: all that
// is known of one whose version a lost database alone knew.
func mounted(in *inst) []string {
	var out []string
	for _, what := range in.Writes {
		out = append(out, what)
		if !strings.HasPrefix(what, "volume ") && !isPort(what) {
			out = append(out, "data folder "+what)
		}
	}
	return out
}

// written are what the wanted version writes and what else still runs does, or
// may run in a moment: a create that is in flight, or that nobody heard the end
// of, is seen after the plan that asked for it was superseded.
func (t *Pass) written(v *service, expected []ring.Version) map[ring.Version][]string {
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
	for _, in := range v.all {
		add(in.Version, t.writtenAs(v.id, v, in))
	}
	for _, version := range expected {
		add(version, v.row.Writes[version])
	}
	add(v.want.Version, v.writes())
	return out
}

// expected are the versions of which an instance may appear though no plan wants
// them any more: of the rollout before this one, and of a step in flight.
func (t *Pass) expected(v *service) []ring.Version {
	out := []ring.Version{v.row.Version}
	if a := t.inFlight(v.id); a != nil && a.Version != v.row.Version {
		out = append(out, a.Version)
	}
	return out
}

// shared are the versions of what runs, and the wanted one, that share what they write.
func (t *Pass) shared(v *service, expected []ring.Version) []ring.Version {
	var out []ring.Version
	if v.want.Share {
		out = append(out, v.want.Version)
	}
	for _, in := range v.all {
		if v.sharesAs(in.Version) && !slices.Contains(out, in.Version) {
			out = append(out, in.Version)
		}
	}
	for _, version := range expected {
		if slices.Contains(v.row.Shared, version) && !slices.Contains(out, version) {
			out = append(out, version)
		}
	}
	return out
}

// sharesAs says that a version of v shares what it writes, as far as that is remembered.
func (v *service) sharesAs(version ring.Version) bool {
	switch {
	case version == v.want.Version:
		return v.want.Share
	case v.good != nil && version == v.good.Service.Version:
		return v.good.Service.Share
	}
	return slices.Contains(v.row.Shared, version)
}

// sharesOf is sharesAs for a service that may have left its plan: what is remembered of
// it outlasts it until its last instance is gone.
func (t *Pass) sharesOf(id ring.ServiceID, version ring.Version) bool {
	if v := t.views[id]; v != nil {
		return v.sharesAs(version)
	}
	if g := t.Facts.Good[id]; g != nil && g.Service.Version == version {
		return g.Service.Share
	}
	return slices.Contains(t.Facts.Rollouts[id].Shared, version)
}

// inherited says that a service of the plan waits for an instance of one that
// left to be gone: that serves nobody any more who could wait for it.
func (t *Pass) inherited(id ring.ServiceID, in *inst) bool {
	app, _ := id.Split()
	its, share := t.writtenBy(in), t.sharesOf(id, in.Version)
	all := t.apps[app]
	for i := range all {
		v := &all[i]
		if v.row.Version == v.want.Version {
			continue
		}
		waits := unshared(v.want.Share && share, its)
		if slices.ContainsFunc(v.writes(), func(what string) bool { return among(waits, what) }) {
			return true
		}
	}
	return false
}

// givenUp says that what v's instances are tied to is on its way out, with them:
// nothing of v is healed until that is gone.
func (t *Pass) givenUp(v *service) bool {
	if len(t.ties) == 0 {
		return false // nothing is tied to anything
	}
	f := t.Facts.Apps[v.app.Name]
	if f.App.NoPrune || !t.fresh(v.app) {
		return false
	}
	for _, in := range v.all {
		for _, owner := range in.Joined {
			y := t.instance(owner)
			if y == nil {
				continue
			}
			if id := ring.ID(y.App, y.Service); t.views[id] == nil && t.inherited(id, y) {
				return true
			}
		}
	}
	return false
}

// writes are what a service writes and what outlives its instances, by the name
// that the host knows it by, and the ports of the host that it publishes.
func writes(app *ring.App, s *ring.Service) []string {
	if app == nil || len(s.Spec.Mounts) == 0 && len(s.Image.Volumes) == 0 && len(s.Spec.Ports) == 0 {
		return nil
	}
	out := ports(s)
	for _, m := range app.Mounts(s) {
		switch {
		case !m.Outlives():
		case m.Kind == ring.MountVolume:
			v := ring.Volume{Key: m.Source}
			if i := slices.IndexFunc(app.Volumes, func(x ring.Volume) bool { return x.Key == m.Source }); i >= 0 {
				v = app.Volumes[i]
			}
			out = append(out, "volume "+v.EngineName(app.Name))
		case m.Kind == ring.MountBind:
			out = append(out, path.Clean(m.Source))
		default:
			out = append(out, "data folder "+path.Join(cmp.Or(app.DataRoot, ring.DataRootMark), m.Source))
		}
	}
	return out
}

// writes are those of what v wants: the rules, and those of other services, ask for
// them again and again.
func (v *service) writes() []string {
	if v.mine != v.want {
		v.mine, v.its = v.want, writes(v.app, v.want)
	}
	return v.its
}

// wrote are those of a good version, asked for by each instance of it; v may be nil.
func (v *service) wrote(g *ring.Good) []string {
	if v == nil {
		return writes(&g.App, &g.Service)
	}
	if v.before != g {
		v.before, v.was = g, writes(&g.App, &g.Service)
	}
	return v.was
}

// ports are the ports of the host that a service publishes, one by one. Where an
// address is said, it is part.
func ports(s *ring.Service) []string {
	var out []string
	for _, p := range s.Spec.Ports {
		if p.HostPort != "" {
			out = append(out, portWord+p.Published())
		}
	}
	return out
}

const portWord = ring.PortWord

func isPort(what string) bool { return strings.HasPrefix(what, portWord) }

// among says that some hold what cannot be had beside what: the same, or a port of
// another address that clashes with it.
func among(some []string, what string) bool {
	if slices.Contains(some, what) {
		return true
	}
	if !isPort(what) {
		return false
	}
	p := ring.ParsePublished(what[len(portWord):])
	return slices.ContainsFunc(some, func(other string) bool {
		return isPort(other) && p.Clashes(ring.ParsePublished(other[len(portWord):]))
	})
}

// anyAddress is the key under which all that may clash is found: a port without
// its address.
func anyAddress(what string) string {
	if i := strings.LastIndexByte(what, ':'); i >= 0 && isPort(what) {
		return portWord + what[i+1:]
	}
	return what
}

// unshared is what of some nobody else may have at the same time: what is shared
// may be written by several, but a port is always one service's.
func unshared(share bool, some []string) []string {
	if !share {
		return some
	}
	return slices.DeleteFunc(slices.Clone(some), func(what string) bool { return !isPort(what) })
}
