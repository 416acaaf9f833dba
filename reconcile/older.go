package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// What is remembered may be older than what runs, as where a backup of the database was
// restored. The plan in force is an older one then, and its version may not begin on data
// that a newer one wrote. What runs stays until the newest plan is in force.

// outrun reports whether all that runs of a service is newer than what is remembered, and
// the newest plan of its source is not in force yet.
func (t *Pass) outrun(v *service) bool {
	f := t.Facts.Apps[v.app.Name]
	if len(v.all) == 0 || !v.row.Done || v.row.Version != v.want.Version {
		return false
	}
	return !slices.ContainsFunc(v.all, func(in *inst) bool { return !t.newer(in, &f, v.want, v.good) }) && !t.newest(&f)
}

// outrunStray reports whether instances of a service that is not in the plan in force are
// newer than that plan, and the newest plan of its source is not in force yet.
func (t *Pass) outrunStray(id ring.ServiceID, ins []*inst, f *ring.InForce) bool {
	if t.Facts.Good[id] != nil || len(ins) == 0 {
		return false // it was known here, and left
	}
	return !slices.ContainsFunc(ins, func(in *inst) bool { return !t.newer(in, f, nil, nil) }) && !t.newest(f)
}

// newer reports whether an instance was made after the plan in force came into force, by
// a version of another commit that is not remembered.
func (t *Pass) newer(in *inst, f *ring.InForce, want *ring.Service, good *ring.Good) bool {
	known := want != nil && in.Version == want.Version || good != nil && in.Version == good.Service.Version
	return !known && in.intent == "" && in.Source == f.App.Source && in.Commit != f.App.Commit &&
		in.Created.After(f.Since) && t.adopted(in) == nil
}

// newest reports whether the remote answered lately, its newest commit is trusted, and
// what that asks of the app is in force.
func (t *Pass) newest(f *ring.InForce) bool {
	src := t.source(f.App.Source)
	if src == nil {
		return true // nobody follows it any more: nothing newer can come
	}
	if !src.fresh(t.now) || src.Refusal != nil || src.Commit == nil || src.Commit.SHA != src.Tip || src.Next == nil {
		return false
	}
	next := t.nextApp(src, f.App.Name)
	return next == nil && src.Next.Refused[f.App.Name] == nil || next != nil && asked(f, next)
}
