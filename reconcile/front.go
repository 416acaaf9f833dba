package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// A front stands before a service: a service of its own, whose container gives each request
// to an instance. It is told whole tables. What it is known to have in force, and what may
// come into force there, is read here; nothing here decides.

// toldFront is one container of the front of a service, with what it was told.
type toldFront struct {
	in *instance
	// seen is what it said of itself last; nil while it does not answer.
	seen *ring.FrontSeen
	// table is the newest that it is known to have taken; nil is none.
	table *ring.FrontTable
	// sent may come into force there at any moment; nil is none.
	sent *ring.FrontTable
	// open may, too, and is older.
	open *ring.FrontTable
	// known reports whether that is all that it may have in force.
	known bool
	// wrong is why nothing is believed of what it says: then it counts as silent.
	wrong string
}

// watchFronts has the containers of a front asked that run.
func (t *decider) watchFronts(v *service) {
	if !v.isFront() {
		return
	}
	for _, in := range v.instances {
		if in.State == ring.StateRunning {
			t.fronts = append(t.fronts, ring.FrontAt{Container: in.ID, Name: in.madeName(), Service: ring.ID(v.app.Name, v.want.FrontOf), Since: in.Since})
		}
	}
}

// madeName is the name that a front was made with: its folders on the host are called after
// that, whatever others call it.
func (in *instance) madeName() string {
	return ring.ContainerName(in.App, in.Service, in.Slot, in.Version)
}

// route is how a front carries the requests of the service; nil is no front. It is of the
// target where that has one, else of what is wanted. What was good counts until the service
// serves without a front.
func (v *service) route() *ring.Route {
	if v.target.Route != nil {
		return v.target.Route
	}
	if v.want.Route == nil && v.good != nil {
		return v.good.Service.Route
	}
	return v.want.Route
}

// hasFront reports whether a front carries the requests of the service.
func (v *service) hasFront() bool { return v.route() != nil }

// isFront reports whether the service is the front of another one.
func (v *service) isFront() bool { return v.want.FrontOf != "" }

// frontID is the service that is the front of id.
func frontID(id ring.ServiceID) ring.ServiceID { return id + ring.FrontSuffix }

// frontsOf are the containers of the front of a service that were ever started and may be in
// the way of a request, in the order of instances.
func (t *Pass) frontsOf(id ring.ServiceID) []toldFront {
	if all, known := t.by.fronts[id]; known {
		return all
	}
	var out []toldFront
	if !t.isFrontOf(id) {
		return nil // of that name, and no front
	}
	row := t.Facts.Fronts[id]
	for _, in := range t.seen[frontID(id)] {
		if in.State == ring.StateCreated || !in.Live() && (in.intent == intentPark || in.intent == intentRemove) || t.isNamedLikeFront(id, in) {
			continue
		}
		out = append(out, t.toldFront(in, row))
	}
	put(&t.by.fronts, id, out)
	return out
}

// isFrontOf reports whether the service of the front's name is one, by the plan in force or as
// it was last good.
func (t *Pass) isFrontOf(id ring.ServiceID) bool {
	if g := t.Facts.Good[frontID(id)]; g != nil && g.Service.FrontOf != "" {
		return true
	}
	if _, told := t.Facts.Fronts[id]; told {
		return true
	}
	app, name := id.Split()
	all := t.Facts.Apps[app].App.Services
	return slices.ContainsFunc(all, func(s ring.Service) bool { return s.FrontOf == name })
}

// isNamedLikeFront reports whether an instance is of a service that an author gave the name
// that a front had before.
func (t *Pass) isNamedLikeFront(id ring.ServiceID, in *instance) bool {
	if g := t.Facts.Good[frontID(id)]; g != nil && g.Service.FrontOf == "" && g.Service.Version == in.Version {
		return true
	}
	app, name := frontID(id).Split()
	force := t.Facts.Apps[app].App
	s, ok := force.Service(name)
	return ok && s.FrontOf == "" && s.Version == in.Version
}

// toldFront is what a container of a front was told, by what is remembered and by what it
// says. What it says counts where it is newer: the database may have been lost.
func (t *Pass) toldFront(in *instance, row ring.FrontRow) toldFront {
	f := toldFront{in: in, known: row.Front == in.ID || !in.Live()}
	if row.Front == in.ID {
		f.table = &row.Table
	}
	if seen, answers := t.Fronts[in.ID]; answers && in.State == ring.StateRunning {
		if f.wrong = disbelieved(in, seen, row); f.wrong == "" {
			f.seen, f.known = &seen, true
		}
		switch {
		case f.wrong != "":
		case seen.Generation == 0 || f.table != nil && seen.Generation <= f.table.Generation:
		case f.table == nil && seen.Generation == 1 && seen.Table != nil && len(seen.Table.Instances) == 0:
			// the table that it was made with: nobody told it any
		case seen.Table != nil:
			f.table = t.bounded(*seen.Table)
		default:
			f.known = false // it has another table, and does not say which
		}
	}
	if row.SentTo == in.ID && row.Sent != nil && (f.table == nil || row.Sent.Generation > f.table.Generation) {
		f.sent = row.Sent
	}
	if open, any := row.Open[in.ID]; any && (f.table == nil || open.Generation > f.table.Generation) {
		f.open = &open
	}
	return f
}

