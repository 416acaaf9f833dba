package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// trace is which rules were asked about one service, for who wants to know.
type trace struct {
	of    ring.ServiceID
	asked []ring.AskedRule
}

// isTracing reports whether somebody asked for the rules of a service.
func (t *decider) isTracing(v *service) bool { return t.trace != nil && t.trace.of == v.id }

// noteTrace notes what came of a rule.
func (t *decider) noteTrace(r *rule, o *outcome, moved bool) {
	ends := [...]string{skip: "skip", note: "note", try: "try", stop: "stop"}
	t.trace.asked = append(t.trace.asked, ring.AskedRule{
		Rule: r.name, Then: ends[o.then], Moved: moved, Code: o.reason.Code, On: o.reason.On, Says: o.reason.Says,
	})
}

// noteSkipped notes of a rule that it changed nothing, where nothing was noted of it since a
// place in the list. What it had asked in turn stands behind it.
func (t *trace) noteSkipped(r *rule, since int) {
	if !slices.ContainsFunc(t.asked[since:], func(a ring.AskedRule) bool { return a.Rule == r.name }) {
		t.asked = slices.Insert(t.asked, since, ring.AskedRule{Rule: r.name, Then: "skip"})
	}
}
