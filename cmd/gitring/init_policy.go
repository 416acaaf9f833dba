package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// policyName is the file that init writes the host's policy into.
const policyName = "policy.yaml"

// How much of what the apps ask for is granted.
const (
	grantAll  = "all"
	grantMost = "most" // nothing that gives root on the host
	grantNone = "none"
)

// judge is the policy that the host has, or will have: of a configuration that is here,
// else of the profile that a person chose.
func (in *initial) judge() judge {
	if in.there != nil && string(in.there.Rules.Profile) == in.out.Profile {
		return judgeOf(in.there)
	}
	return judgeAnywhere(policy.Profile(in.out.Profile))
}

// asks reports whether a person may be asked.
func (in *initial) asks() bool { return !in.f.yes && in.g.person() && !in.g.machine() }

// policy asks which folders the apps may use and what is granted to them, and makes the
// smallest policy of it. It gives the judge of that policy.
func (in *initial) policy(c *ring.Commit, settings manifest.Settings) (judge, error) {
	j := in.judge()
	if in.out.Profile != string(policy.Compose) || in.there != nil && !in.f.force {
		return j, nil
	}
	grants, asked := in.f.grants, in.f.folders
	if !in.asks() && grants == "" && asked == "" {
		return j, nil
	}
	r := manifest.Look(c, settings)
	s := j.suggestFor(&r)
	roots, err := in.roots(&s, asked)
	if err != nil {
		return j, err
	}
	if len(roots) > 0 {
		j = j.withRoots(roots)
		r = manifest.Look(c, settings)
		s = j.suggestFor(&r)
	}
	if grants, err = in.grants(&s, grants); err != nil {
		return j, err
	}
	s.keep(grants)
	if len(roots) == 0 && len(s.Apps) == 0 {
		return j, nil
	}
	j.rules.Grants = append(slices.Clone(j.rules.Grants), s.asGrants()...)
	in.out.Folders, in.out.Grants = roots, s.grants()
	in.policyBody = "# Written by gitring init; docs/reference/policy.md has every key.\nversion: 1\nprofile: compose\n" + s.yaml(roots, askedAtInit)
	return j, nil
}

// roots are the folders outside of their own that all apps may write to.
func (in *initial) roots(s *suggestion, given string) ([]string, error) {
	uses := s.folders()
	if given == "" && in.asks() && len(uses) > 0 {
		var seen, proposal []string
		for _, u := range uses {
			seen = append(seen, fmt.Sprintf("%s (%s)", u.Folder, wording.Counted(len(u.Apps), "app")))
			if u.Grants > 1 {
				proposal = append(proposal, u.Folder)
			}
		}
		in.g.notice("folders of the host that apps mount: %s", strings.Join(seen, ", "))
		var err error
		given, err = in.g.ask("which of them may all apps write to, with commas between, or none?", orNone(strings.Join(proposal, ",")))
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
			return nil, &failure{code: exitUsage, says: fmt.Sprintf("--folders: %q is no folder that apps can share", root), hint: hint}
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
func (in *initial) grants(s *suggestion, given string) (string, error) {
	if given == "" && in.asks() && s.grants() > 0 {
		root := s.rootEquivalent()
		in.g.notice("the apps ask for %s that no app has by itself%s; %s will name each with its line", wording.Counted(s.grants(), "thing"),
			wording.When(root > 0, fmt.Sprintf(", %d of which give root on this host", root)), policyName)
		var err error
		if given, err = in.g.ask("grant them: all, most (nothing that gives root) or none?", grantMost); err != nil {
			return "", err
		}
	}
	if !slices.Contains([]string{grantAll, grantMost, grantNone, ""}, given) {
		return "", &failure{code: exitUsage, says: fmt.Sprintf("--grants: %q will not do", given), hint: "all, most or none"}
	}
	return orNone(given), nil
}

// rootEquivalent counts the grants that give root on the host.
func (s *suggestion) rootEquivalent() int {
	n := 0
	for _, a := range s.Apps {
		for _, g := range a.Grants {
			if g.Danger != "" {
				n++
			}
		}
	}
	return n
}

// keep leaves of a suggestion what is granted.
func (s *suggestion) keep(how string) {
	for i := range s.Apps {
		s.Apps[i].Grants = slices.DeleteFunc(s.Apps[i].Grants, func(g suggestedGrant) bool {
			return how == grantNone || how == grantMost && g.Danger != ""
		})
	}
	s.Apps = slices.DeleteFunc(s.Apps, func(a suggestedApp) bool { return len(a.Grants) == 0 })
}

// asGrants are the grants as the policy has them once it is written.
func (s *suggestion) asGrants() []policy.Grant {
	var out []policy.Grant
	for _, a := range s.Apps {
		for i := range a.Grants {
			g := &a.Grants[i]
			out = append(out, policy.Grant{
				App: a.Name, Source: a.Source, Path: a.Path, Service: g.Service, Feature: g.Feature, Value: g.Value,
				Reason: askedAtInit(g), Danger: g.Danger != "",
			})
		}
	}
	return out
}