// mayName reports whether a table that the front may have in force names an instance.
func (f *toldFront) mayName(name string) bool {
	if !f.known || f.table.State(name).State != "" || f.sent.State(name).State != "" || f.open.State(name).State != "" {
		return true
	}
	return f.seen != nil && f.seen.Table.State(name).State != ""
}

// lastTable is the newest table that the front was told; nil where it was told none.
func (f *toldFront) lastTable() *ring.FrontTable {
	if f.sent != nil {
		return f.sent
	}
	return f.table
}

// has reports whether the front has the newest table that it was told in force, and says so.
func (f *toldFront) has() bool {
	return f.seen != nil && f.known && f.sent == nil && f.table != nil && f.seen.Generation == f.table.Generation
}

// reached is what the front found when it tried to reach an instance; false where it has not
// tried.
func (f *toldFront) reached(name string) (ring.FrontInstanceSeen, bool) {
	if f.seen == nil {
		return ring.FrontInstanceSeen{}, false
	}
	i := slices.IndexFunc(f.seen.Instances, func(x ring.FrontInstanceSeen) bool { return x.Name == name })
	if i < 0 {
		return ring.FrontInstanceSeen{}, false
	}
	return f.seen.Instances[i], true
}

// untoldTable is why the front of a service cannot be told its table though it answers, as where
// the disk is full; "" where nothing says so.
func (t *Pass) untoldTable(v *service) string {
	if !slices.ContainsFunc(t.frontsOf(v.id), func(f toldFront) bool { return f.in.State == ring.StateRunning && f.seen != nil }) {
		return ""
	}
	route := ring.Action{Kind: ring.DoRoute, App: v.app.Name, Service: v.want.Name}
	if try := t.Tries[route.Target()]; try.Kind == ring.DoRoute && try.Err != "" {
		return "its front is not told its table: " + try.Err
	}
	return ""
}

// reachesNobody tells of a front that reaches none of those that it sends requests to; ""
// where it reaches one.
func (f *toldFront) reachesNobody() string {
	reached, why := false, ""
	for _, x := range f.table.Instances {
		if x.State != ring.FrontActive {
			continue
		}
		seen, tried := f.reached(x.Name)
		reached = reached || seen.Reached || !tried
		why = seen.Why
	}
	if why != "" && !reached {
		return "its front reaches no instance: " + why
	}
	return ""
}

// frontLacks is why the front of a service does not serve; "" where it does, and where it runs
// and does not answer, because it may serve all the same.
func (t *Pass) frontLacks(id ring.ServiceID) string {
	runs := false
	all := t.frontsOf(id)
	for i := range all {
		f := &all[i]
		if f.in.State != ring.StateRunning {
			continue
		}
		runs = true
		switch {
		case f.seen == nil:
		case f.table == nil:
			return "its front has not taken its table yet"
		case f.reachesNobody() != "":
			return f.reachesNobody()
		}
	}
	if !runs {
		return "its front does not run yet"
	}
	return ""
}

// standsBy reports whether an instance that is ready gets no requests for now: one of two full
// sets, or one of a version that failed. Where nothing else is there it gets them all the same.
func (t *Pass) standsBy(v *service, in *instance) bool {
	if !v.hasFront() {
		return false
	}
	if v.failed != nil {
		return in.Version == v.want.Version && v.onFailure() != ring.OnFailureContinue
	}
	if v.target != v.want || v.rollout.Done || v.rollout.Version != v.want.Version || !strategyOf(v).secondSet {
		return false
	}
	switched := !v.rollout.Switched.IsZero()
	return (in.Version == v.want.Version) != switched
}

// unrouted is why an instance that is ready gets no requests by its front; "" where it does,
// and where no front has taken a table yet.
func (t *Pass) unrouted(v *service, in *instance) string {
	if !v.hasFront() {
		return ""
	}
	name := ring.FrontName(in.ID)
	for i := range t.frontsOf(v.id) {
		f := &t.by.fronts[v.id][i]
		state := f.table.State(name).State
		if f.table == nil || f.in.State != ring.StateRunning || state == ring.FrontActive {
			continue
		}
		if seen, _ := f.reached(name); state == ring.FrontWarm && seen.Reached && t.standsBy(v, in) {
			continue
		}
		if seen, tried := f.reached(name); tried && !seen.Reached {
			return "its front cannot reach it: " + seen.Why
		}
		return "its front does not send it requests yet"
	}
	return ""
}

