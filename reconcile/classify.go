package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// pinnedAs is an app of a plan with the pins and versions that it would have now. A
// service whose image is to be resolved first has neither.
func (t *Pass) pinnedAs(next *ring.App) ring.App {
	have, app := t.Facts.Apps[next.Name].App, *next
	app.Services = slices.Clone(next.Services)
	t.putMarks(&app)
	for _, i := range leadersFirst(&app) {
		s := &app.Services[i]
		old, known := inForce(&have, s.Name)
		p, ok := t.carriedPin(&app, s, &have, old, known)
		if s.Pin = p; ok && leadersPinned(&app, s) {
			s.Version, s.Image = ring.VersionOf(&app, s, p), t.saysOfItself(&app, s, old)
		}
	}
	for i := range app.Services {
		old, _ := inForce(&have, app.Services[i].Name)
		foreseeExposed(&app, &app.Services[i], old)
	}
	return app
}

// servicesGone are the services that an app has now and not in its next plan.
func servicesGone(have, next *ring.App) (out []*ring.Service) {
	for i := range have.Services {
		old := &have.Services[i]
		if _, stays := inForce(next, old.Name); !stays {
			out = append(out, old)
		}
	}
	return out
}

// classified is what a plan means for a service, without words.
type classified struct {
	class  ring.Class
	known  bool   // the service is in force
	anew   bool   // its instances are made anew
	why    string // two of them may not overlap
	old, s *ring.Service
	of     *ring.App // of old
}

// runsNow is what people's plan of s is compared with, and its app: the version in force, or the
// last good one where that alone runs, as after a restore. One that failed and stays is not tried
// again: nothing comes of it.
func (t *Pass) runsNow(have *ring.App, old, s *ring.Service) (*ring.App, *ring.Service) {
	id := ring.ID(have.Name, s.Name)
	good := t.Facts.Good[id]
	if good == nil || good.Service.Version == old.Version || s.Version == old.Version {
		return have, old
	}
	if old.Kind != ring.Worker || good.Service.Kind != ring.Worker || s.Kind != ring.Worker {
		return have, old
	}
	runs := false
	for _, in := range t.seen[id] {
		switch {
		case !in.holdsSlot() || in.intent == intentPark:
		case in.Version != good.Service.Version:
			return have, old
		default:
			runs = true
		}
	}
	if !runs {
		return have, old
	}
	return &good.App, &good.Service
}

// classifyNow says what a plan means for a service, beside what runs of it. Where most of it is
// only counted, nothing is said of what differs.
func (t *Pass) classifyNow(have, next *ring.App, s *ring.Service) classified {
	old, known := inForce(have, s.Name)
	of, old := t.runsNow(have, old, s)
	return classifyFrom(of, old, known, next, s)
}

// classifyFrom is the same beside any version of the service, and its app.
func classifyFrom(of *ring.App, old *ring.Service, known bool, next *ring.App, s *ring.Service) classified {
	c := classified{class: ring.ChangeCreate, known: known, old: old, s: s, of: of}
	switch {
	case c.known && c.old.Kind == ring.Worker && s.Kind.Ends():
		c.class = ring.ChangeRecreate // what runs would not end by itself, and is removed
		return c
	case c.known && c.old.Kind.Ends() && s.Kind == ring.Worker:
		return c // no instance of it runs yet
	case s.Kind == ring.JobK:
		if c.known && (len(runsBefore(next, s.Name)) > 0 || c.old.Version == s.Version && s.Job.Run != "always") {
			c.class = ring.ChangeNone
		}
		return c
	case !c.known:
		return c
	}
	if s.Pin.Image == "" {
		written := *s
		written.Pin, written.Image = c.old.Pin, c.old.Image // so that only what is written is compared
		c.s = &written
	}
	if c.anew = s.Pin.Image == "" || c.old.Version != s.Version; !c.anew {
		c.class = gravestClass(classDifferences(inPlace(c.old, c.s), false))
		return c
	}
	c.why = aloneReason(next, c.s)
	if c.why == "" && c.old.Kind == ring.Worker && !c.old.Share {
		if what := firstCommon(writesOf(c.of, c.old), writesOf(next, c.s)); what != "" {
			c.why = say("writable %s, which the version before does not share", what)
		}
	}
	switch {
	case s.Kind == ring.CronK:
		c.class = ring.ChangeInPlace
	case c.why != "":
		c.class = ring.ChangeRecreate
	default:
		c.class = ring.ChangeRoll
	}
	return c
}

// aloneReason is why a slot of s has to be empty before the next instance starts; ""
// when two may run side by side.
func aloneReason(app *ring.App, s *ring.Service) string {
	if its := strategyNamed(s.Rollout.Strategy); !its.overlaps {
		return "strategy " + its.name
	}
	return app.Alone(s)
}
