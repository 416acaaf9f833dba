package reconcile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// announced is how long before it ends by itself an override is told of.
const announced = 15 * time.Minute

// updateOverrides ends what has ended and announces what is about to. It comes before
// every rule that asks for one, so that one that is read stands.
func (t *decider) updateOverrides() {
	for _, key := range sortedKeys(t.Facts.Overrides) {
		o := t.Facts.Overrides[key]
		switch {
		case !o.Stands(t.now):
			t.endOverride(o, "", "has run out")
		case t.hasNoTarget(&o):
			t.endOverride(o, "", "its target is gone")
		default:
			t.announceEnd(o)
		}
	}
}

// announceEnd tells once that an override is about to end. One that is short was
// made by somebody who is still here.
func (t *decider) announceEnd(o ring.OverrideRow) {
	if o.Until.IsZero() {
		return
	}
	t.wakeBy(o.Until)
	at := o.Until.Add(-announced)
	if o.Told || at.Before(o.At) {
		return
	}
	if t.now.Before(at) {
		t.wakeBy(at)
		return
	}
	o.Told = true
	t.setFact(o)
	t.tellOverride(ring.OverrideExpiring, o, "", say("ends at %s, and Git wins again: %s", clock(o.Until), o.Reason))
}

// endOverride ends one: from here on Git wins. By is who ended it; "" is time itself.
func (t *decider) endOverride(o ring.OverrideRow, by, why string) {
	table, key := o.Row()
	t.setFact(ring.Forget{Table: table, Key: key})
	t.tellOverride(ring.OverrideEnded, o, by, say("%s; it was by %s: %s", why, o.Actor, o.Reason))
}

func (t *decider) tellOverride(kind string, o ring.OverrideRow, by, says string) {
	app, service := ring.ServiceID(o.Target).Split()
	t.addEvent(ring.Event{
		Kind: kind, Source: t.Facts.Apps[app].App.Source, App: app, Service: service, Commit: o.Commit, Actor: cmp.Or(by, o.Actor), Code: overrideReason(&o).Code,
		Reason: say("%s: %s", nameOf(&o), says),
	})
}

// nameOf is an override in a word or two.
func nameOf(o *ring.OverrideRow) string {
	switch o.Kind {
	case ring.OverrideScale:
		return say("scale to %d", o.Replicas)
	case ring.OverrideUndo:
		return "undo to " + o.Commit.Short()
	}
	return string(o.Kind)
}

// byWhom is who stands behind an override, until when, and why.
func byWhom(o *ring.OverrideRow) string {
	until := ""
	if !o.Until.IsZero() {
		until = " until " + clock(o.Until)
	}
	return say("by %s%s: %s", o.Actor, until, o.Reason)
}

// hasNoTarget reports whether nothing of an override's target is here or about to be. A
// source that has no plan yet, as after a start, may still bring it.
func (t *Pass) hasNoTarget(o *ring.OverrideRow) bool {
	app, service := ring.ServiceID(o.Target).Split()
	if f, ok := t.Facts.Apps[app]; ok {
		if _, ok := f.App.Service(service); ok || service == "" {
			return false
		}
	}
	for id := range t.seen {
		if a, s := id.Split(); a == app && (s == service || service == "") {
			return false
		}
	}
	for i := range t.Sources {
		next := t.Sources[i].Next
		if next == nil {
			return false
		}
		if _, ok := next.App(app); ok && service == "" {
			return false
		}
	}
	return service == "" || !t.isComing(ring.ServiceID(o.Target))
}

// overrideOn is an override of a kind on a service or on the whole of its app; nil
// when there is none.
func (t *Pass) overrideOn(k ring.OverrideKind, id ring.ServiceID) *ring.OverrideRow {
	if len(t.Facts.Overrides) == 0 {
		return nil
	}
	app, _ := id.Split()
	for _, target := range []string{string(id), app} {
		if o, ok := t.Facts.Overrides[ring.OverrideKey(k, target)]; ok && o.Stands(t.now) {
			return &o
		}
	}
	return nil
}

// standingOn is the same for a service and all that is tied to it: they are one
// step, so a hand on one is a hand on all.
func (t *Pass) standingOn(k ring.OverrideKind, id ring.ServiceID) *ring.OverrideRow {
	if o := t.overrideOn(k, id); o != nil || len(t.Facts.Overrides) == 0 {
		return o
	}
	v := t.views[id]
	if v == nil || v.group == nil {
		return nil
	}
	for _, m := range v.group.members {
		if o := t.overrideOn(k, m.id); o != nil {
			return o
		}
	}
	return nil
}