// isOut reports whether nothing goes to an instance by a front any more, so that a stop cuts
// nothing. What a front has in force that does not answer is not known to be over.
func (t *Pass) isOut(v *service, in *instance) bool {
	if v.isFront() {
		return t.frontLeft(v, in)
	}
	if !in.Live() || !v.hasFront() && (v.app.NoPrune || len(t.seen[frontID(v.id)]) == 0) {
		return true
	}
	if t.isMadeToServe(frontID(v.id)) && t.liesNamed(v.id, in) {
		return false // it begins by the table on its disk
	}
	name := ring.FrontName(in.ID)
	fronts := t.frontsOf(v.id)
	return !slices.ContainsFunc(fronts, func(f toldFront) bool { return f.mayName(name) })
}

// liesNamed reports whether a table that may lie on the disk of a front names an instance. A
// front that is made anew finds what the one before it was told last.
func (t *Pass) liesNamed(id ring.ServiceID, in *instance) bool {
	row, told := t.Facts.Fronts[id]
	name := ring.FrontName(in.ID)
	if !told || row.Table.State(name).State != "" || row.Sent.State(name).State != "" {
		return told
	}
	for _, open := range row.Open {
		if open.State(name).State != "" {
			return true
		}
	}
	return false
}

// isMadeToServe reports whether a step that starts a container of a service is decided or in
// flight.
func (t *Pass) isMadeToServe(id ring.ServiceID) bool {
	return t.anyStep(id, func(a *ring.Action) bool { return a.Kind == ring.DoStart || a.Kind == ring.DoCreate && a.Start })
}

// stopsNow reports whether a step that stops an instance is decided or in flight.
func (t *Pass) stopsNow(v *service, in *instance) bool {
	return t.anyStep(v.id, func(a *ring.Action) bool {
		return a.Instance == in.ID && (a.Kind == ring.DoStop || a.Kind == ring.DoRemove || a.Kind == ring.DoRestart)
	})
}

// startsNow reports whether a step that starts an instance is decided or in flight: it may run
// by the time that a table is in force.
func (t *Pass) startsNow(v *service, in *instance) bool {
	return t.anyStep(v.id, func(a *ring.Action) bool {
		return a.Instance == in.ID && (a.Kind == ring.DoStart || a.Kind == ring.DoRestart)
	})
}

// stopsBehind is why a front may not be started for now: an instance is being stopped that the
// table on its disk sends requests to. Nobody would take it out in time.
func (t *Pass) stopsBehind(v *service) string {
	b := t.serviceBehind(v)
	if b == nil {
		return ""
	}
	for _, in := range b.instances {
		if in.Live() && t.stopsNow(b, in) && t.liesNamed(b.id, in) {
			return say("waits until %s has stopped, which its last table names", in.Name)
		}
	}
	return ""
}

// frontAnswers reports whether the container of a front has taken a table and says so, which
// is what makes it ready. One that did so once is not unready for being silent.
func (t *Pass) frontAnswers(v *service, in *instance) bool {
	row := t.Facts.Fronts[ring.ID(v.app.Name, v.want.FrontOf)]
	f := t.toldFront(in, row)
	if f.seen != nil {
		return f.table != nil && f.seen.Generation >= f.table.Generation
	}
	return row.Front == in.ID || row.Front == "" && v.rollout.Done && v.rollout.Version == in.Version
}

// isUntold reports whether a front answers that was told no table yet: that is no fault of it.
func (t *Pass) isUntold(v *service, in *instance) bool {
	f := t.toldFront(in, t.Facts.Fronts[ring.ID(v.app.Name, v.want.FrontOf)])
	return f.seen != nil && f.table == nil
}

// frontGate is why a front may not start yet: at a first deploy no instance of its service
// serves. It starts all the same where one had its time.
func (t *Pass) frontGate(v *service) ring.Reason {
	if !v.isFront() || v.good != nil {
		return ring.Reason{}
	}
	behind := t.views[ring.ID(v.app.Name, v.want.FrontOf)]
	if behind == nil || behind.want.Replicas == 0 {
		return ring.Reason{}
	}
	if behind.isExclusive() && isPortFree(t.publishersOf(behind)) {
		return ring.Reason{} // none starts before the front has the port (awaitsFront)
	}
	for _, in := range behind.instances {
		if in.State != ring.StateRunning {
			continue
		}
		if in.fit || in.young {
			return ring.Reason{}
		}
		until := laterOf(in.Since, t.Awake).Add(patienceOf(behind.want))
		if !t.now.Before(until) {
			return ring.Reason{}
		}
		t.wakeBy(until)
	}
	return ring.Reason{
		Code: ring.WhyDependencyNotReady, On: behind.id,
		Says: say("waits for an instance of %s to be ready", behind.want.Name),
	}
}
