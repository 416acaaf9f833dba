package reconcile

import (
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// admitApp reports whether the host has nothing against the app, beside what is on it
// and not ours. It is asked once about each content of an app, after the images
// are here and before anything is changed; what asks for nothing new of the host
// is not asked about.
func (t *decider) admitApp(app *ring.App, have ring.InForce, known bool) bool {
	known = known && !have.Leaving
	if known && !asksAnew(&have.App, app) {
		return true
	}
	adopting := t.adoptedUnplaced(app.Name)
	key := admissionOf(app, adopting)
	if t.Admitted[app.Name] == key {
		return true
	}
	if src := t.staged(app); src != nil {
		if circle := t.networkCircle(src, app); circle != nil {
			put(&t.refused, app.Name, circle)
			return false
		}
		for _, a := range t.networksAwaited(src, app) {
			if t.hostRefusal(src, a.maker.Name) == nil {
				put(&t.staging, app.Name, ring.Reason{Code: ring.WhyAppNotReady, Says: say("waits for network %s, which app %s makes", a.network, a.maker.Name)})
				return false
			}
		}
	}
	a := t.admission(app, have, known, key, adopting)
	t.addStep(a)
	put(&t.staging, app.Name, ring.Reason{Code: ring.WhyHostCheckPending, Says: "looking for what is in the way on this host"})
	try, ok := t.Tries[a.Target()]
	switch {
	case !ok || try.Version != a.Version:
	case try.Refusal != nil:
		r := *try.Refusal
		r.Commit, r.App = app.Commit, app.Name
		if r.File == "" {
			r.File = firstOf(app.Files)
		}
		put(&t.refused, app.Name, &r)
		delete(t.staging, app.Name)
	default:
		why := t.staging[app.Name]
		why.Says += say(": %s; attempt %d", try.Err, try.N)
		t.staging[app.Name] = why
	}
	return false
}

// admission is the step that asks the host about an app.
func (t *Pass) admission(app *ring.App, have ring.InForce, known bool, key string, adopting []ring.Adopted) ring.Action {
	a := ring.Action{
		Kind: ring.DoAdmit, Source: app.Source, App: app.Name, Commit: app.Commit, Version: ring.Version(key), Of: app,
		Reason: "what is on this host and not ours may be in the way", Kept: t.namesKept(),
	}
	if known {
		a.Was = &have.App
	}
	a.Adopted, a.Coming, a.Makers = adopting, t.networksComing(app), t.networkMakers(app)
	return a
}

// Admissions are the questions that carrying out a plan would ask the host, one for each app that
// asks something new of it, and what is refused without a question. A network that comes with
// another app of the plan counts as there: the app would wait for it.
func Admissions(w World, next *ring.Plan, now time.Time) (asks []ring.Action, refused []*ring.Refusal) {
	w.Sources = slices.Clone(w.Sources)
	i := slices.IndexFunc(w.Sources, func(s Source) bool { return s.Name == next.Source })
	if i < 0 {
		w.Sources, i = append(w.Sources, Source{Name: next.Source}), len(w.Sources)
	}
	w.Sources[i].Next = next
	t := newPass(w, now)
	t.indexSeen()
	for i := range next.Apps {
		if t.isLeft(next.Apps[i].Name) {
			continue
		}
		have, known := t.Facts.Apps[next.Apps[i].Name]
		known = known && !have.Leaving
		app := t.pinnedAs(&next.Apps[i])
		if known && !asksAnew(&have.App, &app) {
			continue
		}
		a := t.admission(&app, have, known, "", t.adoptedUnplaced(app.Name))
		if src := t.staged(&app); src != nil {
			if circle := t.networkCircle(src, &app); circle != nil {
				refused = append(refused, circle)
				continue
			}
			for _, awaited := range t.networksAwaited(src, &app) {
				a.Coming = append(a.Coming, awaited.network)
			}
		}
		asks = append(asks, a)
	}
	return asks, refused
}

// staged is the source whose next plan an app is of, where its apps come into force one by one.
func (t *Pass) staged(app *ring.App) *Source {
	for i := range t.Sources {
		src := &t.Sources[i]
		if src.Name == app.Source && src.Apply != ApplyCommit && src.Next != nil && src.Next.Commit == app.Commit {
			return src
		}
	}
	return nil
}

// awaitedNetwork is one that another app of the commit makes, and that is not there yet.
type awaitedNetwork struct {
	network string
	maker   *ring.App
}

// networksAwaited are the networks that an app joins, that are not there yet, and that come
// with another app of its commit.
func (t *Pass) networksAwaited(src *Source, app *ring.App) (out []awaitedNetwork) {
	for _, network := range externalNetworks(app) {
		if _, there := t.networksBy().there[network]; there {
			continue
		}
		for j := range src.Next.Apps {
			maker := &src.Next.Apps[j]
			if maker.Name != app.Name && slices.Contains(NetworksMadeBy(maker), network) {
				out = append(out, awaitedNetwork{network, maker})
			}
		}
	}
	return out
}

// networkCircle refuses an app that waits for a network of an app that waits, by whichever
// way, for one of its own: none of them could be the first.
func (t *Pass) networkCircle(src *Source, app *ring.App) *ring.Refusal {
	met := map[string]bool{}
	var back func(from *ring.App) []string // what is waited for on the way back to the app
	back = func(from *ring.App) []string {
		met[from.Name] = true
		for _, a := range t.networksAwaited(src, from) {
			step := say("app %s joins network %s, which app %s makes", from.Name, a.network, a.maker.Name)
			if a.maker.Name == app.Name {
				return []string{step}
			}
			if met[a.maker.Name] {
				continue
			}
			if rest := back(a.maker); rest != nil {
				return append([]string{step}, rest...)
			}
		}
		return nil
	}
	steps := back(app)
	if steps == nil {
		return nil
	}
	return &ring.Refusal{
		Code: ring.BadValue, Commit: app.Commit, App: app.Name, File: firstOf(app.Files),
		Says: strings.Join(steps, ", and ") + ": none of them can be the first",
		Hint: "have one app make all of these networks, and the others join them as external; or say apply: commit in the source, where all apps begin at once",
	}
}

// externalNetworks are the engine's names of the networks that an app joins and does not make.
func externalNetworks(app *ring.App) (names []string) {
	for i := range app.Networks {
		if name := app.Networks[i].External; name != "" {
			names = append(names, name)
		}
	}
	return names
}

// networksComing are the networks that the apps make which come into force at once with an
// app: those of its commit, where the source carries out all of one or nothing.
func (t *Pass) networksComing(app *ring.App) (names []string) {
	for i := range t.Sources {
		src := &t.Sources[i]
		if src.Name != app.Source || src.Apply != ApplyCommit || src.Next == nil || src.Next.Commit != app.Commit {
			continue
		}
		for j := range src.Next.Apps {
			names = append(names, NetworksMadeBy(&src.Next.Apps[j])...)
		}
	}
	return names
}

// networkMakers are the other apps of the commit of an app, by the engine's names of the
// networks that they make.
func (t *Pass) networkMakers(app *ring.App) map[string]string {
	makers := map[string]string{}
	for i := range t.Sources {
		src := &t.Sources[i]
		if src.Name != app.Source || src.Next == nil || src.Next.Commit != app.Commit {
			continue
		}
		for j := range src.Next.Apps {
			other := &src.Next.Apps[j]
			if other.Name == app.Name {
				continue
			}
			for _, network := range NetworksMadeBy(other) {
				makers[network] = other.Name
			}
		}
	}
	return makers
}

// admissionOf is the content of an app that the host is asked about, and what of
// it runs already.
func admissionOf(app *ring.App, adopting []ring.Adopted) string {
	parts := []string{string(app.Commit), app.Written}
	for _, row := range adopting {
		parts = append(parts, row.Instance)
	}
	for i := range app.Services {
		parts = append(parts, string(app.Services[i].Version))
	}
	return strings.Join(parts, " ")
}

// asksAnew reports whether next asks something of the host that have does not.
func asksAnew(have, next *ring.App) bool {
	for i := range next.Services {
		s := &next.Services[i]
		if old, ok := inForce(have, s.Name); !ok || old.Version != s.Version {
			return true
		}
	}
	return have.DataRoot != next.DataRoot || !sameJSON(have.Networks, next.Networks) || !sameJSON(have.Volumes, next.Volumes)
}
