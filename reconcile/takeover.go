package reconcile

import (
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// A signed answer, the trailer Gitring-Data of a commit, has an app take over what another
// one had. It stands in one commit and counts from then on: what it gave an app stays with
// the app's name.

// TakeOver has the apps of a plan use what signed answers gave them, those of this commit
// and of the ones before. It comes before RefuseLeftBehind, which refuses the apps of which
// an answer cannot be carried out: who signed that data is taken over does not mean to
// begin empty.
func (d *DataHost) TakeOver(plan *ring.Plan) {
	d.wrong = map[string]*ring.Refusal{}
	for i := range plan.Apps {
		app := &plan.Apps[i]
		none := slices.Contains(plan.Data, ring.DataAnswer{App: app.Name, From: ring.FromNone})
		if n := d.Names[app.Name]; n.Source == app.Source && !none { // it says so of all that it would begin
			for _, t := range n.Taken {
				takeOver(app, t)
			}
		}
		if r := d.carryAnswers(plan, app); r != nil {
			d.wrong[app.Name] = r
		}
	}
}

// carryAnswers carries out what a commit says of an app, and gives why it cannot be.
func (d *DataHost) carryAnswers(plan *ring.Plan, app *ring.App) *ring.Refusal {
	for _, a := range plan.Data {
		var r *ring.Refusal
		switch {
		case a.App == "":
			r = d.refuseUnreadable(plan, app, a)
		case a.App == app.Name && a.From != ring.FromNone:
			r = d.carryAnswer(plan, app, a)
		}
		if r != nil {
			return r
		}
	}
	return d.refuseMisspelt(plan, app)
}

// refuseUnreadable refuses an app that would begin something empty for an answer that is none.
func (d *DataHost) refuseUnreadable(plan *ring.Plan, app *ring.App, a ring.DataAnswer) *ring.Refusal {
	known := d.knownThings()
	for _, h := range holdingsOf(app, d.Root) {
		if !h.meant && h.from == "" && d.beginsEmpty(&h, known) {
			return d.refuseAnswer(plan, app, a, say("that names no two apps: %s: %s from <app>", ring.DataTrailer, app.Name))
		}
	}
	return nil
}

// carryAnswer carries out one answer, and gives why it cannot be.
func (d *DataHost) carryAnswer(plan *ring.Plan, app *ring.App, a ring.DataAnswer) *ring.Refusal {
	theirs := d.everOf(plan.Source, a.From)
	if len(theirs) == 0 {
		if _, had := d.Names[a.From]; !had && ring.Nearest(a.From, d.namesOf(plan.Source)) == "" {
			return nil // a host that never had it begins anew
		}
		return d.refuseAnswer(plan, app, a, say("app %s has no volume and no data folder on this host", a.From))
	}
	known, found := d.knownThings(), false
	var open []holding // what it would begin empty
	for _, h := range holdingsOf(app, d.Root) {
		switch {
		case slices.ContainsFunc(theirs, func(old holding) bool { return old.name == h.name }):
			found = true // it has it already
		case !h.meant && h.from == "" && d.beginsEmpty(&h, known) && d.oneHand(app, a.From):
			open = append(open, h)
		}
	}
	pairs, unclear := d.pairUp(app, open, theirs)
	if unclear != "" {
		return d.refuseAnswer(plan, app, a, unclear)
	}
	for _, p := range pairs {
		t := ring.Taken{Volume: p.h.key, As: p.old.placeOf(), From: p.old.makerOf()}
		if p.h.isFolder() {
			t = ring.Taken{Folder: p.h.source, As: p.old.source, From: p.old.app}
		}
		found = takeOver(app, t) || found
	}
	if !found {
		if !d.oneHand(app, a.From) {
			return d.refuseAnswer(plan, app, a, say("app %s is in other hands", a.From))
		}
		return d.refuseAnswer(plan, app, a, say("nothing that app %s has or had on this host is what app %s would begin empty", a.From, app.Name))
	}
	return nil
}

// oneHand reports whether the app that has or had data is in one hand with another.
func (d *DataHost) oneHand(app *ring.App, from string) bool {
	other := d.Left[from].App
	if f, ok := d.InForce[from]; ok {
		other = f.App
	}
	return app.Name == from || d.OneHand(app, &other)
}

// everOf is what an app of a source has in force, or gave up.
func (d *DataHost) everOf(source, app string) (out []holding) {
	if f, ok := d.InForce[app]; ok && f.App.Source == source {
		out = holdingsOf(&f.App, d.Root)
	}
	if was, ok := d.Left[app]; ok && was.App.Source == source {
		out = append(out, holdingsOf(&was.App, d.Root)...)
	}
	return out
}

// namesOf are the apps that a source has or had here.
func (d *DataHost) namesOf(source string) (out []string) {
	for _, name := range sortedKeys(d.Names) {
		if d.Names[name].Source == source {
			out = append(out, name)
		}
	}
	return out
}

// pair is something that an app would begin empty, and what it is to be instead.
type pair struct{ h, old *holding }

// pairUp finds what each of some things is to be instead. What is under the same key, or at
// the same place of the other app's folder, comes first for all of them, then what a service
// of the same name has; of the rest what has the same image and mount point. unclear says why
// that cannot be told.
func (d *DataHost) pairUp(app *ring.App, open, theirs []holding) (pairs []pair, unclear string) {
	gone := map[string]bool{} // what the app has, or has found
	for _, o := range holdingsOf(app, d.Root) {
		gone[o.name] = true
	}
	free := func(h *holding, like func(old *holding) bool) (out []*holding) {
		for i := range theirs {
			if old := &theirs[i]; old.isFolder() == h.isFolder() && old.root == h.root && !gone[old.name] && like(old) {
				out = append(out, old)
			}
		}
		return out
	}
	alike := func(h, old *holding) bool { return old.image != "" && old.image == h.image && old.target == h.target }
	rest := make([]*holding, 0, len(open))
	for i := range open {
		rest = append(rest, &open[i])
	}
	for _, like := range []func(h, old *holding) bool{
		func(h, old *holding) bool { return !h.isFolder() && old.key == h.key },
		func(h, old *holding) bool { return h.isFolder() && d.folderBelow(old) == pathWithin(app, h.source) },
		func(h, old *holding) bool { return old.service == h.service && alike(h, old) },
	} {
		rest = slices.DeleteFunc(rest, func(h *holding) bool {
			same := free(h, func(old *holding) bool { return like(h, old) })
			if len(same) > 0 {
				gone[same[0].name] = true
				pairs = append(pairs, pair{h, same[0]})
			}
			return len(same) > 0
		})
	}
	claimed := map[string]*holding{}
	for _, h := range rest {
		like := free(h, func(old *holding) bool { return alike(h, old) })
		if len(like) == 0 {
			continue
		}
		other := claimed[like[0].name]
		if len(like) > 1 || other != nil {
			return nil, say("which of its data is for %s cannot be told: say volumes: {<key>: {name: <volume>, x-gitring: {from: %s}}} in the Compose file, or mount the folder where it lies",
				h.calledName(), like[0].makerOf())
		}
		claimed[like[0].name] = h
		pairs = append(pairs, pair{h, like[0]})
	}
	return pairs, ""
}

// folderBelow is a folder as the Compose file of its app said it.
func (d *DataHost) folderBelow(old *holding) string {
	for _, app := range []ring.App{d.InForce[old.app].App, d.Left[old.app].App} {
		if app.Name == old.app && slices.ContainsFunc(holdingsOf(&app, d.Root), func(h holding) bool { return h.name == old.name }) {
			return pathWithin(&app, old.source)
		}
	}
	return ""
}

// takeOver has an app use something, and says whether it does. What the Compose file says of it
// counts more.
func takeOver(app *ring.App, t ring.Taken) bool {
	used := false
	app.Volumes, app.Services = slices.Clone(app.Volumes), slices.Clone(app.Services) // they are the reading's too
	for i := range app.Volumes {
		v := &app.Volumes[i]
		if t.Volume != "" && v.Key == t.Volume && v.External == "" && v.Name == "" && v.From == "" && v.EngineName(app.Name) != t.As {
			v.Name, v.From, used = t.As, t.From, true
		}
	}
	for i := range app.Services {
		s := &app.Services[i]
		for j := range s.Spec.Mounts {
			m := &s.Spec.Mounts[j]
			if t.Folder == "" || m.Source != t.Folder || m.Kind != ring.MountData && m.Kind != ring.MountSeed {
				continue
			}
			used = true
			s.Spec.Mounts = slices.Clone(s.Spec.Mounts)
			s.Spec.Mounts[j].Source = path.Clean(t.As)
		}
	}
	if used {
		app.Taken = append(slices.Clone(app.Taken), t)
		app.Notes = notesOfTaken(app.Notes, t)
	}
	return used
}

// notesOfTaken are the notes of an app that has something from another one: whoever backs a folder
// up by its note has to read where it lies.
func notesOfTaken(notes []string, t ring.Taken) []string {
	if t.Folder == "" {
		return notes
	}
	out := slices.Clone(notes)
	for i := range out {
		out[i] = strings.Replace(out[i], ring.FolderNote(t.Folder)+",", ring.FolderNote(path.Clean(t.As))+", taken over from app "+t.From+",", 1)
	}
	return out
}

// refuseMisspelt refuses an app whose Compose file takes something over from an app that never was
// here, where it nearly has the name of one that was: its volume would begin empty.
func (d *DataHost) refuseMisspelt(plan *ring.Plan, app *ring.App) *ring.Refusal {
	none := ring.DataAnswer{App: app.Name, From: ring.FromNone}
	if slices.Contains(plan.Data, none) {
		return nil
	}
	known := d.knownThings()
	for _, h := range holdingsOf(app, d.Root) {
		if _, had := d.Names[h.from]; h.from == "" || had || known[h.name] {
			continue
		}
		if meant := ring.Nearest(h.from, d.namesOf(plan.Source)); meant != "" && meant != app.Name {
			return &ring.Refusal{
				Code: ring.VolumeLeftBehind, Commit: plan.Commit, App: app.Name, File: h.place.File, Line: h.place.Line,
				Says: say("VOLUME %s WOULD BEGIN EMPTY: it is taken over from app %s, which never was on this host", h.placeOf(), h.from),
				Hint: say("did you mean %q? to begin empty: volumes: {%s: {x-gitring: {from: none}}}", meant, yamlScalar(h.key)),
			}
		}
	}
	return nil
}

// refuseAnswer refuses an app for an answer.
func (d *DataHost) refuseAnswer(plan *ring.Plan, app *ring.App, a ring.DataAnswer, why string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.BadValue, Commit: plan.Commit, App: app.Name, File: firstOf(app.Files),
		Says: say("the commit's message says %q, but %s", a, why),
		Hint: say("name the app that has the data, in the message of a new commit: git commit --allow-empty -S; to begin empty: %q", ring.DataAnswer{App: app.Name, From: ring.FromNone}),
	}
}
