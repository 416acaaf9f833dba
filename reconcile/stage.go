package reconcile

import (
	"github.com/gitring/gitring/ring"
)

// stage brings the newest plan of a source into force, app by app: each only
// when everything for it is here, at once and whole. Until then the plan in
// force stays, and is healed, as if there were no next one.
func (t *turn) stage(src *Source) {
	plan := src.Next
	if plan == nil || plan.Refusal != nil {
		return
	}
	if t.inForce(src) {
		return
	}
	present := t.present(src.Name)
	if why := t.guard(src, present); why != "" {
		t.held[src.Name] = awaiting(plan.Commit, why)
		t.once(ring.Event{Kind: ring.PlanAwaiting, Source: src.Name, Commit: plan.Commit, Reason: why})
		return
	}
	for i := range plan.Apps {
		t.stageApp(src, &plan.Apps[i])
	}
	for i := range plan.Apps {
		t.block(src, plan.Apps[i].Name)
	}
	t.leave(src, present)
}

// block says of an app that waits for a refused one, at whatever distance, that
// it waits for nothing that is under way.
func (t *turn) block(src *Source, name string) {
	if t.stageSays[name] == "" || t.refused[name] != nil {
		return
	}
	if on := t.refusedBefore(src, name, map[string]bool{}); on != "" {
		t.stageSays[name], t.blocked[name] = say("waits for app %s, which is refused", on), true
	}
}

// refusedBefore is a refused app that the named one is after; "" when there is none.
func (t *turn) refusedBefore(src *Source, name string, met map[string]bool) string {
	if met[name] {
		return "" // a circle waits for itself
	}
	met[name] = true
	app, _ := src.Next.App(name)
	for _, after := range app.After {
		if src.Next.Refused[after.App] != nil || t.refused[after.App] != nil {
			return after.App
		}
		if on := t.refusedBefore(src, after.App, met); on != "" {
			return on
		}
	}
	return ""
}

// inForce says that every app of the plan is in force and none is left over.
func (t *turn) inForce(src *Source) bool {
	n := 0
	for _, f := range t.Facts.Apps {
		if f.App.Source == src.Name && !f.Leaving {
			n++
		}
	}
	if n != len(src.Next.Apps) {
		return false
	}
	for i := range src.Next.Apps {
		next := &src.Next.Apps[i]
		if f, ok := t.Facts.Apps[next.Name]; !ok || f.App.Source != src.Name || !asked(&f, next) {
			return false
		}
	}
	for i := range t.Seen.Instances {
		if in := &t.Seen.Instances[i]; in.Source == src.Name {
			if _, ok := t.Facts.Apps[in.App]; !ok {
				return false
			}
		}
	}
	return true
}

// stageApp resolves and pulls what one app needs, then puts it in force.
func (t *turn) stageApp(src *Source, next *ring.App) {
	have, ok := t.Facts.Apps[next.Name]
	if ok && have.App.Source != src.Name {
		t.refused[next.Name] = &ring.Refusal{
			Code: ring.AppTaken, Commit: next.Commit, App: next.Name, File: firstOf(next.Files),
			Says: say("app %s belongs to source %s on this host", next.Name, have.App.Source),
			Hint: "give one of the two another name: in Compose `name:`, or in gitring.yaml",
		}
		return
	}
	if ok && asked(&have, next) {
		return
	}
	if h := next.Hold; h != nil && (h.Until.IsZero() || t.now.Before(h.Until)) {
		t.stageSays[next.Name] = "held: " + h.Reason
		t.wake(h.Until)
		return
	}
	if says := t.waitsFor(src, next); says != "" {
		t.stageSays[next.Name] = says
		return
	}
	app := *next
	app.Services = make([]ring.Service, len(next.Services))
	ready := true
	for i, s := range next.Services {
		old, known := have.App.Service(s.Name)
		if !t.pin(&app, &s, &old, known) {
			ready = false
			app.Services[i] = s
			continue
		}
		if !(known && old.Version == s.Version) && !t.pulled(&app, &s) {
			ready = false
		}
		app.Services[i] = s
	}
	if !ready || t.refused[next.Name] != nil {
		return
	}
	t.force(src, app, have, ok)
}

// asked says that what is in force is what next asks for.
func asked(have *ring.InForce, next *ring.App) bool {
	return !have.Leaving && have.App.Commit == next.Commit && have.App.Written == next.Written
}

// waitsFor is why an app cannot be staged because of the apps it is after.
func (t *turn) waitsFor(src *Source, next *ring.App) string {
	for _, after := range next.After {
		if src.Next.Refused[after.App] != nil {
			return say("waits for app %s", after.App)
		}
		if _, ok := src.Next.App(after.App); !ok {
			continue // of another source: its own state gates the rollout
		}
		if f, ok := t.Facts.Apps[after.App]; !ok || f.App.Commit != next.Commit {
			return say("waits for app %s", after.App)
		}
	}
	return ""
}

// pin gives s its image and version, or asks the registry for a spec that was
// never seen. It says whether s has them.
func (t *turn) pin(app *ring.App, s, old *ring.Service, known bool) bool {
	if t.carry(app, s, old, known) {
		return true
	}
	a := ring.Action{
		Kind: ring.DoResolve, App: app.Name, Service: s.Name, Commit: app.Commit,
		Image: s.Spec.Image, Platform: s.Spec.Platform, PullPolicy: s.Spec.PullPolicy, Version: ring.Version(s.Written),
		Reason: say("image %s is new to service %s", s.Spec.Image, s.Name),
	}
	if known {
		a.Want = old // its pin is kept where the registry knows no better
	}
	t.fetch(app, s, a)
	return false
}

