package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// What is remembered may be older than what runs, as where a backup of the database was
// restored. The plan in force is an older one then, and its version may not begin on data
// that a newer one wrote. Of an app with anything newer nothing is made, started anew or
// removed until the newest plan is in force; what runs is kept alive.

// isOutrun reports whether an instance of an app is newer than what is remembered of the app,
// and the newest plan of its source is not in force yet.
func (t *Pass) isOutrun(app string) bool {
	if t.by.outrun == nil {
		t.by.outrun = map[string]bool{}
		for id, ins := range t.seen {
			name, _ := id.Split()
			if slices.ContainsFunc(ins, func(in *instance) bool { return t.isNewer(id, in) }) && !t.newestInForce(name, ins[0].Source) {
				t.by.outrun[name] = true
			}
		}
	}
	return t.by.outrun[app]
}

// isOutrunBy reports whether an instance is newer than what is remembered of its app, and is
// to be left as it is for now.
func (t *Pass) isOutrunBy(id ring.ServiceID, in *instance) bool {
	return t.isOutrun(in.App) && t.isNewer(id, in)
}

// isNewer reports whether an instance is of a version that is not remembered, and was made
// after the plan in force came into force.
func (t *Pass) isNewer(id ring.ServiceID, in *instance) bool {
	if v := t.views[id]; v != nil && in.Version == v.want.Version || in.Kind != ring.Worker {
		return false // as nearly always
	}
	f := t.Facts.Apps[in.App]
	return !t.isRemembered(id, in.Version) && t.adoptedRow(in) == nil && in.Commit != f.App.Commit &&
		(f.App.Source == "" || f.App.Source == in.Source) && t.sourceNamed(in.Source) != nil &&
		!in.isLeaving() && in.intent != intentOut && in.intent != intentPark && in.intent != intentStop &&
		in.Created.After(f.Since)
}

// isRemembered reports whether a version of a service has left a fact here. A rollout leaves
// one before its first instance is made.
func (t *Pass) isRemembered(id ring.ServiceID, version ring.Version) bool {
	if good := t.Facts.Good[id]; good != nil && good.Service.Version == version {
		return true
	}
	row := t.Facts.Rollouts[id]
	_, checked := row.Checks[version]
	_, judged := t.Facts.Verdicts[ring.VersionKey(id, version)]
	return checked || judged || row.Version == version
}

// newestInForce reports whether the remote of a source answered lately, its newest commit is
// trusted, and what that asks of an app is in force.
func (t *Pass) newestInForce(app, source string) bool {
	src := t.sourceNamed(source)
	if src == nil {
		return true // nobody follows it any more: nothing newer can come
	}
	if !t.isAtTip(src) || src.Next == nil {
		return false
	}
	f := t.Facts.Apps[app]
	next := t.nextApp(src, app)
	return next == nil && src.Next.Refused[app] == nil || next != nil && isAsked(&f, next)
}

// isAtTip reports whether the remote of a source answered lately, and its newest commit is trusted.
func (t *Pass) isAtTip(src *Source) bool {
	return src.isFresh(t.now) && src.Refusal == nil && src.Commit != nil && src.Commit.SHA == src.Tip
}

// forgetOlder forgets the last good version of a service where a newer one runs that is not
// remembered: going back to it would begin it on newer data.
func (t *decider) forgetOlder(v *service) {
	if v.good == nil {
		return
	}
	since := v.good.At
	if slices.ContainsFunc(v.instances, func(in *instance) bool {
		return in.Live() && in.Created.After(since) && t.isNewer(v.id, in)
	}) {
		t.setFact(ring.Forget{Table: "good", Key: string(v.id)})
		v.good = nil
	}
}
