package reconcile

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// An app, a service or a volume under another name has a volume under another name, and an
// app in another folder has other data folders. Those would begin empty beside the data.
// Compose begins them so without a word.

// RefuseLeftBehind takes the apps out of a plan that would begin a volume or a folder empty
// while the plan gives up one with the same image and mount point, or another commit did
// before. One counts with another image, too, where service, mount point and name are the same. So does
// one of a cluster whose pin is another. An app in force that has it keeps what is in force.
func (d *DataHost) RefuseLeftBehind(plan *ring.Plan) []*ring.Refusal {
	refused := d.refuseTwice(plan)
	maps.Copy(refused, d.wrong)
	d.refuseMoved(plan, refused)
	known, kept := d.knownThings(), d.plannedApps(plan)
	given := d.givenUp(plan, kept)
	for i := range plan.Apps {
		app := &plan.Apps[i]
		left := d.leftFor(app, kept)
		none := slices.Contains(plan.Data, ring.DataAnswer{App: app.Name, From: ring.FromNone})
		for _, h := range holdingsOf(app, d.Root) {
			if h.meant || !d.beginsEmpty(&h, known) {
				continue
			}
			if none {
				app.Empty = appendNew(app.Empty, h.name)
				continue
			}
			old, ok := d.matchLeft(app, &h, given, left)
			if !ok {
				continue
			}
			if refused[app.Name] == nil {
				refused[app.Name] = leftBehind(plan, app, &h, old)
			}
			d.keepApp(plan, app, old, refused)
		}
	}
	return takeOut(plan, refused)
}

// matchLeft is what a thing of an app would leave behind. Several databases of one image may move
// in one commit: the hint names the one that is most like it.
func (d *DataHost) matchLeft(app *ring.App, h *holding, given, left []holding) (*holding, bool) {
	alike := func(old *holding, was *ring.App) bool {
		its := old.image == h.image && old.image != "" || old.app == app.Name && old.service == h.service // another image of the same service
		its = its || old.service == h.service && calledAlike(app, was, h, old)                            // and under another name of the app
		return its && old.target == h.target && old.name != h.name
	}
	nearest := func(all []holding, of func(app string) *ring.App) (found *holding) {
		best := -1
		for i := range all {
			old := &all[i]
			was := of(old.app)
			if likeness := likenessOf(app, was, h, old); alike(old, was) && likeness > best && d.OneHand(app, was) {
				found, best = old, likeness
			}
		}
		return found
	}
	old := nearest(given, func(name string) *ring.App { f := d.InForce[name]; return &f.App })
	if old == nil {
		old = nearest(left, func(name string) *ring.App { f := d.Left[name]; return &f.App })
	}
	return old, old != nil
}

// calledAlike reports whether two things have one key, or one path below their apps' folders. An
// app that moves with another image, pgvector instead of postgres, keeps both.
func calledAlike(app, was *ring.App, h, old *holding) bool {
	if h.isFolder() || old.isFolder() {
		below := func(a *ring.App, x *holding) string { return strings.TrimPrefix(x.source, path.Clean(a.Path)+"/") }
		return h.isFolder() && old.isFolder() && below(app, h) == below(was, old)
	}
	return h.key == old.key
}

// likenessOf says how much of its app, folder, service and key a thing has kept: what comes first
// counts more than all that follows.
func likenessOf(app, was *ring.App, h, old *holding) (n int) {
	for _, same := range []bool{app.Name == was.Name, path.Clean(app.Path) == path.Clean(was.Path), h.service == old.service, h.key == old.key} {
		n *= 2
		if same {
			n++
		}
	}
	return n
}

// keepApp has the app in force that has the data keep it until the other one is mended.
func (d *DataHost) keepApp(plan *ring.Plan, app *ring.App, old *holding, refused map[string]*ring.Refusal) {
	f, ok := d.InForce[old.app]
	if !ok || f.Leaving || old.app == app.Name || refused[old.app] != nil {
		return
	}
	if !d.hasInForce(old.app, old.name) {
		return // it gave it up before
	}
	r := refused[app.Name]
	stays := *r
	stays.App, stays.File, stays.Line = old.app, "", 0
	stays.Hint = say("what app %s says in %s decides: %s", app.Name, r.File, r.Hint)
	if next := slices.IndexFunc(plan.Apps, func(a ring.App) bool { return a.Name == old.app }); next >= 0 {
		stays.File = firstOf(plan.Apps[next].Files)
	}
	refused[old.app] = &stays
	plan.Refuse(old.app, &stays, f.App)
}

