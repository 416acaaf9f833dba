package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// PolicyName is the file that init writes the host's policy into.
const PolicyName = "policy.yaml"

// How much of what the apps ask for is granted.
const (
	grantAll  = "all"
	grantMost = "most" // nothing that gives root on the host
	grantNone = "none"
)

// judge is the policy that the host has, or will have: of a configuration that is here,
// else of the profile that a person chose.
func (in *Setup) judge() admission.Judge {
	if in.there != nil && string(in.there.Rules.Profile) == in.Result.Profile {
		return admission.For(in.there)
	}
	return admission.Anywhere(policy.Profile(in.Result.Profile))
}

// asks reports whether a person may be asked.
func (in *Setup) asks() bool { return !in.options.Yes && in.person.Terminal && !in.person.Machine }

// policy asks which folders the apps may use and what is granted to them, and makes the
// smallest policy of it. It gives the judge of that policy.
func (in *Setup) policy(c *ring.Commit, settings manifest.Settings) (admission.Judge, error) {
	j := in.judge()
	if in.Result.Profile == string(policy.Compose) {
		r := manifest.Look(c, settings)
		s := j.SuggestFor(&r)
		in.ungrantable = len(s.Apps) == 0
		keepGrants(&s, grantMost)
		in.onlyRoot = len(s.Apps) == 0 && !in.ungrantable
	}
	if in.Result.Profile != string(policy.Compose) || in.there != nil && !in.options.Force {
		if in.there != nil && in.options.Grants+in.options.Folders != "" {
			in.Notice("%s is here and stays: --grants and --folders count with --force alone", in.Result.Config)
		}
		return j, nil
	}
	if in.there != nil && in.there.Policy.Kind == yaml.MappingNode && len(in.there.Policy.Content) > 2 {
		in.Notice("policy: in %s has rules of its own, and stays as it is: move them to a file, and grants can be added to it", in.Result.Config)
		return j, nil
	}
	grants, asked := in.options.Grants, in.options.Folders
	if !in.asks() && grants == "" && asked == "" {
		return j, nil
	}
	r := manifest.Look(c, settings)
	s := j.SuggestFor(&r)
	roots, err := in.roots(&s, asked)
	if err != nil {
		return j, err
	}
	if len(roots) > 0 {
		j = j.WithRoots(roots)
		r = manifest.Look(c, settings)
		s = j.SuggestFor(&r)
	}
	if grants, err = in.grants(&s, grants); err != nil {
		return j, err
	}
	if grants == grantMost {
		in.Result.Withheld = withheld(&s)
	}
	keepGrants(&s, grants)
	if len(roots) == 0 && len(s.Apps) == 0 {
		return j, nil
	}
	j.Rules.Grants = append(slices.Clone(j.Rules.Grants), s.AsGrants()...)
	in.Result.Folders, in.Result.Grants = roots, s.Grants()
	body, err := os.ReadFile(in.policyPath())
	if in.there != nil && in.policyThere() == in.policyPath() && err == nil { // what it grants already is not asked for anew
		merged, _, err := s.Merge(body, roots, admission.AskedAtInit)
		in.policyBody = string(merged)
		return j, err
	}
	in.policyBody = "# Written by gitring init; docs/reference/policy.md has every key.\nversion: 1\nprofile: compose\n" + s.Yaml(roots, admission.AskedAtInit)
	return j, nil
}

// policyName is how the configuration calls the file with the policy: as it does already, else
// by the name that init gives one.
func (in *Setup) policyName() string {
	if in.there != nil && in.there.Policy.Value != "" {
		return in.there.Policy.Value
	}
	return PolicyName
}

// policyPath is that file.
func (in *Setup) policyPath() string {
	if file := in.policyName(); filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(filepath.Dir(in.Result.Config), in.policyName())
}

// PolicyFile is how that file is called.
func (in *Setup) PolicyFile() string { return filepath.Base(in.policyPath()) }

