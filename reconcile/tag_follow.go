package reconcile

import (
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// followTags puts digests in force to which tags moved by themselves: each where it is old
// enough, in its window, verified and here, and where nothing holds its service. From there on
// it is rolled out as a commit's image is.
func (t *decider) followTags() {
	if len(t.Facts.Tags) == 0 {
		return
	}
	t.judgeMoves()
	for _, name := range sortedKeys(t.Facts.Apps) {
		f := t.Facts.Apps[name]
		t.keepGoodPins(&f)
		if pins := t.duePins(&f); len(pins) > 0 {
			t.followApp(&f, pins)
		}
	}
}

// judgeMoves finds out, once for each move, whether a tag went back to what this host had.
func (t *decider) judgeMoves() {
	for _, key := range sortedKeys(t.Facts.Tags) {
		row := t.Facts.Tags[key]
		if row.Judged || row.Pin.Image == "" {
			continue
		}
		row.Judged = true
		_, row.Back = t.Facts.Ran[row.Pin.Digest()]
		t.setFact(row)
	}
}

// resolvedAnew takes what a commit or a refresh resolved for the last answer about a tag: what
// the tag meant before that is older, and would go back.
func (t *decider) resolvedAnew(app *ring.App, s *ring.Service) {
	row, known := t.Facts.Tags[ring.TagKey(s.Spec.Image, s.Spec.Platform)]
	if s.Updates == nil || s.Pin.Moved || !known || row.Pin.Digest() == s.Pin.Digest() {
		return
	}
	if pin := t.Facts.Pin(ring.ID(app.Name, s.Name), pinWritten(app, s)); pin == nil || pin.At.Before(row.Asked) {
		return // it was resolved before that answer, and is carried forward
	}
	row.Pin, row.Seen, row.Judged, row.Back = s.Pin, t.now, true, false
	t.setFact(row)
}

// askedByRefresh counts a refresh as a question about a tag that is followed by the clock: the
// next one is a whole time later.
func (t *decider) askedByRefresh(app *ring.App, s *ring.Service) {
	row, known := t.Facts.Tags[ring.TagKey(s.Spec.Image, s.Spec.Platform)]
	pin := t.Facts.Pin(ring.ID(app.Name, s.Name), pinWritten(app, s))
	if s.Updates == nil || !known || pin == nil || !pin.At.After(row.Asked) || row.Pin.Digest() != pin.Pin.Digest() {
		return
	}
	row.Asked, row.Tried, row.Fails, row.Later, row.Says = pin.At, time.Time{}, 0, time.Time{}, ""
	t.setFact(row)
}

// keepGoodPins has later plans begin with the image that was good, where one failed to which a
// tag moved. The plan in force keeps what failed: so nobody takes it for well.
func (t *decider) keepGoodPins(f *ring.InForce) {
	for i := range f.App.Services {
		s := &f.App.Services[i]
		if !s.Pin.Moved {
			continue
		}
		id := ring.ID(f.App.Name, s.Name)
		good, row := t.Facts.Good[id], t.Facts.Pin(id, pinWritten(&f.App, s))
		if d, ok := t.Facts.Verdict(id, s.Version); !ok || d.Good || good == nil || good.Service.Written != s.Written {
			continue
		}
		if row != nil && row.Pin != good.Service.Pin {
			t.setFact(ring.PinRow{ID: id, Written: row.Written, Pin: good.Service.Pin, Image: good.Service.Image, At: t.now})
		}
	}
}

// duePins are the images that services of an app follow now, by service.
func (t *decider) duePins(f *ring.InForce) map[string]ring.Pin {
	var out map[string]ring.Pin
	for i := range f.App.Services {
		s := &f.App.Services[i]
		if s.Updates == nil || f.Leaving {
			continue
		}
		row, known := t.Facts.Tags[ring.TagKey(s.Spec.Image, s.Spec.Platform)]
		if !known || row.Pin.Image == "" || row.Pin.Digest() == s.Pin.Digest() {
			continue
		}
		its := follower{&f.App, s}
		if why := t.moveHeld(&row, &its); !why.None() {
			t.tellWaiting(&row, &its, why)
			continue
		}
		at, open := t.confirmedFrom(&row, &its)
		if !open || row.Asked.Before(at) || !t.mayMove(&its) {
			continue
		}
		put(&out, s.Name, ring.Pin{Image: row.Pin.Image, Moved: true})
	}
	return out
}

// mayMove reports whether no rollout and no run of a service is under way.
func (t *Pass) mayMove(f *follower) bool {
	if t.isBusy(string(f.id())) {
		return false
	}
	if f.s.Kind.Ends() {
		return !slices.ContainsFunc(t.seen[f.id()], func(in *instance) bool { return in.Live() && !in.Ended() })
	}
	if d, ok := t.Facts.Verdict(f.id(), f.s.Version); ok && !d.Good {
		return true
	}
	row := t.Facts.Rollouts[f.id()]
	return row.Version == f.s.Version && row.Done
}

// moveHeld is why a service does not follow its tag, whatever the time is.
func (t *Pass) moveHeld(row *ring.TagRow, f *follower) ring.Reason {
	src := t.sourceNamed(f.app.Source)
	switch {
	case t.TagRules.Deny:
		return ring.Reason{Code: ring.WhyStoppedByPolicy, Says: "images.moving of this host is deny"}
	case src == nil || src.Next == nil:
		return ring.Reason{Code: ring.WhyAppNotReady, Says: say("the plan of app %s is not known yet", f.app.Name)}
	case src.Apply == ApplyObserve:
		return ring.Reason{Code: ring.WhyObserveOnly, Says: "source " + src.Name + " is only observed"}
	}
	if why := t.heldHands(f); !why.None() {
		return why
	}
	have := t.Facts.Apps[f.app.Name]
	if next := t.nextApp(src, f.app.Name); next == nil || !isAsked(&have, next) {
		return ring.Reason{Code: ring.WhyAppNotReady, Says: say("a newer plan of app %s comes first", f.app.Name)}
	}
	if t.isWhatRuns(f, row.Pin) {
		return ring.Reason{}
	}
	moved := *f.s
	moved.Pin = row.Pin
	if d, ok := t.Facts.Verdict(f.id(), ring.VersionOf(f.app, &moved, row.Pin)); ok && !d.Good {
		return ring.Reason{Code: ring.WhyRolloutFailed, Dead: true, Says: say("%s failed here: %s", shortDigest(row.Pin), d.Reason)}
	}
	// A yes is to an image of which nobody knew yet that it fails here: it ends no quarantine.
	if _, approved := t.Facts.Approvals[row.Approved()]; approved {
		return ring.Reason{}
	}
	if row.Back {
		return ring.Reason{Code: ring.WhyAwaitingApproval, Says: say("awaiting approval: the tag went back to %s, which this host had before; gitring approve %s", shortDigest(row.Pin), shortDigest(row.Pin))}
	}
	if src.Apply == ApplyApprove {
		return ring.Reason{Code: ring.WhyAwaitingApproval, Says: say("awaiting approval: every plan of this source is approved by a person; gitring approve %s", shortDigest(row.Pin))}
	}
	return ring.Reason{}
}

// isWhatRuns reports whether an image is the one that a failed one was taken back for.
func (t *Pass) isWhatRuns(f *follower, pin ring.Pin) bool {
	d, failed := t.Facts.Verdict(f.id(), f.s.Version)
	good := t.Facts.Good[f.id()]
	return failed && !d.Good && good != nil && good.Service.Pin.Digest() == pin.Digest() && good.Service.Written == f.s.Written
}

// heldHands is a person's hand, or the policy's, on a service or on what moves with it.
func (t *Pass) heldHands(f *follower) ring.Reason {
	if len(t.Facts.Overrides) == 0 {
		return ring.Reason{}
	}
	if why := t.withheldReason(f.app.Name); !why.None() {
		return why
	}
	for _, name := range tiedTogether(f.app, f.s.Name) {
		for _, kind := range []ring.OverrideKind{ring.OverrideHold, ring.OverridePause, ring.OverrideStop} {
			if o := t.overrideOn(kind, ring.ID(f.app.Name, name)); o != nil {
				return overrideReason(o)
			}
		}
	}
	return ring.Reason{}
}

// tiedTogether are a service and those whose versions are part of one another's, at any distance.
func tiedTogether(app *ring.App, name string) []string {
	all := []string{name}
	for i := 0; i < len(all); i++ {
		for j := range app.Services {
			s := &app.Services[j]
			leads := slices.Contains(s.Spec.Leaders(), all[i])
			if self := s.Name == all[i]; self {
				for _, leader := range s.Spec.Leaders() {
					if !slices.Contains(all, leader) {
						all = append(all, leader)
					}
				}
			}
			if leads && !slices.Contains(all, s.Name) {
				all = append(all, s.Name)
			}
		}
	}
	return all
}

// followApp puts an app in force with images that its tags moved to, once all of it is here.
func (t *decider) followApp(f *ring.InForce, pins map[string]ring.Pin) {
	src := t.sourceNamed(f.App.Source)
	app, ready := *t.nextApp(src, f.App.Name), true
	app.Services = slices.Clone(app.Services)
	t.putMarks(&app)
	for _, i := range leadersFirst(&app) {
		s := &app.Services[i]
		old, known := inForce(&f.App, s.Name)
		if !known {
			return // a plan in force has all of its services
		}
		s.Pin = old.Pin
		if pin, moved := pins[s.Name]; moved {
			s.Pin = pin
		}
		s.Version = ring.VersionOf(&app, s, s.Pin)
		s.Image = t.saysOfItself(&app, s, old)
		if _, moved := pins[s.Name]; moved && !t.fetchMoved(&app, s) {
			ready = false
		}
	}
	if !ready {
		return
	}
	for i := range app.Services {
		if !t.exposesPorts(&app, &app.Services[i]) {
			return
		}
	}
	if !t.admitApp(&app, *f, true) {
		return
	}
	for name := range pins {
		s, _ := inForce(&app, name)
		t.pardonWhatRuns(&app, s)
	}
	t.putInForce(src, app, *f, true)
}

// pardonWhatRuns forgets that a version failed once, where a later one failed and was taken back
// for it: it runs, and its tag means it again.
func (t *decider) pardonWhatRuns(app *ring.App, s *ring.Service) {
	id := ring.ID(app.Name, s.Name)
	if d, ok := t.Facts.Verdict(id, s.Version); ok && !d.Good {
		t.setFact(ring.Forget{Table: "verdict", Key: ring.VersionKey(id, s.Version)})
	}
}

// fetchMoved has an image verified and pulled that a service may follow. It reports whether it
// is here.
func (t *decider) fetchMoved(app *ring.App, s *ring.Service) bool {
	a := t.verifyStep(app, s, "is to be verified before it is pulled")
	if !t.lacksVerdict(s) {
		if i := t.Images[s.Pin.Image]; i.Known {
			s.Image = i
			return true
		}
		a = t.pullStep(app, s, "is what its tag moved to")
	}
	a.Source = app.Source
	t.addStep(a)
	says := say("%s %s", a.Kind, shortDigest(s.Pin))
	if try, ok := t.Tries[tryKey(a)]; ok && sameTry(try, a) {
		says += ": " + try.Err
	}
	put(&t.moves, ring.ID(app.Name, s.Name), ring.Reason{Code: ring.WhyImagePending, Says: says})
	return false
}

// tellWaiting tells once that a digest waits for a person.
func (t *decider) tellWaiting(row *ring.TagRow, f *follower, why ring.Reason) {
	if why.Code != ring.WhyAwaitingApproval || row.Told == row.Pin.Digest() || t.isBusy("tag "+row.Tag) {
		return // what an answer on its way brings is told with that
	}
	row.Told = row.Pin.Digest()
	t.setFact(*row)
	t.addEvent(ring.Event{
		Kind: ring.TagAwaiting, Source: f.app.Source, App: f.app.Name, Service: f.s.Name, Commit: f.app.Commit,
		Reason: say("image %s: %s", f.s.Spec.Image, why.Says), Code: why.Code,
	})
}

// noteRan remembers that an image of a registry came into force here.
func (t *decider) noteRan(s *ring.Service) {
	digest := s.Pin.Digest()
	if s.FrontOf != "" || !strings.HasPrefix(digest, "sha256:") {
		return
	}
	if _, ran := t.Facts.Ran[digest]; ran {
		return
	}
	t.setFact(ring.RanRow{Digest: digest, At: t.now})
	for len(t.Facts.Ran) > mostRan {
		oldest := ring.RanRow{}
		for d, row := range t.Facts.Ran {
			if d != digest && (oldest.Digest == "" || row.At.Before(oldest.At) || row.At.Equal(oldest.At) && d < oldest.Digest) {
				oldest = row
			}
		}
		t.setFact(ring.Forget{Table: "ran", Key: oldest.Digest})
	}
}

// mostRan is how many digests are remembered that came into force here. Beyond it the oldest
// are forgotten: a tag that goes back so far is followed as one that moves on.
const mostRan = 2000

// tellFollowed tells of each service of an app that comes into force with what its tag moved to,
// by the clock or by a person's refresh.
func (t *decider) tellFollowed(have, app *ring.App) {
	for i := range app.Services {
		s := &app.Services[i]
		old, known := inForce(have, s.Name)
		wish, refreshed := t.Facts.Refreshes[ring.ID(app.Name, s.Name)]
		e := ring.Event{Kind: ring.TagFollowed, Source: app.Source, App: app.Name, Service: s.Name, Commit: app.Commit, Version: s.Version}
		switch {
		case !known:
			continue
		case isMove(old, s):
			e.Reason = say("%s, image %s", movedSays(s), imageMove(old, s))
		case refreshed && !t.refreshPending(app, s) && old.Written == s.Written && old.Pin.Digest() != s.Pin.Digest():
			e.Actor, e.Reason = wish.Actor, say("image %s resolved anew, refresh by %s: %s", s.Spec.Image, wish.Actor, imageMove(old, s))
		default:
			continue
		}
		t.addEvent(e)
	}
}

// approvalOfMove is a person's yes to what tags moved to, by the beginning of a digest.
func approvalOfMove(w World, digest, actor, reason string, now time.Time) ([]ring.Fact, []ring.Event, error) {
	t := newDecider(w, now)
	t.indexSeen()
	var facts []ring.Fact
	var events []ring.Event
	of := t.followersOf()
	for _, key := range sortedKeys(of) {
		row := t.Facts.Tags[key]
		if len(digest) < len("sha256:")+8 || !strings.HasPrefix(row.Pin.Digest(), digest) {
			continue
		}
		for i := range of[key] {
			f := &of[key][i]
			if row.Pin.Digest() == f.s.Pin.Digest() || t.moveHeld(&row, f).Code != ring.WhyAwaitingApproval {
				continue
			}
			facts = append(facts, ring.Approval{Commit: row.Approved(), Actor: actor, Reason: reason, At: now})
			events = append(events, ring.Event{
				At: now, Kind: ring.TagApproved, Source: f.app.Source, App: f.app.Name, Service: f.s.Name, Commit: f.app.Commit, Actor: actor,
				Reason: strings.TrimSuffix(say("image %s at %s: %s", f.s.Spec.Image, shortDigest(row.Pin), reason), ": "),
			})
		}
	}
	if len(facts) == 0 {
		return nil, nil, ErrNothingToApprove
	}
	return facts, events, nil
}

// tagStatus is how the tag of a service is followed; nil where it is not.
func (t *Pass) tagStatus(v *service) *ring.TagStatus {
	if v.want.Updates == nil || v.stands {
		return nil
	}
	row, known := t.Facts.Tags[ring.TagKey(v.want.Spec.Image, v.want.Spec.Platform)]
	if !known {
		return nil
	}
	st := &ring.TagStatus{
		Image: v.want.Spec.Image, Policy: v.want.Updates.Word, Asked: row.Asked.UTC(), Digest: row.Pin.Digest(), Error: row.Says,
	}
	if row.Pin.Image == "" {
		return st
	}
	st.Seen = row.Seen.UTC()
	if row.Pin.Digest() == v.want.Pin.Digest() {
		return st
	}
	its := follower{v.app, v.want}
	if why := t.moveHeld(&row, &its); !why.None() {
		st.Waits = why.Says
		return st
	}
	if why := t.moves[v.id]; !why.None() {
		st.Waits = why.Says
		return st
	}
	at, open := t.confirmedFrom(&row, &its)
	switch {
	case !open && t.now.Before(row.Seen.Add(t.minAge(v.want))):
		st.Waits, st.Until = say("is followed when this host has seen it for %s", t.minAge(v.want)), at.UTC()
	case !open:
		st.Waits, st.Until = say("is followed in the window %s", v.want.Updates.Window), at.UTC()
	case row.Asked.Before(at):
		st.Waits = "is asked once more"
	default:
		st.Waits = "is followed when nothing of the service is under way"
	}
	return st
}