// carry gives s an image that is pinned already: the one in force, one that an
// earlier plan was given, or one that runs.
func (t *turn) carry(app *ring.App, s, old *ring.Service, known bool) bool {
	id := ring.ID(app.Name, s.Name)
	if known && old.Written == s.Written && old.Pin.Image != "" {
		t.pinned(app, s, old.Pin)
		return true
	}
	if row, ok := t.Facts.Pins[ring.PinKey(id, s.Written)]; ok {
		t.pinned(app, s, row.Pin)
		return true
	}
	// The store may be new while the containers are not: an instance whose
	// version comes out the same with its own image was pinned to that.
	for _, in := range t.seen[id] {
		if p := (ring.Pin{Image: in.Image}); in.Image != "" && ring.VersionOf(app, s, p) == in.Version {
			t.pinned(app, s, p)
			return true
		}
	}
	return false
}

func (t *turn) pinned(app *ring.App, s *ring.Service, p ring.Pin) {
	s.Pin, s.Version = p, ring.VersionOf(app, s, p)
}

// pulled says whether the image of s is on this host, and pulls it otherwise.
func (t *turn) pulled(app *ring.App, s *ring.Service) bool {
	if t.Images[s.Pin.Image].Known {
		return true
	}
	for _, in := range t.seen[ring.ID(app.Name, s.Name)] {
		if in.Version == s.Version {
			return true // the instance holds its image
		}
	}
	t.fetch(app, s, t.pull(app, s, "not known to be on this host"))
	return false
}

func (t *turn) pull(app *ring.App, s *ring.Service, why string) ring.Action {
	return ring.Action{
		Kind: ring.DoPull, App: app.Name, Service: s.Name, Commit: app.Commit, Version: s.Version,
		Image: s.Pin.Image, Platform: s.Spec.Platform, PullPolicy: s.Spec.PullPolicy, Timeout: s.Rollout.PullTimeout, Reason: say("image %s %s", s.Pin.Image, why),
	}
}

// fetch decides a resolve or pull for the next plan and keeps the app's
// sentence; a refusal of the registry is the app's.
func (t *turn) fetch(app *ring.App, s *ring.Service, a ring.Action) {
	a.Source = app.Source
	t.do(a)
	says := say("%s %s", map[ring.ActionKind]string{ring.DoResolve: "resolving", ring.DoPull: "pulling"}[a.Kind], a.Image)
	if far := t.Progress[a.Target()]; far != "" {
		says += " (" + far + ")"
	}
	if try, ok := t.Tries[a.Target()]; ok && try.Kind == a.Kind {
		if try.Refusal != nil {
			r := *try.Refusal
			r.Commit, r.App, r.File, r.Line = app.Commit, app.Name, s.File, s.Line
			t.refused[app.Name] = &r
			return
		}
		says = say("%s: %s; attempt %d", says, try.Err, try.N)
	}
	t.stageSays[app.Name] = says
}

// force puts an app in force.
func (t *turn) force(src *Source, app ring.App, have ring.InForce, known bool) {
	for i := range app.Services {
		s := &app.Services[i]
		old, ok := have.App.Service(s.Name)
		s.Changed = app.Commit
		if ok && old.Version == s.Version {
			s.Changed = old.Changed
		}
		id := ring.ID(app.Name, s.Name)
		row := ring.PinRow{ID: id, Written: s.Written, Pin: s.Pin, At: t.now}
		if p, ok := t.Facts.Pins[ring.PinKey(id, s.Written)]; !ok || p.Pin != s.Pin {
			t.set(row)
		}
	}
	f := ring.InForce{App: app, Since: t.now}
	if c := src.Commit; c != nil && c.SHA == app.Commit {
		f.Signer, f.Subject, f.Committed = c.Signer, c.Subject, c.ClaimedAt
	}
	t.set(f)
	if !known || !sameApp(have.App, app) {
		t.event(ring.Event{
			Kind: ring.AppInForce, Source: app.Source, App: app.Name, Commit: app.Commit,
			Reason: say("plan %s is in force", app.Commit.Short()),
		})
	}
}

// sameApp says that b asks nothing new, whichever commit asked.
func sameApp(a, b ring.App) bool {
	a.Commit = b.Commit
	return sameJSON(a, b)
}

// leave marks apps of src that are not in its plan; tidy removes what is left.
func (t *turn) leave(src *Source, present map[string][]string) {
	for _, name := range sortedKeys(present) {
		if _, ok := src.Next.App(name); ok || t.refusal(src, name) != nil {
			continue
		}
		app := t.Facts.Apps[name].App
		app.Name, app.Source, app.Commit = name, src.Name, src.Next.Commit
		app.Services, app.Networks, app.Volumes = nil, nil, nil // volumes are never removed: nothing here names them any more
		t.set(ring.InForce{App: app, Since: t.now, Leaving: true})
		t.event(ring.Event{Kind: ring.AppInForce, Source: src.Name, App: name, Commit: src.Next.Commit, Reason: "left the commit"})
	}
}

// once makes an event that stands for a state, not a step: told when the plan
// began to wait. The row of the plan's posts remembers that it was told.
func (t *turn) once(e ring.Event) {
	for _, p := range t.Facts.Posts {
		if p.SHA == e.Commit && p.State == ring.PostPending && p.Description == postText(awaiting(e.Commit, e.Reason)) {
			return
		}
	}
	t.event(e)
}

func firstOf(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}
