package reconcile

import (
	"cmp"
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
	ring.Reason
	on string // the app that it waits for
}

// forceAtOnce puts apps in force that are ready and wait for each other: all those for
// which what they wait for is in force, or comes with them.
func (t *decider) forceAtOnce(src *Source, ready []staged) {
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
			if s.None() {
				continue
			}
			delete(coming, name) // and who counted on it is asked again
			put(&t.stays, name, s)
			put(&t.staging, name, s.Reason)
			again = true
		}
	}
	for i := range ready {
		if s := &ready[i]; coming[s.app.Name] {
			t.putInForce(src, s.app, s.have, s.known)
		}
	}
}

// behindOther is why an app of a plan, which is ready, is not in force yet: for another one
// that neither is nor comes with it.
func (t *Pass) behindOther(src *Source, next *ring.App, coming map[string]bool) stay {
	if s := t.transferReason(src, next.Name, next, coming); !s.None() {
		return s
	}
	for _, after := range next.After {
		if t.nextApp(src, after.App) != nil && !coming[after.App] && !t.inForceAt(after.App, next.Commit) {
			return stay{waitsForApp(after.App), after.App}
		}
	}
	return stay{}
}

// waitsInTurn reports whether an app of a plan waits for another at whatever distance, to
// come after it or because that takes over from it. Two that wait for each other come
// into force at once.
func (t *Pass) waitsInTurn(src *Source, name, other string) bool {
	return t.reachesBy(src, name, other, map[string]bool{}, t.forcedAfter)
}

// startsInTurn says the same of the start of what is in force: one that takes over from
// another waits for that, too.
func (t *Pass) startsInTurn(src *Source, name, other string) bool {
	return t.reachesBy(src, name, other, map[string]bool{}, func(src *Source, next *ring.App) []string {
		return append(t.forcedAfter(src, next), t.giversTo(src, next)...)
	})
}

// reachesBy reports whether steps from app to app lead from one of a plan to another.
func (t *Pass) reachesBy(src *Source, name, other string, met map[string]bool, steps func(*Source, *ring.App) []string) bool {
	if name == other {
		return true
	}
	next := t.nextApp(src, name)
	if met[name] || next == nil {
		return false
	}
	met[name] = true
	return slices.ContainsFunc(steps(src, next), func(on string) bool { return t.reachesBy(src, on, other, met, steps) })
}

// forcedAfter are the apps that one of a plan may wait for before it is in force.
func (t *Pass) forcedAfter(src *Source, next *ring.App) (on []string) {
	for _, after := range next.After {
		on = append(on, after.App)
	}
	for _, what := range t.givesUp(src, next.Name, next) {
		for _, heir := range t.heirsOf(src)[anyAddress(what)] {
			if heir != next.Name {
				on = append(on, heir)
			}
		}
	}
	return on
}

// giversTo are the apps that by a plan give up what one of it takes over, or do so by
// the plan in force and have what was good there still.
func (t *Pass) giversTo(src *Source, next *ring.App) (givers []string) {
	takes := subtract(servedWrites(next), t.goodOn(next.Name))
	if len(takes) == 0 {
		return nil
	}
	for _, name := range sortedKeys(t.Facts.Apps) {
		f := t.Facts.Apps[name]
		gives := append(t.givesUp(src, name, t.nextApp(src, name)), subtract(t.goodOn(name), servedWrites(&f.App))...)
		if name != next.Name && slices.ContainsFunc(takes, func(what string) bool { return anyClash(gives, what) }) {
			givers = append(givers, name)
		}
	}
	return givers
}

// transferReason is why an app whose next plan gives up the data that it writes keeps the one
// in force: another app takes that over and cannot serve yet. next is nil where the app
// left the commit.
func (t *Pass) transferReason(src *Source, name string, next *ring.App, coming map[string]bool) stay {
	for _, what := range t.givesUp(src, name, next) {
		if !isData(what) {
			continue
		}
		heirs := slices.DeleteFunc(slices.Clone(t.heirsOf(src)[what]), func(heir string) bool {
			return heir == name || t.servedBeside(name, heir, what)
		})
		if len(heirs) == 0 || t.servedStill(src, name, what, heirs) {
			continue
		}
		var stays stay
		for _, heir := range heirs {
			s := t.notYet(src, name, heir, what, coming)
			if s.None() {
				stays = s
				break
			}
			if stays.None() {
				stays = s
			}
		}
		if !stays.None() {
			return stays
		}
	}
	return stay{}
}

