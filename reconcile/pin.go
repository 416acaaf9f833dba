package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// The values of pull_policy that change what is asked.
const (
	pullAlways = "always"
	pullNever  = "never"
)

// pinApp gives every service of next its image and version, those that others
// are led by first, and asks the registry for what was never seen. It says
// whether all have theirs.
func (t *decider) pinApp(next, have *ring.App) (ring.App, bool) {
	app, ready := *next, true
	app.Services = slices.Clone(next.Services)
	t.putMarks(&app)
	for _, i := range leadersFirst(&app) {
		s := &app.Services[i]
		old, known := inForce(have, s.Name)
		if !t.pinService(&app, s, have, old, known) {
			ready = false
		}
	}
	for i := range app.Services {
		if !t.exposesPorts(&app, &app.Services[i]) {
			ready = false
		}
	}
	return app, ready
}

// leadersPinned reports whether every leader of s has its version.
func leadersPinned(app *ring.App, s *ring.Service) bool {
	for _, name := range s.Spec.Leaders() {
		if l, ok := app.Service(name); ok && l.Version == "" {
			return false
		}
	}
	return true
}

// pinService gives s its image and version, or asks the registry for a spec that was
// never seen. It reports whether s has them.
func (t *decider) pinService(app *ring.App, s *ring.Service, have *ring.App, old *ring.Service, known bool) bool {
	p, ok := t.carriedPin(app, s, have, old, known)
	if !ok {
		if !leadersPinned(app, s) && len(t.seen[ring.ID(app.Name, s.Name)]) > 0 {
			return false // what runs may tell, once its leaders are known
		}
		if p, ok = t.askRegistry(app, s, old, known); !ok {
			return false
		}
	}
	s.Pin = p
	if !leadersPinned(app, s) {
		return false
	}
	s.Version = ring.VersionOf(app, s, p)
	s.Image = t.saysOfItself(app, s, old)
	return true
}

// pinWritten is the key of a pin: the spec as written, and for a service that
// always asks, the commit too.
func pinWritten(app *ring.App, s *ring.Service) string {
	if s.Spec.PullPolicy == pullAlways {
		return s.Written + "@" + string(app.Commit)
	}
	return s.Written
}

// carriedPin is the image that is pinned already: one that an earlier plan was
// given, the one in force, or one that runs. A pin older than a person's wish
// to refresh does not count.
func (t *Pass) carriedPin(app *ring.App, s *ring.Service, have *ring.App, old *ring.Service, known bool) (ring.Pin, bool) {
	if s.FrontOf != "" { // no registry knows it: it is made of bytes that the daemon has
		return ring.Pin{Image: ring.FrontImage}, true
	}
	id := ring.ID(app.Name, s.Name)
	if t.refreshPending(app, s) {
		return ring.Pin{}, false
	}
	if row := t.Facts.Pin(id, pinWritten(app, s)); row != nil {
		return row.Pin, true
	}
	always := s.Spec.PullPolicy == pullAlways
	if known && old.Written == s.Written && old.Pin.Image != "" && !(always && have.Commit != app.Commit) {
		return old.Pin, true
	}
	if always && known || !leadersPinned(app, s) {
		return ring.Pin{}, false
	}
	// The store may be new while the containers are not: an instance whose
	// version comes out the same with its own image was pinned to that.
	var p ring.Pin
	var version ring.Version
	for _, in := range t.seen[id] {
		if in.Image == "" || known && in.Version == old.Version && old.Written != s.Written {
			continue // of another spec, so of another version: nothing to be hashed for
		}
		if in.Image != p.Image { // most often all have one
			p.Image = in.Image
			version = ring.VersionOf(app, s, p)
		}
		if in.Version == version {
			return p, true
		}
	}
	return ring.Pin{}, false
}

