package reconcile

import (
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// Succession: what one commit takes from an app and gives to another, such as a
// database and its volume, or a whole app under another name, is served by the first
// until the second can come into force, and both do in one look. What then never
// runs twice is for the rules of inherit.go. Without this an app that is refused, or
// whose image cannot be had, would take down one that serves.

// stay is why an app keeps what is in force of it; the zero value is that it does not.
type stay struct {
	says string
	on   string // the app that it waits for
}

// forceAtOnce puts apps in force that are ready and wait for each other: all those for
// which what they wait for is in force, or comes with them.
func (t *turn) forceAtOnce(src *Source, ready []staged) {
	coming := map[string]bool{}
	for i := range ready {
		coming[ready[i].app.Name] = true
	}
	for again := len(ready) > 0; again; {
		again = false
		for i := range ready {
			name := ready[i].app.Name
			if !coming[name] {
				continue
			}
			s := t.behindOther(src, &ready[i].app, coming)
			if s.says == "" {
				continue
			}
			delete(coming, name) // and who counted on it is asked again
			put(&t.stays, name, s)
			put(&t.stageSays, name, s.says)
			again = true
		}
	}
	for i := range ready {
		if s := &ready[i]; coming[s.app.Name] {
			t.force(src, s.app, s.have, s.known)
		}
	}
}

// behindOther is why an app of a plan, which is ready, is not in force yet: for another one
// that neither is nor comes with it.
func (t *turn) behindOther(src *Source, next *ring.App, coming map[string]bool) stay {
	if s := t.heirless(src, next.Name, next, coming); s.says != "" {
		return s
	}
	for _, after := range next.After {
		if t.nextApp(src, after.App) != nil && !coming[after.App] && !t.at(after.App, next.Commit) {
			return stay{say("waits for app %s", after.App), after.App}
		}
	}
	return stay{}
}

// waitsInTurn says that an app of a plan waits for another at whatever distance, to
// come after it or because that takes over from it. Two that wait for each other come
// into force at once.
func (t *turn) waitsInTurn(src *Source, name, other string, met map[string]bool) bool {
	if name == other {
		return true
	}
	next := t.nextApp(src, name)
	if met[name] || next == nil {
		return false
	}
	met[name] = true
	for _, after := range next.After {
		if t.waitsInTurn(src, after.App, other, met) {
			return true
		}
	}
	for _, what := range t.givesUp(src, name, next) {
		for _, heir := range t.heirsOf(src)[what] {
			if heir != name && t.waitsInTurn(src, heir, other, met) {
				return true
			}
		}
	}
	return false
}

// heirless is why an app whose next plan gives up what it writes keeps the one in
// force: another app takes that over and cannot come yet. next is nil where the app
// left the commit.
func (t *turn) heirless(src *Source, name string, next *ring.App, coming map[string]bool) stay {
	for _, what := range t.givesUp(src, name, next) {
		heirs := slices.DeleteFunc(slices.Clone(t.heirsOf(src)[what]), func(heir string) bool { return heir == name })
		if len(heirs) == 0 {
			continue // nobody's any more
		}
		if !slices.ContainsFunc(heirs, func(heir string) bool { return t.comes(src, heir, what, coming) }) {
			return t.stayFor(src, heirs[0], "takes over "+what)
		}
	}
	return stay{}
}

// comes says that an app that takes something over is in force or comes now, and that
// no person keeps it from starting.
func (t *turn) comes(src *Source, heir, what string, coming map[string]bool) bool {
	next := t.nextApp(src, heir)
	if next == nil {
		return false
	}
	f, ok := t.Facts.Apps[heir]
	if !coming[heir] && !(ok && f.App.Source == src.Name && asked(&f, next)) {
		return false
	}
	for i := range next.Services {
		s := &next.Services[i]
		if id := ring.ID(heir, s.Name); slices.Contains(dataOf(next, s), what) && t.heldBy(id)+t.halted(id) != "" {
			return false
		}
	}
	return true
}

// stayFor is to stay for an app, and what that does.
func (t *turn) stayFor(src *Source, heir, does string) stay {
	says := say("waits for app %s, which %s", heir, does)
	if t.refusedHere(src, heir) {
		says += " and is refused"
	}
	return stay{says, heir}
}

// outstays is why an app that left the commit serves still.
func (t *turn) outstays(src *Source, name string) stay {
	if heir := t.successor(src, name); heir != "" {
		return t.stayFor(src, heir, "takes its place")
	}
	return t.heirless(src, name, nil, nil)
}

// successor is an app of the next plan that takes the place of one that left it, under
// another name, and is not in force yet; "" where there is none. It lies in the same
// folder, or is new on this host and like the one that left.
func (t *turn) successor(src *Source, name string) string {
	f, known := t.Facts.Apps[name]
	for _, i := range t.nextIn(src, f.App.Path) {
		next := &src.Next.Apps[i]
		if g, ok := t.Facts.Apps[next.Name]; known && (!ok || g.App.Source != src.Name || !asked(&g, next)) {
			return next.Name
		}
	}
	was := t.was(src, name)
	for i := range src.Next.Apps {
		if next := &src.Next.Apps[i]; t.isNew(src, next.Name) && like(&was, next) {
			return next.Name
		}
	}
	for _, refused := range sortedKeys(src.Next.Claims) {
		if claims := src.Next.Claims[refused]; t.isNew(src, refused) && like(&was, &claims) {
			return refused
		}
	}
	return ""
}

// isNew says that nothing of an app is in force by its source.
func (t *turn) isNew(src *Source, name string) bool {
	f, ok := t.Facts.Apps[name]
	return !ok || f.Leaving || f.App.Source != src.Name
}

// was is an app that is in force; as far as its instances tell it where a lost database
// alone knew.
func (t *turn) was(src *Source, name string) ring.App {
	if f, ok := t.Facts.Apps[name]; ok && f.App.Source == src.Name {
		return f.App
	}
	app := ring.App{Name: name}
	for _, id := range t.seenIDs() {
		if a, service := id.Split(); a == name {
			in := t.seen[id][0]
			app.Services = append(app.Services, ring.Service{Name: service, Kind: in.Kind, Spec: ring.Spec{Image: in.Image}})
		}
	}
	return app
}

// like says that two apps have services of the same names, one of which at least has
// its image from the same repository.
func like(a, b *ring.App) bool {
	if len(a.Services) == 0 || len(a.Services) != len(b.Services) {
		return false
	}
	same := false
	for i := range a.Services {
		s, ok := inForce(b, a.Services[i].Name)
		if !ok {
			return false
		}
		from := repository(a.Services[i].Spec.Image)
		same = same || from != "" && from == repository(s.Spec.Image)
	}
	return same
}

// repository is an image without its tag and digest, and without what Docker puts before
// the name of its own.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	return strings.TrimPrefix(strings.TrimPrefix(image, "docker.io/"), "library/")
}