// servedBeside reports whether a plan that was in force had another app serve some data beside
// one: it takes over nothing, whether or not it ever came as far.
func (t *Pass) servedBeside(name, other, what string) bool {
	f := t.Facts.Apps[name]
	for i := range f.App.Services {
		g := t.Facts.Good[ring.ID(name, f.App.Services[i].Name)]
		if g != nil && slices.ContainsFunc(g.With[what], func(id ring.ServiceID) bool { app, _ := id.Split(); return app == other }) {
			return true
		}
	}
	return false
}

// servedStill reports whether one more app has served some data all along, and goes on to: it
// is nobody's to hand on.
func (t *Pass) servedStill(src *Source, name, what string, heirs []string) bool {
	for other, f := range t.Facts.Apps {
		if other == name || f.Leaving || slices.Contains(heirs, other) || !slices.Contains(servedWrites(&f.App), what) {
			continue
		}
		if f.App.Source != src.Name || t.appRefusal(src, other) != nil || !slices.Contains(t.givesUp(src, other, t.nextApp(src, other)), what) {
			return true
		}
	}
	return false
}

// notYet is why one that takes over what an app gives up cannot begin: it is not in
// force and does not come now, or a person or another app keeps it from starting.
func (t *Pass) notYet(src *Source, giver, heir, what string, coming map[string]bool) stay {
	s := stay{ring.Reason{Code: ring.WhyTransferPending, Says: say("waits for app %s, which takes over %s", heir, what)}, heir}
	next := t.nextApp(src, heir)
	if t.nextApp(src, giver) == nil && t.inItsWay(giver, heir) {
		return stay{}
	}
	if next == nil || t.refusedHere(src, heir) {
		return t.stayFor(src, heir, "takes over "+what)
	}
	if f, ok := t.Facts.Apps[heir]; !coming[heir] && !(ok && f.App.Source == src.Name && isAsked(&f, next)) {
		return s
	}
	for i := range next.Services {
		id := ring.ID(heir, next.Services[i].Name)
		if hand := cmp.Or(t.heldBy(id), t.pauseReason(id)); !hand.None() && slices.Contains(servedWritesOf(next, &next.Services[i]), what) {
			s.Says += " and is " + hand.Says
			return s
		}
	}
	for _, after := range next.After {
		if there, dead := t.hasArrived(after); !there && !t.startsInTurn(src, after.App, giver) {
			s.Says, s.Dead = say("%s and waits for app %s", s.Says, after.App), dead
			return s
		}
	}
	return stay{}
}

// hasArrived reports whether an app has come as far as another that is after it wants, as the
// facts tell: nobody has looked at its instances yet. dead is that it failed.
func (t *Pass) hasArrived(after ring.AfterApp) (there, dead bool) {
	f, ok := t.Facts.Apps[after.App]
	if !ok {
		return false, false
	}
	for i := range f.App.Services {
		s := &f.App.Services[i]
		id := ring.ID(after.App, s.Name)
		verdict, judged := t.Facts.Verdicts[ring.VersionKey(id, s.Version)]
		row := t.Facts.Rollouts[id]
		if s.Kind == ring.JobK && len(runsBefore(&f.App, s.Name)) > 0 {
			continue // it has no run of its own: what it runs before tells
		}
		if s.Kind == ring.Worker && row.Done && row.Version == s.Version && !(judged && !verdict.Good) {
			continue
		}
		if why, dead := t.missingUntil(&f.App, s, after.Until); why != "" {
			return false, dead
		}
	}
	return true, false
}

// stayFor is to stay for an app that is not in force, and what that does.
func (t *Pass) stayFor(src *Source, heir, does string) stay {
	s := stay{ring.Reason{Code: ring.WhyTransferPending, Says: say("waits for app %s, which %s", heir, does)}, heir}
	if s.Dead = t.refusedHere(src, heir); s.Dead {
		s.Says += " and is refused"
	}
	return s
}

// stayReason is why an app that left the commit serves still.
func (t *Pass) stayReason(src *Source, name string) stay {
	if heir := t.successorOf(src, name); heir != "" {
		return t.stayFor(src, heir, "takes its place")
	}
	return t.transferReason(src, name, nil, nil)
}

// successorOf is an app of the next plan that takes the place of one that left it, under
// another name, and is not in force yet; "" where there is none. It is new in the same
// folder, or new on this host and like the one that left.
func (t *Pass) successorOf(src *Source, name string) string {
	f, known := t.Facts.Apps[name]
	for _, i := range t.nextIn(src, f.App.Path) {
		next := &src.Next.Apps[i]
		g := t.Facts.Apps[next.Name]
		if known && !t.inItsWay(name, next.Name) && (t.isNew(src, next.Name) || path.Clean(g.App.Path) != path.Clean(next.Path) && !isAsked(&g, next)) {
			return next.Name
		}
	}
	was := t.formerApp(src, name)
	for i := range src.Next.Apps {
		if next := &src.Next.Apps[i]; t.isNew(src, next.Name) && isLike(&was, next) && !t.inItsWay(name, next.Name) {
			return next.Name
		}
	}
	for _, refused := range sortedKeys(src.Next.Claims) {
		if claims := src.Next.Claims[refused]; t.isNew(src, refused) && isLike(&was, &claims) {
			return refused
		}
	}
	return ""
}

