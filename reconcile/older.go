package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// What is remembered may be older than what runs, as where a backup of the database was
// restored. The plan in force is an older one then, and its version may not begin on data
// that a newer one wrote. What runs stays until the newest plan is in force.

// isOutrun reports whether all that runs of a service is newer than what is remembered, and
// the newest plan of its source is not in force yet.
func (t *Pass) isOutrun(v *service) bool {
	f := t.Facts.Apps[v.app.Name]
	if len(v.instances) == 0 || !v.rollout.Done || v.rollout.Version != v.want.Version {
		return false
	}
	return !slices.ContainsFunc(v.instances, func(in *instance) bool { return !t.isNewer(in, &f, v.want, v.good) }) && !t.newestInForce(&f)
}

// outrunStray reports whether instances of a service that is not in the plan in force are
// newer than that plan, and the newest plan of its source is not in force yet.
func (t *Pass) outrunStray(id ring.ServiceID, ins []*instance, f *ring.InForce) bool {
	if t.Facts.Good[id] != nil || len(ins) == 0 {
		return false // it was known here, and left
	}
	return !slices.ContainsFunc(ins, func(in *instance) bool { return !t.isNewer(in, f, nil, nil) }) && !t.newestInForce(f)
}

// isNewer reports whether an instance was made after the plan in force came into force, by
// a version of another commit that is not remembered.
func (t *Pass) isNewer(in *instance, f *ring.InForce, want *ring.Service, good *ring.Good) bool {
	known := want != nil && in.Version == want.Version || good != nil && in.Version == good.Service.Version
	return !known && in.intent == "" && in.Source == f.App.Source && in.Commit != f.App.Commit &&
		in.Created.After(f.Since) && t.adoptedRow(in) == nil
}

// newestInForce reports whether the remote answered lately, its newest commit is trusted, and
// what that asks of the app is in force.
func (t *Pass) newestInForce(f *ring.InForce) bool {
	src := t.sourceNamed(f.App.Source)
	if src == nil {
		return true // nobody follows it any more: nothing newer can come
	}
	if !src.isFresh(t.now) || src.Refusal != nil || src.Commit == nil || src.Commit.SHA != src.Tip || src.Next == nil {
		return false
	}
	next := t.nextApp(src, f.App.Name)
	return next == nil && src.Next.Refused[f.App.Name] == nil || next != nil && isAsked(f, next)
}