// heldBy is a person's hold on a service.
func (t *Pass) heldBy(id ring.ServiceID) ring.Reason {
	if o := t.standingOn(ring.OverrideHold, id); o != nil {
		return overrideReason(o)
	}
	if o := t.overrideOn(ring.OverrideLeft, id); o != nil {
		return overrideReason(o)
	}
	return ring.Reason{}
}

// pauseReason is a person's pause of a service's rollouts.
func (t *Pass) pauseReason(id ring.ServiceID) ring.Reason {
	if o := t.standingOn(ring.OverridePause, id); o != nil {
		return overrideReason(o)
	}
	return ring.Reason{}
}

// handsOff reports whether nothing of a service may be created, started, stopped,
// healed or removed now: a person holds it, or its source is only observed.
func (t *Pass) handsOff(id ring.ServiceID) bool {
	app, _ := id.Split()
	return !t.heldBy(id).None() || t.isObserved(app)
}

// isUntouchable reports whether a step would change what nobody may touch now. Every rule
// has looked before; this is the last one.
func (t *Pass) isUntouchable(a *ring.Action) bool {
	switch a.Kind {
	case ring.DoResolve, ring.DoPull, ring.DoAdmit, ring.DoLog, ring.DoImageOff:
		return t.isObserved(a.App)
	case ring.DoPolicy:
		return t.handsOff(ring.ID(a.App, a.Service)) && !t.handingBack(a)
	case ring.DoNetwork, ring.DoNetworkOff:
		return t.isObserved(a.App) || !t.withheldReason(a.App).None() && t.overrideOn(ring.OverrideHold, ring.ServiceID(a.App)) != nil
	}
	return t.handsOff(ring.ID(a.App, a.Service))
}

// withheldReason is why the next plan of an app does not come into force for as long
// as a person says so.
func (t *Pass) withheldReason(app string) ring.Reason {
	if len(t.Facts.Overrides) == 0 {
		return ring.Reason{}
	}
	for _, k := range []ring.OverrideKind{ring.OverrideLeft, ring.OverrideHold, ring.OverrideUndo} {
		if o, ok := t.Facts.Overrides[ring.OverrideKey(k, app)]; ok && o.Stands(t.now) {
			return overrideReason(&o)
		}
	}
	return ring.Reason{}
}

// overrideReason is an override as the reason of what it keeps from moving.
func overrideReason(o *ring.OverrideRow) ring.Reason {
	code := map[ring.OverrideKind]ring.ReasonCode{
		ring.OverrideHold: ring.WhyHeldByPerson, ring.OverridePause: ring.WhyPausedByPerson, ring.OverrideScale: ring.WhyScaledByPerson,
		ring.OverrideUndo: ring.WhyUndoneByPerson, ring.OverrideLeft: ring.WhyLeftToCompose, ring.OverrideStop: ring.WhyStoppedByPolicy,
	}[o.Kind]
	return ring.Reason{Code: code, Says: overrideSays(o)}
}

func overrideSays(o *ring.OverrideRow) string {
	verb := map[ring.OverrideKind]string{
		ring.OverrideHold: "held", ring.OverridePause: "paused", ring.OverrideScale: say("scaled to %d", o.Replicas),
		ring.OverrideUndo: "undone to " + o.Commit.Short(), ring.OverrideLeft: "left to Compose", ring.OverrideStop: "stopped",
	}[o.Kind]
	return verb + " " + byWhom(o)
}

// handedOverride is the first hold, undo or pause that stands on an app or on a service
// of it, as the app's status tells it. What is only scaled is as Git wants it but
// for a number.
func (t *Pass) handedOverride(app string) ring.Reason {
	if len(t.Facts.Overrides) == 0 {
		return ring.Reason{}
	}
	if why := t.withheldReason(app); !why.None() {
		return why
	}
	for _, key := range sortedKeys(t.Facts.Overrides) {
		o := t.Facts.Overrides[key]
		of, service := ring.ServiceID(o.Target).Split()
		if of == app && service != "" && o.Kind != ring.OverrideScale && o.Stands(t.now) {
			why := overrideReason(&o)
			why.On, why.Says = ring.ID(of, service), service+" "+why.Says
			return why
		}
	}
	return ring.Reason{}
}