// inItsWay reports whether an app has what the one that is to follow it is refused for, and
// takes it along when it goes: each would wait for the other.
func (t *Pass) inItsWay(name, next string) bool {
	r := t.refused[next]
	return r != nil && r.Owner == name
}

// isNew reports whether nothing of an app is in force by its source.
func (t *Pass) isNew(src *Source, name string) bool {
	f, ok := t.Facts.Apps[name]
	return !ok || f.Leaving || f.App.Source != src.Name
}

// formerApp is an app that is in force; as far as its instances tell it where a lost database
// alone knew.
func (t *Pass) formerApp(src *Source, name string) ring.App {
	if f, ok := t.Facts.Apps[name]; ok && f.App.Source == src.Name {
		return f.App
	}
	app := ring.App{Name: name}
	for _, id := range t.seenOf(name) {
		_, service := id.Split()
		in := t.seen[id][0]
		app.Services = append(app.Services, ring.Service{Name: service, Kind: in.Kind, Spec: ring.Spec{Image: in.Image}})
	}
	return app
}

// isLike reports whether two apps have services of the same names, one of which at least has
// its image from the same repository.
func isLike(a, b *ring.App) bool {
	if len(a.Services) == 0 || len(a.Services) != len(b.Services) {
		return false
	}
	same := false
	for i := range a.Services {
		s, ok := inForce(b, a.Services[i].Name)
		if !ok {
			return false
		}
		from := repositoryOf(a.Services[i].Spec.Image)
		same = same || from != "" && from == repositoryOf(s.Spec.Image)
	}
	return same
}

// givesUp is what an app has now that outlives its instances, or is a port, and does not
// have by its next plan.
func (t *Pass) givesUp(src *Source, name string, next *ring.App) []string {
	var has []string
	f, ok := t.Facts.Apps[name]
	switch {
	case ok && f.App.Source == src.Name && !f.Leaving:
		has = servedWrites(&f.App)
	case !ok: // by what its instances hold, after a database was lost
		for _, id := range t.seenOf(name) {
			for _, in := range t.seen[id] {
				if in.Source == src.Name && in.Live() && in.Kind == ring.Worker {
					has = append(has, mountedWrites(in)...)
				}
			}
		}
	}
	if len(has) == 0 || next == nil {
		return has
	}
	for i := range next.Services {
		has = subtract(has, writesOf(next, &next.Services[i]))
	}
	return has
}

// seenOf are the services of an app that instances are seen of.
func (t *Pass) seenOf(app string) []ring.ServiceID {
	all := t.seenIDs()
	from, _ := slices.BinarySearch(all, ring.ID(app, ""))
	to := from
	for to < len(all) && strings.HasPrefix(string(all[to]), app+"/") {
		to++
	}
	return all[from:to]
}

// heirsOf are, by what is served, the apps that a plan of a source has serve it and that
// did not when they last were good, the refused ones among them as far as they could
// be read.
func (t *Pass) heirsOf(src *Source) map[string][]string {
	if heirs, known := t.by.heirs[src.Name]; known {
		return heirs
	}
	heirs := map[string][]string{}
	enter := func(name string, app *ring.App) {
		for _, what := range subtract(servedWrites(app), t.goodOn(name)) {
			if key := anyAddress(what); !slices.Contains(heirs[key], name) {
				heirs[key] = append(heirs[key], name)
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

// goodOn is what an app served when its services last were good.
func (t *Pass) goodOn(name string) (out []string) {
	f := t.Facts.Apps[name]
	for i := range f.App.Services {
		if g := t.Facts.Good[ring.ID(name, f.App.Services[i].Name)]; g != nil {
			out = append(out, servedWritesOf(&g.App, &g.Service)...)
		}
	}
	return out
}

// servedWrites is what the workers of an app write or publish.
func servedWrites(app *ring.App) (out []string) {
	for i := range app.Services {
		out = append(out, servedWritesOf(app, &app.Services[i])...)
	}
	return out
}

// servedWritesOf is what a worker writes or publishes. A job serves nobody.
func servedWritesOf(app *ring.App, s *ring.Service) []string {
	if s.Kind != ring.Worker || s.Replicas == 0 {
		return nil
	}
	return writesOf(app, s)
}

// isData reports whether something is handed on with what is in it: it is no port, and no
// socket, behind which is another program.
func isData(what string) bool { return !isPort(what) && path.Ext(what) != ".sock" }
