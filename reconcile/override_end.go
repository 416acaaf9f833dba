package reconcile

import (
	"cmp"
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