// givesUp is the data that an app serves now and does not write by its next plan; nil
// is that it has none.
func (t *turn) givesUp(src *Source, name string, next *ring.App) []string {
	var serves []string
	f, ok := t.Facts.Apps[name]
	switch {
	case ok && f.App.Source == src.Name && !f.Leaving:
		serves = served(&f.App)
	case !ok: // by what its instances hold, after a database was lost
		for _, id := range t.seenIDs() {
			if app, _ := id.Split(); app != name || t.seen[id][0].Source != src.Name {
				continue
			}
			for _, in := range t.seen[id] {
				if in.Live() && in.Kind == ring.Worker {
					serves = append(serves, dataAmong(mounted(in))...)
				}
			}
		}
	}
	if len(serves) == 0 || next == nil {
		return serves
	}
	for i := range next.Services {
		serves = except(serves, writes(next, &next.Services[i]))
	}
	return serves
}

// heirsOf are, by data, the apps that a plan of a source has serve it and that did not
// when they last were good, the refused ones among them as far as they could be read.
func (t *turn) heirsOf(src *Source) map[string][]string {
	if heirs, known := t.by.heirs[src.Name]; known {
		return heirs
	}
	heirs := map[string][]string{}
	enter := func(name string, app *ring.App) {
		for _, what := range except(served(app), t.goodOn(name)) {
			if !slices.Contains(heirs[what], name) {
				heirs[what] = append(heirs[what], name)
			}
		}
	}
	for i := range src.Next.Apps {
		enter(src.Next.Apps[i].Name, &src.Next.Apps[i])
	}
	for _, name := range sortedKeys(src.Next.Claims) {
		claims := src.Next.Claims[name]
		enter(name, &claims)
	}
	put(&t.by.heirs, src.Name, heirs)
	return heirs
}

// goodOn is the data that an app served when its services last were good.
func (t *turn) goodOn(name string) (out []string) {
	f := t.Facts.Apps[name]
	for i := range f.App.Services {
		if g := t.Facts.Good[ring.ID(name, f.App.Services[i].Name)]; g != nil {
			out = append(out, dataOf(&g.App, &g.Service)...)
		}
	}
	return out
}

// served is the data that the workers of an app write. A job serves nobody.
func served(app *ring.App) (out []string) {
	for i := range app.Services {
		out = append(out, dataOf(app, &app.Services[i])...)
	}
	return out
}

// dataOf is what a worker writes that outlives it and is data.
func dataOf(app *ring.App, s *ring.Service) []string {
	if s.Kind != ring.Worker || s.Replicas == 0 {
		return nil
	}
	return dataAmong(writes(app, s))
}

// dataAmong is what of some can be handed on with what is in it: no port, and no socket,
// behind which is another program.
func dataAmong(some []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(what string) bool {
		return isPort(what) || path.Ext(what) == ".sock"
	})
}