// scalePlans puts a person's count in the place of the plan's, and none where the policy has a
// service stopped, for this pass alone: no fact says so but the override.
func (t *decider) scalePlans() {
	for _, key := range sortedKeys(t.Facts.Overrides) {
		o := t.Facts.Overrides[key]
		if o.Kind != ring.OverrideScale && o.Kind != ring.OverrideStop || !o.Stands(t.now) {
			continue
		}
		app, service := ring.ServiceID(o.Target).Split()
		f := t.Facts.Apps[app]
		i := slices.IndexFunc(f.App.Services, func(s ring.Service) bool { return s.Name == service })
		if i < 0 || !mayCount(&f.App, &f.App.Services[i], o.Replicas) {
			continue // a newer commit may have taken away that it can run twice
		}
		if t.planned == nil {
			t.planned = map[string]ring.App{}
		}
		if _, ok := t.planned[app]; !ok {
			t.planned[app] = f.App
		}
		if !t.own["app"] {
			put(&t.own, "app", true)
			t.Facts.Own("app")
		}
		f.App.Services = slices.Clone(f.App.Services)
		f.App.Services[i].Replicas = o.Replicas
		t.Facts.Apps[app] = f
		put(&t.scales, ring.ID(app, service), o.Replicas)
	}
	for _, app := range sortedKeys(t.planned) {
		t.followScale(app)
	}
}

// followScale has what joins a service, or takes its volumes, be as few as a person has that
// service be: each joins the one of its own slot, and two would write the data of one.
func (t *Pass) followScale(app string) {
	all := t.Facts.Apps[app].App.Services
	for again := true; again; {
		again = false
		for i := range all {
			s := &all[i]
			if n := t.atMost(app, s, s.Replicas); n < s.Replicas && s.Kind == ring.Worker {
				s.Replicas, again = n, true
				put(&t.scales, ring.ID(app, s.Name), n)
			}
		}
	}
}

// atMost is n, or how few a person has what s joins be.
func (t *Pass) atMost(app string, s *ring.Service, n int) int {
	for _, owner := range s.Spec.Owners() {
		if its, counted := t.scales[ring.ID(app, owner)]; counted {
			n = min(n, its)
		}
	}
	return n
}

// mayCount reports whether a service may run as n instances in the place of its plan's.
func mayCount(app *ring.App, s *ring.Service, n int) bool {
	return s.Kind == ring.Worker && (n <= max(1, s.Replicas) || onlyOnce(app, s) == "")
}

// onlyOnce is why no more instances of a service may run than its plan has; ""
// where each slot has what it needs for itself.
func onlyOnce(app *ring.App, s *ring.Service) string {
	why := app.Alone(s)
	if !strings.HasPrefix(why, "writable ") {
		return why
	}
	for _, m := range app.Mounts(s) {
		if m.Outlives() && !strings.Contains(m.Source, ring.SlotMark) {
			return why
		}
	}
	return ""
}

// scaledCount is a person's count for a service, or for what it joins.
func (t *Pass) scaledCount(id ring.ServiceID) (int, bool) {
	n, ok := t.scales[id]
	return n, ok
}

// asGit is a good service with the count that Git gives it: what a restore
// brings back once the override has ended.
func (t *Pass) asGit(g ring.Good) ring.Good {
	id := ring.ID(g.AppName, g.Service.Name)
	if _, ok := t.scaledCount(id); !ok {
		return g
	}
	if was, ok := t.Facts.Good[id]; ok && was.Service.Version == g.Service.Version {
		g.Service.Replicas = was.Service.Replicas
	}
	planned := t.planned[g.AppName]
	if s, ok := planned.Service(g.Service.Name); ok && s.Version == g.Service.Version {
		g.Service.Replicas = s.Replicas
	}
	return g
}

// mayLower reports whether instances above the count may go: a person says so, or a
// plan of a source that was reached lately.
func (t *Pass) mayLower(v *service) bool {
	_, scaled := t.scaledCount(v.id)
	return scaled || t.isFresh(v.app)
}

// standStill keeps the deadline of a rollout away for as long as a person's hand
// is on it: that time is not the version's.
func (t *decider) standStill(v *service) {
	if v.rollout.Version != v.want.Version || v.rollout.Done || t.now.Sub(v.rollout.Progress) < v.want.Rollout.ProgressDeadline/10 {
		return
	}
	row := v.rollout
	row.Progress = t.now
	t.setFact(row)
}

// hasStopped reports whether a rollout does not go on by itself: it failed, or a person
// paused it. What runs is kept alive.
func (v *service) hasStopped() bool {
	return v.failedInPlace() || !v.pausedBy.None() && !v.rollout.Done
}

