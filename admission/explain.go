package admission

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// AppPolicy is what "policy explain" says of an app.
type AppPolicy struct {
	App       string          `json:"app"`
	Profile   policy.Profile  `json:"profile"`
	BindRoots []string        `json:"bind_roots"`
	Grants    []GivenGrant    `json:"grants"`
	Decisions []ring.Decision `json:"decisions"`
}

// GivenGrant is a grant that the policy has.
type GivenGrant struct {
	Feature string `json:"feature"`
	Value   string `json:"value"`
	Service string `json:"service,omitempty"`
	Reason  string `json:"reason"`
	Until   string `json:"until,omitempty"` // the first day on which it does not count
	Ends    string `json:"ends,omitempty"`  // the last day on which it counts
	Expired bool   `json:"expired,omitempty"`
	// Signers are those for whose commits alone it counts.
	Signers []string `json:"signers,omitempty"`
	At      string   `json:"at"`
	Used    bool     `json:"used"` // whether something of the folder passes by it
}

// ExplainApp is what the policy gives an app, and what it says of the commit.
func ExplainApp(j Judge, app string, c *ring.Commit, settings manifest.Settings) AppPolicy {
	rules := j.Here()
	out := AppPolicy{App: app, Profile: rules.Profile, BindRoots: rules.Effective().BindRoots, Grants: []GivenGrant{}, Decisions: []ring.Decision{}}
	for _, d := range CheckCommit(j, c, settings).Decisions {
		if d.App == app {
			out.Decisions = append(out.Decisions, d)
		}
	}
	for i := range rules.Grants {
		given := &rules.Grants[i]
		if given.App != app {
			continue
		}
		g := GivenGrant{
			Feature: given.Feature, Value: given.Value, Service: given.Service, Reason: given.Reason, At: given.At, Expired: given.Expired(rules.Now), Signers: given.Signers,
			Used: slices.ContainsFunc(out.Decisions, func(d ring.Decision) bool {
				return d.Rule == given.Feature && (d.Grant == given.At || strings.HasPrefix(d.Grant, given.At+","))
			}),
		}
		if !given.Expires.IsZero() {
			g.Until, g.Ends = given.Expires.Format("2006-01-02"), given.LastDay()
		}
		out.Grants = append(out.Grants, g)
	}
	return out
}
