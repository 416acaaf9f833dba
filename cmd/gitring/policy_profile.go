package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/policy"
)

// profileNamed is a profile by its name, for the flag --profile; "" is the
// configuration's own.
func profileNamed(name string, own policy.Profile) (policy.Profile, error) {
	switch p := policy.Profile(name); p {
	case "":
		return own, nil
	case policy.Compose, policy.Owner, policy.Hardened:
		return p, nil
	}
	return "", &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("--profile: %q is not known", name), Hint: "one of " + strings.Join(config.Profiles, ", ")}
}

// judgeFor is the judge of the named configuration, and compose's where none is
// named: a folder is judged the same on every machine.
func (g *globals) judgeFor(profile string) (admission.Judge, error) {
	if g.config == "" {
		p, err := profileNamed(profile, policy.Compose)
		return admission.Anywhere(p), err
	}
	c, err := config.Read(g.config)
	if err != nil {
		return admission.Judge{}, err
	}
	j := admission.For(c)
	own := j.Rules.Profile
	if j.Rules.Profile, err = profileNamed(profile, own); j.Rules.Profile != own {
		j.Rules.Lists = nil // those of that profile
	}
	return j, err
}

func profileFlag(cmd *cobra.Command, profile *string) {
	cmd.Flags().StringVar(profile, "profile", "", "judge by this profile of the policy: compose, owner or hardened")
}
