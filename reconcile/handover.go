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

// publisher is a service of the time after a plan, with a port of the host that it publishes.
type publisher struct {
	id   ring.ServiceID
	port ring.Port
	has  bool // it is in force with that port
}

// portDoubts are the ports of the host that two services would publish once a plan is carried out,
// one of them by it: the engine gives it to the first, and the other one never starts. Whether
// two addresses go together is what the engine makes of them.
func (t *Pass) portDoubts(next *ring.Plan) (doubts []string) {
	taken := map[string][]publisher{}
	note := func(app *ring.App, planned bool) {
		have := t.Facts.Apps[app.Name].App
		for i := range app.Services {
			s := &app.Services[i]
			if s.Kind.Ends() || s.Replicas == 0 || s.Spec.NetworkOf != "" {
				continue
			}
			old, _ := inForce(&have, s.Name)
			for _, p := range s.Spec.Ports {
				if p.HostPort == "" {
					continue
				}
				me := publisher{id: ring.ID(app.Name, s.Name), port: p, has: slices.ContainsFunc(old.Spec.Ports, func(o ring.Port) bool { return o.Published() == p.Published() })}
				at := anyAddress(portWord + p.Published())
				for _, other := range taken[at] {
					if own, _ := other.id.Split(); planned && !(me.has && other.has) && own != app.Name && p.Clashes(other.port) {
						doubts = append(doubts, portDoubt(me, other))
					}
				}
				taken[at] = append(taken[at], me)
			}
		}
	}
	for _, name := range sortedKeys(t.Facts.Apps) {
		f := t.Facts.Apps[name]
		if _, goes := next.App(name); !goes && !f.Leaving && (f.App.Source != next.Source || next.Refused[name] != nil || f.App.NoPrune) {
			note(&f.App, false)
		}
	}
	for i := range next.Apps {
		note(&next.Apps[i], true)
	}
	return doubts
}

// portDoubt says it of the one that does not have the port now, and of the later one where neither has.
func portDoubt(me, other publisher) string {
	if me.has {
		me, other = other, me
	}
	return say("%s cannot start while %s publishes port %s, and both do here: publish port %s on another one", me.id, other.id, other.port.Published(), me.port.Published())
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
