package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// askTags asks registries what the tags mean that are followed by the clock: each once for all
// services of it, and only while one of them is at rest. An answer touches nothing that runs.
func (t *decider) askTags() {
	if t.TagRules.Deny {
		return
	}
	of := t.followersOf()
	for _, key := range sortedKeys(of) {
		row, known := t.Facts.Tags[key]
		if !known {
			row = t.firstTagRow(key, of[key])
			t.setFact(row)
		}
		t.askTag(&row, of[key])
	}
	for _, key := range keysThat(t.Facts.Tags, func(key string) bool { return of[key] == nil && !t.tagComes(key) }) {
		row := t.Facts.Tags[key]
		if _, approved := t.Facts.Approvals[row.Approved()]; approved { // or it would count for a tag that comes anew
			t.setFact(ring.Forget{Table: "approval", Key: string(row.Approved())})
		}
		t.setFact(ring.Forget{Table: "tag", Key: key})
	}
}

// tagComes reports whether a plan that is not in force yet, or one that a person took back for a
// while, has a service of the tag. What is known of it counts when that comes.
func (t *Pass) tagComes(key string) bool {
	has := func(app *ring.App) bool {
		for i := range app.Services {
			if s := &app.Services[i]; s.Updates != nil && ring.TagKey(s.Spec.Image, s.Spec.Platform) == key {
				return true
			}
		}
		return false
	}
	for i := range t.Sources {
		if next := t.Sources[i].Next; next != nil {
			for j := range next.Apps {
				if has(&next.Apps[j]) {
					return true
				}
			}
		}
	}
	for _, past := range t.Facts.Past {
		if has(&past.App) {
			return true
		}
	}
	return false
}

// firstTagRow is the row of a tag that nobody asked for by the clock yet: it was asked when it
// was resolved for a commit, and means since then what it meant last, if all services have that.
func (t *decider) firstTagRow(key string, of []follower) ring.TagRow {
	row := ring.TagRow{Tag: key, Image: of[0].s.Spec.Image}
	for i := range of {
		t.noteRan(of[i].s)
		pin := t.Facts.Pin(of[i].id(), pinWritten(of[i].app, of[i].s))
		switch {
		case pin == nil:
			row.Asked = t.now
		case !pin.At.Before(row.Asked):
			row.Asked, row.Pin, row.Seen, row.Judged = pin.At, pin.Pin, pin.At, true
		}
	}
	// Services that differ are no answer: the newest may be long out of date, and none is to
	// follow it before the registry was asked.
	if slices.ContainsFunc(of, func(f follower) bool { return f.s.Pin.Digest() != row.Pin.Digest() }) {
		row.Pin, row.Seen, row.Judged = ring.Pin{}, time.Time{}, false
	}
	return row
}

// askTag asks for one tag, if it is time.
func (t *decider) askTag(row *ring.TagRow, of []follower) {
	var asker *follower
	every, due := time.Duration(0), time.Time{}
	sooner := func(at time.Time) {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	for i := range of {
		f := &of[i]
		if !t.tagAtRest(f.id()) || t.isObserved(f.app.Name) || t.overrideOn(ring.OverrideLeft, f.id()) != nil {
			continue
		}
		if every == 0 || f.s.Updates.Every < every {
			every, asker = f.s.Updates.Every, f
		}
		if at, wants := t.confirmingAsk(row, f); wants {
			sooner(at)
		}
	}
	if asker == nil {
		return
	}
	sooner(t.regularAsk(row, every))
	if due = laterOf(due, mayRetry(row, every)); t.now.Before(due) {
		t.wakeBy(due)
		return
	}
	t.addStep(ring.Action{
		Kind: ring.DoResolve, App: asker.app.Name, Service: asker.s.Name, Commit: asker.app.Commit, Tag: row.Tag,
		Image: asker.s.Spec.Image, Platform: asker.s.Spec.Platform, PullPolicy: pullAlways, Want: asker.s, Record: *row,
		Reason: say("tag of %s is asked again, by pull_policy %s", asker.s.Spec.Image, asker.s.Updates.Word),
	})
}

// confirmingAsk is when a tag is asked once more so that a service may follow it; wants is false
// where nothing waits for that.
func (t *Pass) confirmingAsk(row *ring.TagRow, f *follower) (at time.Time, wants bool) {
	if row.Pin.Image == "" || row.Pin.Digest() == f.s.Pin.Digest() || !t.moveHeld(row, f).None() {
		return at, false
	}
	at, _ = t.confirmedFrom(row, f)
	return at, row.Asked.Before(at)
}

// tagAtRest reports whether nothing of a service is under way: no rollout, no way back, no run.
func (t *Pass) tagAtRest(id ring.ServiceID) bool {
	v := t.views[id]
	if v == nil || t.isBusy(string(id)) {
		return false
	}
	if v.want.Kind.Ends() {
		for _, in := range v.instances {
			if in.Live() && !in.Ended() {
				return false
			}
		}
		return true
	}
	if v.failed != nil && v.isRestoring() {
		return rolloutState(v) == Restored
	}
	return v.rollout.Version == v.want.Version && (v.rollout.Done || v.failed != nil)
}
