package reconcile

import (
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

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
	case ring.DoWords:
		return false
	case ring.DoResolve, ring.DoVerify, ring.DoPull, ring.DoAdmit, ring.DoLog, ring.DoImageOff:
		return t.isObserved(a.App)
	case ring.DoPolicy:
		return t.handsOff(ring.ID(a.App, a.Service)) && !t.handingBack(a)
	case ring.DoNetwork, ring.DoNetworkOff:
		return t.isObserved(a.App) || !t.withheldReason(a.App).None() && t.overrideOn(ring.OverrideHold, ring.ServiceID(a.App)) != nil
	}
	return t.handsOff(ring.ID(a.App, a.Service))
}

// handingBack reports whether a step is the last one on a container of an app that was left.
func (t *Pass) handingBack(a *ring.Action) bool {
	o := t.overrideOn(ring.OverrideLeft, ring.ServiceID(a.App))
	return o != nil && a.Kind == ring.DoPolicy && o.Policies[a.Instance].Name == a.Policy
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
	return s.Kind == ring.Worker && !s.Spec.OnEachNode() && (n <= max(1, s.Replicas) || onlyOnce(app, s) == "")
}

// onlyOnce is why no more instances of a service may run than its plan has; ""
// where each slot has what it needs for itself.
func onlyOnce(app *ring.App, s *ring.Service) string {
	if s.Spec.OnEachNode() {
		return "it runs once on each node"
	}
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

// overrideStatus lists what stands, for people.
func (t *Pass) overrideStatus() (out []ring.Override) {
	for _, key := range sortedKeys(t.Facts.Overrides) {
		o := t.Facts.Overrides[key]
		if !o.Stands(t.now) {
			continue
		}
		row := ring.Override{Kind: string(o.Kind), Target: o.Target, Actor: o.Actor, Reason: o.Reason, Since: utc(o.At), Until: utc(o.Until), Commit: o.Commit}
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

// isLeft reports whether an app was handed back to Compose.
func (t *Pass) isLeft(app string) bool {
	return t.overrideOn(ring.OverrideLeft, ring.ServiceID(app)) != nil
}

// isHeldInFile reports whether a hold that the commit declares stands; nil does not.
func (t *Pass) isHeldInFile(h *ring.Hold) bool {
	return h != nil && (h.Until.IsZero() || t.now.Before(h.Until))
}

// declaredReason is a hold that the commit declares.
func declaredReason(h *ring.Hold) ring.Reason {
	return ring.Reason{Code: ring.WhyHeldInFile, Says: declaredSays(h)}
}

// declaredSays is its sentence.
func declaredSays(h *ring.Hold) string {
	if h.Until.IsZero() {
		return "held: " + h.Reason
	}
	return say("held: %s, until %s", strings.TrimSuffix(h.Reason, "."), clock(h.Until))
}

// isPromoted reports whether a person had the rollout of what v wants go on, past a wait
// that began at since. What comes after that wait is waited for again.
func (v *service) isPromoted(since time.Time) bool {
	return v.rollout.Version == v.want.Version && !v.rollout.Promoted.IsZero() && !v.rollout.Promoted.Before(since)
}