// carryMarks carries a person's restarts into the plans in force, and forgets those
// whose spec has changed since.
func (t *decider) carryMarks() {
	for _, id := range sortedKeys(t.Facts.Marks) {
		m := t.Facts.Marks[id]
		app, service := id.Split()
		f, ok := t.Facts.Apps[app]
		s, has := f.App.Service(service)
		if !ok || !has || s.Written != m.Written {
			t.setFact(ring.Forget{Table: "mark", Key: string(id)})
			continue
		}
		if s.Spec.Mark != m.Mark {
			f.App = t.markedApp(f.App)
			t.setFact(f)
		}
	}
}

// putMarks puts the marks that stand on the services of an app that is not pinned yet.
func (t *Pass) putMarks(app *ring.App) {
	for i := range app.Services {
		s := &app.Services[i]
		if m, ok := t.Facts.Marks[ring.ID(app.Name, s.Name)]; ok && m.Written == s.Written {
			s.Spec.Mark = m.Mark
		}
	}
}

// markedApp is a pinned app with the marks that stand, and the versions that come of it.
func (t *Pass) markedApp(app ring.App) ring.App {
	app.Services = slices.Clone(app.Services)
	t.putMarks(&app)
	for _, i := range leadersFirst(&app) {
		if s := &app.Services[i]; s.Pin.Image != "" {
			s.Version = ring.VersionOf(&app, s, s.Pin)
		}
	}
	return app
}

// overrideStatus lists what stands, for people.
func (t *Pass) overrideStatus() (out []ring.Override) {
	for _, key := range sortedKeys(t.Facts.Overrides) {
		o := t.Facts.Overrides[key]
		if !o.Stands(t.now) {
			continue
		}
		row := ring.Override{Kind: string(o.Kind), Target: o.Target, Actor: o.Actor, Reason: o.Reason, Until: utc(o.Until), Commit: o.Commit}
		if o.Kind == ring.OverrideScale {
			row.Replicas = &o.Replicas
		}
		out = append(out, row)
	}
	return out
}

// calmOverrides is calm for what a daemon wrote before the clock was set back:
// an override lasts as long as it was given, not longer.
func calmOverrides(f ring.Facts, now time.Time) {
	for key, o := range f.Overrides {
		if ahead := o.At.Sub(now); ahead > 0 {
			o.At = now
			if !o.Until.IsZero() {
				o.Until = o.Until.Add(-ahead)
			}
			f.Overrides[key] = o
		}
	}
}

// declaredSays is the sentence of a hold that the commit itself declares.
// declaredReason is a hold that the commit declares.
func declaredReason(h *ring.Hold) ring.Reason {
	return ring.Reason{Code: ring.WhyHeldInFile, Says: declaredSays(h)}
}

func declaredSays(h *ring.Hold) string {
	if h.Until.IsZero() {
		return "held: " + h.Reason
	}
	return say("held: %s, until %s", strings.TrimSuffix(h.Reason, "."), clock(h.Until))
}

// awaitsTime is what a rollout waits for that is only time, and that a person may
// say is over; "" when it waits for nothing such.
func (t *Pass) awaitsTime(v *service) string {
	if v.rollout.Version != v.want.Version || v.rollout.Done || v.failed != nil {
		return ""
	}
	if w, since := v.watchNow(); w != nil {
		if v.isPromoted(since) {
			return ""
		}
		return say("%s %s", w.knob, w.asked(&v.want.Rollout))
	}
	if strategyNamed(v.want.Rollout.Strategy).secondSet && t.isUnripe(v) {
		return say("min_ready_time %s", v.want.Rollout.MinReadyTime)
	}
	return ""
}

// isUnripe reports whether every slot of the wanted version has an instance that runs,
// and one of them is ready for less than its time.
func (t *Pass) isUnripe(v *service) bool {
	young := false
	for slot := 1; slot <= v.want.Replicas; slot++ {
		in := v.inSlot(slot)
		if in == nil || in.down || !in.Live() {
			return false
		}
		young = young || !in.ready && in.young
	}
	return young
}

// isPromoted reports whether a person had the rollout of what v wants go on, past a wait
// that began at since. What comes after that wait is waited for again.
func (v *service) isPromoted(since time.Time) bool {
	return v.rollout.Version == v.want.Version && !v.rollout.Promoted.IsZero() && !v.rollout.Promoted.Before(since)
}