// askRegistry asks the registry. While it does not answer a person's wish to refresh,
// the old pin stays; when it says no, the wish has ended.
func (t *decider) askRegistry(app *ring.App, s, old *ring.Service, known bool) (ring.Pin, bool) {
	id := ring.ID(app.Name, s.Name)
	a := ring.Action{
		Kind: ring.DoResolve, App: app.Name, Service: s.Name, Commit: app.Commit,
		Image: s.Spec.Image, Platform: s.Spec.Platform, PullPolicy: s.Spec.PullPolicy, Version: ring.Version(pinWritten(app, s)),
		Reason: say("image %s is new to service %s", s.Spec.Image, s.Name),
	}
	if rule := t.Signing.Rules.For(s.Spec.Image); rule != "" {
		a.Asks = &ring.ImageAsk{Written: s.Spec.Image, Rule: rule}
	}
	if known && old.Spec.Image == s.Spec.Image && old.Written != s.Written {
		a.Reason = say("service %s is written otherwise, so image %s is asked for anew", s.Name, s.Spec.Image)
	}
	if s.Spec.PullPolicy == pullAlways {
		a.Reason = say("pull_policy always: image %s is asked for at each commit", s.Spec.Image)
	}
	stays := known && old.Pin.Image != "" && old.Spec.Image == s.Spec.Image
	if stays {
		a.Want = old
	}
	wish, refresh := t.Facts.Refreshes[id]
	if !refresh || !stays || old.Written != s.Written {
		t.fetchForPlan(app, s, a)
		return ring.Pin{}, false
	}
	a.Reason = say("refresh by %s", wish.Actor)
	if wish.Reason != "" {
		a.Reason += ": " + wish.Reason
	}
	try, tried := t.Tries[a.Target()]
	tried = tried && try.Kind == a.Kind
	if tried && try.Refusal != nil {
		t.setFact(ring.Forget{Table: "refresh", Key: string(id)}) // told as the end of the step
		return old.Pin, true
	}
	t.fetchForPlan(app, s, a)
	return old.Pin, tried
}

// refreshPending reports whether a person wants s resolved anew, and that has not happened.
func (t *Pass) refreshPending(app *ring.App, s *ring.Service) bool {
	id := ring.ID(app.Name, s.Name)
	wish, ok := t.Facts.Refreshes[id]
	if !ok {
		return false
	}
	row := t.Facts.Pin(id, pinWritten(app, s))
	return row == nil || row.At.Before(wish.At)
}

// isRefreshing reports whether somebody wants a service of the app resolved anew.
func (t *Pass) isRefreshing(app *ring.App) bool {
	if len(t.Facts.Refreshes) == 0 {
		return false
	}
	for i := range app.Services {
		if _, ok := t.Facts.Refreshes[ring.ID(app.Name, app.Services[i].Name)]; ok {
			return true
		}
	}
	return false
}

// saysOfItself is what is known of the pinned image of s.
func (t *Pass) saysOfItself(app *ring.App, s, old *ring.Service) ring.Image {
	if s.FrontOf != "" {
		return ring.Image{Known: true}
	}
	if i := t.Images[s.Pin.Image]; i.Known {
		return i
	}
	if old.Pin.Image == s.Pin.Image && old.Image.Known {
		return old.Image
	}
	if row := t.Facts.Pin(ring.ID(app.Name, s.Name), pinWritten(app, s)); row != nil && row.Pin == s.Pin {
		return row.Image
	}
	return ring.Image{}
}

// endRefreshes ends the wishes that were carried out.
func (t *decider) endRefreshes(app *ring.App) {
	if len(t.Facts.Refreshes) == 0 {
		return
	}
	for i := range app.Services {
		id := ring.ID(app.Name, app.Services[i].Name)
		if _, ok := t.Facts.Refreshes[id]; ok && !t.refreshPending(app, &app.Services[i]) {
			t.resolvedAnew(app, &app.Services[i])
			t.askedByRefresh(app, &app.Services[i])
			t.setFact(ring.Forget{Table: "refresh", Key: string(id)})
		}
	}
}

func samePins(a, b *ring.App) bool {
	for i := range b.Services {
		s := &b.Services[i]
		if old, ok := inForce(a, s.Name); !ok || old.Pin.Image != s.Pin.Image {
			return false
		}
	}
	return true
}