// refuseTwice refuses who would write what another app of the plan has, where one of them takes it
// over. Who has it in force keeps it; where nobody does, it is for the app whose it was.
func (d *DataHost) refuseTwice(plan *ring.Plan) map[string]*ring.Refusal {
	refused := map[string]*ring.Refusal{}
	planned := d.plannedApps(plan)
	taken := map[string]bool{} // what one of the plan takes over
	for i := range plan.Apps {
		for _, h := range holdingsOf(&plan.Apps[i], d.Root) {
			taken[h.name] = taken[h.name] || takesOver(&plan.Apps[i], &h)
		}
	}
	for i := range plan.Apps {
		app := &plan.Apps[i]
		for _, h := range holdingsOf(app, d.Root) {
			other := slices.IndexFunc(planned[h.name], func(name string) bool { return name != app.Name })
			if other < 0 || !taken[h.name] || refused[app.Name] != nil || d.hasInForce(app.Name, h.name) {
				continue
			}
			name := planned[h.name][other]
			if !takesOver(app, &h) && !slices.ContainsFunc(planned[h.name], func(name string) bool { return d.hasInForce(name, h.name) }) {
				continue
			}
			refused[app.Name] = &ring.Refusal{
				Code: ring.Conflict, Commit: plan.Commit, App: app.Name, File: h.place.File, Line: h.place.Line,
				Says: say("%s is taken over, and both app %s and app %s have it in this commit", h.calledName(), app.Name, name),
				Hint: say("two would write it: take it out of app %s, or mount another one here", name),
			}
		}
	}
	return refused
}

// hasInForce reports whether an app has something in force.
func (d *DataHost) hasInForce(app, name string) bool {
	f, ok := d.InForce[app]
	return ok && !f.Leaving && slices.ContainsFunc(holdingsOf(&f.App, d.Root), func(h holding) bool { return h.name == name })
}

// takesOver reports whether an app takes something over, as its Compose file or a signed answer says.
func takesOver(app *ring.App, h *holding) bool {
	return h.from != "" || slices.ContainsFunc(app.Taken, func(t ring.Taken) bool {
		return h.isFolder() && t.Folder != "" && t.As == h.source
	})
}

// takeOut takes refused apps out of a plan, and gives their refusals.
func takeOut(plan *ring.Plan, refused map[string]*ring.Refusal) (all []*ring.Refusal) {
	if len(refused) == 0 {
		return nil
	}
	plan.Apps = slices.DeleteFunc(slices.Clone(plan.Apps), func(a ring.App) bool {
		r := refused[a.Name]
		if r != nil && plan.Refused[a.Name] == nil {
			plan.Refuse(a.Name, r, a)
		}
		return r != nil
	})
	for _, name := range sortedKeys(refused) {
		all = append(all, refused[name])
	}
	return all
}

func leftBehind(plan *ring.Plan, app *ring.App, h, old *holding) *ring.Refusal {
	what := "VOLUME"
	if h.isFolder() {
		what = "FOLDER"
	}
	r := &ring.Refusal{
		Code: ring.VolumeLeftBehind, Commit: plan.Commit, App: app.Name, File: h.place.File, Line: h.place.Line,
		Says: say("%s %s WOULD BEGIN EMPTY: app %s has the data in %s, which this commit gives up", what, h.placeOf(), old.app, old.calledName()),
	}
	if old.commit != "" {
		r.Says = say("%s %s WOULD BEGIN EMPTY: app %s had the data in %s, and commit %s gave it up", what, h.placeOf(), old.app, old.calledName(), old.commit.Short())
	}
	for _, x := range []*holding{h, old} {
		if x.isFolder() {
			r.Folders += x.placeOf() + "\n"
		}
	}
	take, none := ring.DataAnswer{App: app.Name, From: old.app}, ring.DataAnswer{App: app.Name, From: ring.FromNone}
	switch {
	case h.isFolder() != old.isFolder():
		r.Hint = say("mount %s again, or copy what it holds; to begin empty, sign %q in a commit's message", old.calledName(), none)
	case h.isFolder() && h.root != old.root:
		r.Hint = say("move it below %s; to begin empty, sign %q in a commit's message", h.root, none)
	case h.isFolder():
		r.Hint = say("to take the data over, sign %q in a commit's message, or stop the app and move the folder; to begin empty: %q", take, none)
	default:
		r.Hint = say("to take the data over: %s, or sign %q in a commit's message; to begin empty: volumes: {%s: {x-gitring: {from: none}}}", volumeWords(app, h, old), take, yamlScalar(h.key))
	}
	return r
}

// volumeWords are what the Compose file says to take a volume over.
func volumeWords(app *ring.App, h, old *holding) string {
	maker := old.makerOf()
	switch {
	case maker == app.Name:
		return say("volumes: {%s: {name: %s}}", yamlScalar(h.key), yamlScalar(old.placeOf()))
	case ring.VolumeName(maker, h.key) != old.placeOf(): // under another key, or with a name of its own
		return say("volumes: {%s: {name: %s, x-gitring: {from: %s}}}", yamlScalar(h.key), yamlScalar(old.placeOf()), maker)
	}
	return say("volumes: {%s: {x-gitring: {from: %s}}}", yamlScalar(h.key), maker)
}

func appendNew(all []string, name string) []string {
	if slices.Contains(all, name) {
		return all
	}
	return append(all, name)
}
