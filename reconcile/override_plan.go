package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

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
