package admission

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// decisionsOf are what the policy says of each thing that an app asks, with its place.
func decisionsOf(a *ring.App, found []policy.Finding) []ring.Decision {
	var out []ring.Decision
	for _, f := range found {
		at := SayingPlace(a, f)
		d := ring.Decision{
			Rule: f.Rule, App: a.Name, Field: f.Field, Value: f.Value, Verdict: string(f.Verdict), Grant: f.Grant,
			File: at.File, Line: at.Line, Risk: f.Risk,
		}
		if kind, name, _ := strings.Cut(f.Of, "."); kind == "services" {
			d.Service = name
		}
		if f.Verdict == policy.Deny {
			d.Hint = f.Hint()
		}
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

func compareDecisions(x, y ring.Decision) int {
	return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.App, y.App), cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Value, y.Value))
}