// keepPin remembers the image of a service that comes into force, and forgets
// those of other commits where each commit has its own.
func (t *decider) keepPin(app *ring.App, s *ring.Service) {
	t.noteRan(s)
	id, written := ring.ID(app.Name, s.Name), pinWritten(app, s)
	row := t.Facts.Pin(id, written)
	if row == nil || row.Pin != s.Pin || s.Image.Known && !row.Image.Known {
		at := t.now
		if row != nil && row.Pin == s.Pin {
			at = row.At
		}
		t.setFact(ring.PinRow{ID: id, Written: written, Pin: s.Pin, Image: s.Image, At: at})
	}
	if written == s.Written {
		return
	}
	for _, key := range sortedKeys(t.Facts.Pins) {
		if strings.HasPrefix(key, ring.PinKey(id, s.Written+"@")) && key != ring.PinKey(id, written) {
			t.setFact(ring.Forget{Table: "pin", Key: key})
		}
	}
}

// imagePulled reports whether the image of s is on this host, and pulls it otherwise.
func (t *decider) imagePulled(app *ring.App, s *ring.Service) bool {
	if s.FrontOf != "" {
		return true
	}
	if i := t.Images[s.Pin.Image]; i.Known {
		s.Image = i
		return true
	}
	for _, in := range t.seen[ring.ID(app.Name, s.Name)] {
		if in.Version == s.Version {
			return true // the instance holds its image; what that says is asked before a create
		}
	}
	t.fetchForPlan(app, s, t.pullStep(app, s, "not known to be on this host"))
	return false
}

// imageVerified reports whether the image of a service that comes into force may be used, and
// asks for a verdict otherwise.
func (t *decider) imageVerified(app *ring.App, s *ring.Service) bool {
	if !t.lacksVerdict(s) {
		return true
	}
	t.fetchForPlan(app, s, t.verifyStep(app, s, "is to be verified before it is pulled"))
	return false
}

// fetchForPlan decides a resolve or pull for the next plan and keeps the app's
// sentence; a refusal of the registry is the app's.
func (t *decider) fetchForPlan(app *ring.App, s *ring.Service, a ring.Action) {
	if a.Kind == ring.DoPull && t.lacksVerdict(s) { // whoever asks for it
		a = t.verifyStep(app, s, "is to be verified before it is pulled")
	}
	a.Source = app.Source
	t.addStep(a)
	verb := "resolving"
	switch {
	case a.Kind == ring.DoVerify:
		verb = "verifying"
	case a.Kind == ring.DoPull && a.PullPolicy == pullNever:
		verb = "looking for"
	case a.Kind == ring.DoPull:
		verb = "pulling"
	}
	says := verb + " " + a.Image
	if far := t.Progress[a.Target()]; far != "" {
		says += " (" + far + ")"
	}
	if try, ok := t.Tries[tryKey(a)]; ok && sameTry(try, a) {
		if try.Refusal != nil {
			r := *try.Refusal
			r.Commit, r.App, r.File, r.Line = app.Commit, app.Name, s.File, s.Line
			put(&t.refused, app.Name, &r)
			put(&t.imageless, ring.ID(app.Name, s.Name), imageless{r.Says, app.Commit})
			return
		}
		says = say("%s; attempt %d", triedWords(says, try.Err), try.N)
		if t.now.Before(try.Next) {
			says += say(", next try %s UTC", try.Next.UTC().Format("15:04:05"))
		}
	}
	put(&t.staging, app.Name, ring.Reason{Code: ring.WhyImagePending, On: ring.ID(app.Name, s.Name), Says: says})
	put(&t.imageless, ring.ID(app.Name, s.Name), imageless{says, app.Commit})
}

// triedWords is a step with how it ended. An error that begins with cannot names the step by itself.
func triedWords(step, err string) string {
	if strings.HasPrefix(err, "cannot ") {
		return err
	}
	return step + ": " + err
}
