package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// Adoption at any moment: Compose ran the app before its first commit was trusted,
// whole or in part, and a person gives that into our hands sooner or later. From
// then on it is held to every invariant as what the service wanted at that moment.

// composed has Compose run the services of the first commit, where these are simple
// enough to be what Compose would have made of it.
func (s *scenario) composed() {
	w := s.wide
	if w.r.Intn(2) > 0 || s.tied != "" || s.named || s.job || s.common || w.live || w.secret {
		return
	}
	app := &s.commits[0].plan.Apps[0]
	if slices.ContainsFunc(app.Services, func(v ring.Service) bool { return v.Kind.Ends() || len(s.natures[v.Spec.Image].volumes) > 0 }) {
		return
	}
	w.compose = true
	for i := range app.Services {
		v := &app.Services[i]
		n := v.Replicas
		if w.r.Intn(3) == 0 {
			n = w.r.Intn(n + 1) // somebody stopped the others, or never scaled that far
		}
		for slot := 1; slot <= n; slot++ {
			s.composeRun("web", v, v.Spec.Image, slot)
		}
	}
}

// adoptDue has a person adopt what Compose runs, at some moment or in the end.
func (s *scenario) adoptDue() {
	w := s.wide
	if w == nil || !w.compose || s.src.Next == nil || s.faults && w.r.Intn(20) > 0 {
		return
	}
	if f, ok := s.disk.Apps["web"]; ok && !f.Leaving { // docker compose rm of what had ended, and nobody missed
		for _, id := range s.each() {
			if b := s.boxes[id]; b.foreign && !b.theirs() && !s.adopted(id) && !b.lives() {
				s.note("somebody removes %s", b.Name)
				s.drop(b)
			}
		}
	}
	take, keep := s.takes("web")
	if len(take) == 0 {
		return
	}
	s.carry(Act{Verb: Adopt, App: "web", Actor: "alice", Reason: "a simulation", Take: take, Keep: keep})
}

// versionOf is what a container counts as: one that was adopted, as what its service
// wanted then.
func (d *daemon) versionOf(b *box) ring.Version {
	if row, ok := d.disk.Adopted[b.ID]; ok && row.For != "" {
		return row.For
	}
	return b.Version
}

// unplaced reports whether a container was adopted and fills no slot: the plan that came
// into force then had its service no more, and it is left as it is.
func (s *scenario) unplaced(b *box) bool {
	return b.foreign && s.disk.Adopted[b.ID].For == ""
}

// standsBadly reports whether Compose's container of a service runs something else than the
// plan has, and that crashes or never serves: it stands for it until its first change.
func (s *scenario) standsBadly(app *ring.App, v *ring.Service) bool {
	return slices.ContainsFunc(s.each(), func(id string) bool {
		b := s.boxes[id]
		return b.App == app.Name && b.Service == v.Name && s.stands(b, v) && !s.nature(b).good()
	})
}

// cameWithout reports whether Compose's container had no restart policy when it was
// adopted, whatever its file says: it keeps the one that it came with.
func (s *scenario) cameWithout(b *box) bool {
	row, ok := s.disk.Adopted[b.ID]
	return ok && (row.Policy.Name == "no" || row.Policy.Name == "")
}
