package reconcile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// keepPast is how many plans an app can go back to.
const keepPast = 10

// undoPlans puts the plans in force that persons brought back: pinned as they
// completed, so nobody is asked for them.
func (t *decider) undoPlans() {
	for _, key := range sortedKeys(t.Facts.Overrides) {
		o := t.Facts.Overrides[key]
		if o.Kind != ring.OverrideUndo {
			continue
		}
		past, ok := t.Facts.Past[o.Past]
		if !ok {
			t.endOverride(o, "", "its plan is not remembered any more")
			continue
		}
		have, ok := t.Facts.Apps[o.Target]
		if !ok || have.Leaving || have.App.Source != past.App.Source {
			continue
		}
		app := t.markedApp(past.App)
		if have.App.Commit == app.Commit && ring.PastKey(&have.App) == ring.PastKey(&app) {
			continue
		}
		t.giveUpData(&have.App, &app)
		t.setFact(ring.InForce{App: app, Since: t.now, Signer: past.Signer, Subject: past.Subject, Committed: past.Committed, Undone: true})
		t.addEvent(ring.Event{
			Kind: ring.AppInForce, Source: app.Source, App: app.Name, Commit: app.Commit, Version: ring.AskedVersion(&app), Actor: o.Actor,
			Reason: say("plan %s is in force again, undone %s", app.Commit.Short(), byWhom(&o)),
		})
		t.tellPowers(&have.App, &app)
	}
}

// rememberPlans keeps the plans of apps that have completed, each once. What a person
// brought back is remembered as it was.
func (t *decider) rememberPlans() {
	for _, name := range t.names {
		f, ok := t.Facts.Apps[name] // tidy may have forgotten it
		if p, scaled := t.planned[name]; scaled {
			f.App = p
		}
		if !ok || f.Leaving || len(f.App.Services) == 0 || !t.isCompleted(&f.App) || !t.withheldReason(name).None() {
			continue
		}
		at := t.now
		if keys := t.pastOf(name); len(keys) > 0 {
			newest := t.Facts.Past[keys[0]]
			if ring.SamePast(&newest.App, &f.App) {
				continue
			}
			if !newest.At.Before(at) {
				at = newest.At.Add(1) // the clock was set back since; the order is what counts
			}
		}
		t.setFact(ring.Past{App: f.App, Signer: f.Signer, Subject: f.Subject, Committed: f.Committed, At: at})
		t.enterPast(ring.PastKey(&f.App))
		t.forgetPast(name)
	}
}

// isCompleted reports whether every service of an app is what its plan asks.
func (t *Pass) isCompleted(app *ring.App) bool {
	all := t.apps[app.Name]
	if len(all) != len(app.Services) {
		return false
	}
	for i := range all {
		s, v := &app.Services[i], &all[i]
		if v.want.Name != s.Name || v.want.Version != s.Version {
			return false
		}
		switch s.Kind {
		case ring.JobK:
			if len(v.runsBefore()) > 0 {
				continue // it has no run of its own
			}
			if run, ok := t.jobRun(v.id, v.want); !ok || run.State != jobSucceeded {
				return false
			}
		case ring.Worker:
			if v.rollout.Version != s.Version || !v.rollout.Done || v.failed != nil || !v.waits.None() || v.target != v.want {
				return false
			}
		}
	}
	return true
}

// pastOf are the keys of the plans that an app can go back to, the newest first.
func (t *Pass) pastOf(app string) []string {
	if t.by.past == nil {
		t.by.past = map[string][]string{}
		for key := range t.Facts.Past {
			t.enterPast(key)
		}
	}
	keys := slices.DeleteFunc(t.by.past[app], func(key string) bool {
		_, ok := t.Facts.Past[key]
		return !ok
	})
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(t.Facts.Past[b].At.Compare(t.Facts.Past[a].At), cmp.Compare(a, b))
	})
	t.by.past[app] = keys
	return keys
}

// enterPast enters a plan under its app, once, where somebody has asked for such.
func (t *Pass) enterPast(key string) {
	app, _, _ := strings.Cut(key, "@")
	if t.by.past != nil && !slices.Contains(t.by.past[app], key) {
		t.by.past[app] = append(t.by.past[app], key)
	}
}

func pastOf(f *ring.Facts, app string) (out []ring.Past) {
	for key, p := range f.Past {
		if strings.HasPrefix(key, app+"@") {
			out = append(out, p)
		}
	}
	newestFirst(out)
	return out
}

func newestFirst(past []ring.Past) {
	slices.SortFunc(past, func(a, b ring.Past) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		return cmp.Compare(ring.PastKey(&a.App), ring.PastKey(&b.App))
	})
}

// forgetPast forgets the oldest plans of an app, but for one that stands.
func (t *decider) forgetPast(app string) {
	keys := t.pastOf(app)
	for _, key := range keys[min(len(keys), keepPast):] {
		if o, ok := t.Facts.Overrides[ring.OverrideKey(ring.OverrideUndo, app)]; !ok || o.Past != key {
			t.setFact(ring.Forget{Table: "past", Key: key})
		}
	}
}

// forgetLeft forgets the plans of apps that are gone.
func (t *decider) forgetLeft() {
	gone := func(key string) bool {
		_, ok := t.Facts.Apps[t.Facts.Past[key].App.Name]
		return !ok
	}
	for _, key := range keysThat(t.Facts.Past, gone) {
		t.setFact(ring.Forget{Table: "past", Key: key})
	}
}

// failedNow reports whether a service of an app in force has failed.
func failedNow(f *ring.Facts, app *ring.App) bool {
	return slices.ContainsFunc(app.Services, func(s ring.Service) bool {
		d, ok := f.Verdicts[ring.VersionKey(ring.ID(app.Name, s.Name), s.Version)]
		return ok && !d.Good
	})
}

// Before is the plan that an undo of an app brings back: that of a commit, whole
// or abbreviated; for "" the newest that completed before the one in force. Nil
// when there is none.
func Before(f *ring.Facts, app string, to ring.SHA) *ring.Past {
	rows := pastOf(f, app)
	have, ok := f.Apps[app]
	if !ok {
		return nil
	}
	now := ring.PastKey(&have.App)
	at := slices.IndexFunc(rows, func(p ring.Past) bool { return ring.PastKey(&p.App) == now })
	after := at // those that completed since are no earlier ones
	if failedNow(f, &have.App) {
		after = -1 // what completed once has failed since: what came between is what ran
	}
	for i := range rows {
		p := &rows[i]
		switch {
		case i == at, to == "" && i < after:
		case to == "", strings.HasPrefix(string(p.App.Commit), string(to)):
			return p
		}
	}
	return nil
}