// policyThere is the file with the policy of the configuration that is here, where it names one.
func (in *Setup) policyThere() string {
	file := in.there.Policy.Value
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(in.Result.Config), file)
	}
	return filepath.Clean(file)
}

// roots are the folders outside of their own that all apps may write to.
func (in *Setup) roots(s *admission.Suggestion, given string) ([]string, error) {
	uses := s.Folders()
	if given == "" && in.asks() && len(uses) > 0 {
		var seen, proposal []string
		for _, u := range uses {
			seen = append(seen, fmt.Sprintf("%s (%s)", u.Folder, wording.Counted(len(u.Apps), "app")))
			if u.Grants > 1 {
				proposal = append(proposal, u.Folder)
			}
		}
		in.Notice("folders of the host that apps mount: %s", strings.Join(seen, ", "))
		var err error
		given, err = in.person.Ask("which of them may all apps write to, with commas between, or none?", orNone(strings.Join(proposal, ",")))
		if err != nil {
			return nil, err
		}
	}
	var roots []string
	for root := range strings.SplitSeq(given, ",") {
		if root = strings.TrimSpace(root); root == "" || root == grantNone {
			continue
		}
		if _, hint := config.BindRoot(root); hint != "" {
			return nil, &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("--folders: %q is no folder that apps can share", root), Hint: hint}
		}
		roots = append(roots, root)
	}
	return roots, nil
}

func orNone(s string) string {
	if s == "" {
		return grantNone
	}
	return s
}

// grants is how much of a suggestion is granted.
func (in *Setup) grants(s *admission.Suggestion, given string) (string, error) {
	if given == "" && in.asks() && s.Grants() > 0 {
		root := s.RootEquivalent()
		in.Notice("the apps ask for %s that no app has by itself%s; %s will name each with its line", wording.Counted(s.Grants(), "thing"),
			wording.When(root > 0, fmt.Sprintf(", %d of which give root on this host", root)), PolicyName)
		var err error
		if given, err = in.person.Ask("grant them: all, most (but for apps that need root) or none?", grantMost); err != nil {
			return "", err
		}
	}
	if !slices.Contains([]string{grantAll, grantMost, grantNone, ""}, given) {
		return "", &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("--grants: %q will not do", given), Hint: "all, most or none"}
	}
	return orNone(given), nil
}

// keepGrants leaves of a suggestion the apps to which all is granted: a part of what an
// app needs would give it power, and leave it refused.
func keepGrants(s *admission.Suggestion, how string) {
	s.Apps = slices.DeleteFunc(s.Apps, func(a admission.SuggestedApp) bool {
		return how == grantNone || how == grantMost && slices.ContainsFunc(a.Grants, func(g admission.SuggestedGrant) bool { return g.Danger != "" })
	})
}

// Withheld is one reason for which "most" grants some apps nothing of what they ask for.
type Withheld struct {
	Apps []string `json:"apps"`
	At   string   `json:"at"`   // the first place that asks for it
	Asks string   `json:"asks"` // what it asks for there
	Risk string   `json:"risk"`
	Hint string   `json:"hint"`
}

// withheld are what of a suggestion gives root on the host, by what it gives.
func withheld(s *admission.Suggestion) (out []Withheld) {
	for _, a := range s.Apps {
		for i := range a.Grants {
			g := &a.Grants[i]
			if g.Danger == "" {
				continue
			}
			at := slices.IndexFunc(out, func(w Withheld) bool { return w.Risk == g.Risk })
			if at < 0 {
				at = len(out)
				out = append(out, Withheld{At: g.Place(), Asks: g.Feature + " " + g.Value, Risk: g.Risk, Hint: withheldHint(g.Feature)})
			}
			if !slices.Contains(out[at].Apps, a.Name) {
				out[at].Apps = append(out[at].Apps, a.Name)
			}
		}
	}
	return out
}

// withheldHint is what to do about a thing that gives root.
func withheldHint(feature string) string {
	if feature == "mounts.nested" {
		return "mount the outer folder in these apps as well, or have no app write to it"
	}
	return "leave it out; or grant it to an app that you trust as you trust root"
}
