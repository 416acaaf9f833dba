package admission

import (
	"cmp"
	"slices"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// Checked is what "policy check -o json" prints.
type Checked struct {
	Apps      []string        `json:"apps"` // that the policy lets pass
	Decisions []ring.Decision `json:"decisions"`
	// Refused are the refusals of the policy that no payload shows, such as provider.
	Refused []*ring.Refusal `json:"refused,omitempty"`
	// Faults is how many other refusals there are: those apps were judged as far as they can be read.
	Faults int `json:"faults,omitempty"`
	// Unread are those apps.
	Unread []string `json:"unread,omitempty"`
}

// CheckCommit holds a commit to the policy alone.
func CheckCommit(j Judge, c *ring.Commit, settings manifest.Settings) Checked {
	plan, refusals := j.Look(c, settings)
	out := Checked{Apps: []string{}, Decisions: slices.Concat([]ring.Decision{}, plan.Decisions)}
	for _, a := range plan.Apps {
		out.Apps = append(out.Apps, a.Name)
	}
	for _, r := range refusals {
		switch {
		case r.Code != ring.PolicyDenied && r.Code != ring.RouteTaken:
			out.Faults++
			if name := cmp.Or(r.App, r.File); name != "" && !slices.Contains(out.Unread, name) {
				out.Unread = append(out.Unread, name)
			}
		case !slices.ContainsFunc(out.Decisions, func(d ring.Decision) bool {
			return d.Verdict == string(policy.Deny) && d.File == r.File && d.Line == r.Line
		}):
			out.Refused = append(out.Refused, r)
		}
	}
	return out
}

func (c *Checked) Denies() bool {
	return len(c.Refused) > 0 || slices.ContainsFunc(c.Decisions, func(d ring.Decision) bool { return d.Verdict == string(policy.Deny) })
}
