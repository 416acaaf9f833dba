package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// What another service has, and a plan gives to one of its own, is named
// beforehand: which port or volume, whose it is, and whether it will be let go. The
// rules that then wait are those of inherit.go.

// handover is one service of a plan that waits for what another has.
type handover struct {
	to   *ring.ServiceChange
	from ring.ServiceID
	what string
	lets bool // by this plan, as a service of it
}

// tellHandovers says of each change for which port or volume it waits, and for whom.
func (t *Pass) tellHandovers(next *ring.Plan, apps []ring.AppChanges) {
	byID := map[ring.ServiceID][]handover{}
	for i := range apps {
		app, ok := next.App(apps[i].App)
		for j := range apps[i].Services {
			c := &apps[i].Services[j]
			switch c.Class {
			case ring.ChangeCreate, ring.ChangeRoll, ring.ChangeRecreate:
			default:
				continue
			}
			if s, there := app.Service(c.Service); ok && there {
				byID[ring.ID(app.Name, s.Name)] = t.handoversTo(next, &app, &s, c)
			}
		}
	}
	for _, id := range sortedKeys(byID) {
		for _, h := range byID[id] {
			if says := t.handoverSays(next, id, h, byID); h.to.Order == "" {
				h.to.Order = says
			} else {
				h.to.Order += ", " + says
			}
		}
	}
}

// handoversTo is what s of a plan is to have and another service's instances have
// now, once for each of those.
func (t *Pass) handoversTo(next *ring.Plan, app *ring.App, s *ring.Service, c *ring.ServiceChange) []handover {
	have := t.Facts.Apps[app.Name].App
	old, _ := have.Service(s.Name)
	mine := subtract(writesOf(app, s), writesOf(&have, &old))
	if len(mine) == 0 {
		return nil
	}
	var out []handover
	for _, id := range t.holdersOf(mine) {
		if id == ring.ID(app.Name, s.Name) {
			continue
		}
		for _, in := range t.seen[id] {
			what := firstCommon(exclusiveWrites(s.Share && t.sharesOf(id, in.Version), t.writtenOf(id, in)), mine)
			if what == "" || !in.Live() && !in.mayRestart() {
				continue
			}
			if keeps, lets := t.keepsOn(next, id, what); !keeps || isPort(what) { // a volume of two services is their author's wish
				out = append(out, handover{to: c, from: id, what: what, lets: lets})
			}
			break
		}
	}
	return out
}

// keepsOn reports whether a service has something when a plan is carried out, too, or
// that it lets go of it and stays.
func (t *Pass) keepsOn(next *ring.Plan, id ring.ServiceID, what string) (keeps, lets bool) {
	name, service := id.Split()
	app, ok := next.App(name)
	if have := t.Facts.Apps[name].App; !ok && (have.Source != next.Source || next.Refused[name] != nil) {
		app = have // another plan's, or left as it is
	} else if have.NoPrune {
		app.NoPrune = app.NoPrune || !ok
	}
	s, ok := app.Service(service)
	if !ok {
		return app.NoPrune, false
	}
	keeps = anyClash(writesOf(&app, &s), what)
	return keeps, !keeps
}

// handoverSays is one handover in words.
func (t *Pass) handoverSays(next *ring.Plan, to ring.ServiceID, h handover, all map[ring.ServiceID][]handover) string {
	name := string(h.from)
	app, service := h.from.Split()
	if own, _ := to.Split(); own == app {
		name = service
	}
	has := "writes"
	if isPort(h.what) {
		has = "publishes"
	}
	keeps, _ := t.keepsOn(next, h.from, h.what)
	switch {
	case keeps:
		return say("waits for %s, which %s %s and keeps it: publish one of them on another port", name, has, h.what)
	case !h.lets:
		return say("after %s is gone, which %s %s", name, has, h.what)
	case t.waitsOn(next, h.from, to, all, map[ring.ServiceID]bool{}):
		return say("waits for %s to let go of %s, and %s waits for it: move it in a commit of its own", name, h.what, name)
	}
	return say("after %s let go of %s", name, h.what)
}

// waitsOn reports whether a service of a plan waits for another at whatever distance: to
// depend on it or to take over from it.
func (t *Pass) waitsOn(next *ring.Plan, id, other ring.ServiceID, all map[ring.ServiceID][]handover, met map[ring.ServiceID]bool) bool {
	if id == other {
		return true
	}
	if met[id] {
		return false
	}
	met[id] = true
	for _, h := range all[id] {
		if h.lets && t.waitsOn(next, h.from, other, all, met) {
			return true
		}
	}
	name, service := id.Split()
	app, ok := next.App(name)
	s, there := app.Service(service)
	if !ok || !there {
		return false
	}
	for _, d := range slices.Concat(s.Spec.Leaders(), s.Spec.Ties(), dependenciesOf(&s)) {
		if t.waitsOn(next, tieID(name, d), other, all, met) {
			return true
		}
	}
	return false
}

// portPublishers are who has a port that v is to publish and that the engine found
// taken: it says only that it is. "" is nobody of ours, or that it did not.
func (t *Pass) portPublishers(v *service) (says string, whose ring.ServiceID) {
	if len(t.Tries) == 0 || !t.foundTaken(v) {
		return "", ""
	}
	for _, what := range writesOf(v.of, v.target) {
		if !isPort(what) {
			continue
		}
		for _, id := range t.holdersOf([]string{what}) {
			for _, in := range t.seen[id] {
				if id != v.id && in.Live() && anyClash(t.writtenOf(id, in), what) {
					return say("%s is published by %s", what, t.calledName(v, id)), id
				}
			}
		}
	}
	return "", ""
}

// foundTaken reports whether a step of v failed because a port was taken.
func (t *Pass) foundTaken(v *service) bool {
	keys := []string{string(v.id)}
	for slot := 1; slot <= v.target.Replicas; slot++ {
		keys = append(keys, string(v.id)+" "+ring.ContainerName(v.app.Name, v.want.Name, slot, v.target.Version))
	}
	return slices.ContainsFunc(keys, func(key string) bool {
		return isPortTaken(t.Tries[key].Err)
	})
}

// isPortTaken reports whether an error of the engine is that a port is somebody else's.
func isPortTaken(err string) bool {
	return strings.Contains(err, "port is already allocated") || strings.Contains(err, "address already in use")
}
