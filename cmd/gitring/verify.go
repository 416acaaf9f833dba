package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// trustFlags say whose commits count in a clone.
type trustFlags struct {
	repo string
	checkout.Trustees
}

func (f *trustFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.repo, "repo", ".", "the clone")
	flags.StringVar(&f.Source, "source", "", "the source of --config whose trust counts")
	flags.StringVar(&f.Branch, "branch", config.DefaultBranch, "the branch that hosts follow, with keys given here")
	flags.StringVar(&f.AllowedSigners, "allowed-signers", "", "an OpenSSH allowed_signers file")
	flags.StringVar(&f.OpenPGPKeys, "openpgp-keys", "", "a file of armoured OpenPGP keys")
	flags.StringVar(&f.RevokedKeys, "revoked-keys", "", "keys that never count")
}

func verifyCmd(g *globals) *cobra.Command {
	var f trustFlags
	var prePush bool
	cmd := &cobra.Command{
		Use:   "verify <rev|range>",
		Short: "Check signatures and trust rules in a clone, without a daemon",
		Long: "verify judges one commit, or every commit of a range a..b, as the daemon would:\n" +
			"by the trust of --config, by the keys given here, or by what gitring init wrote\n" +
			"into the clone's own settings. It sees commits for the first time, so an expired\n" +
			"key is refused. One commit alone is judged by its signature and by what its signer\n" +
			"may change, against its parent; the way that led to it is a range's to judge.\n" +
			"Exit 7 when one is refused.\n\n" +
			"--pre-push reads what git tells a pre-push hook and judges what would come to the\n" +
			"branch that hosts follow. gitring init --hook writes that hook.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if prePush == (len(given) == 1) {
				return usage(cmd, "verify wants a commit, a range a..b, or --pre-push")
			}
			return g.verify(cmd.Context(), strings.Join(given, ""), f)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&prePush, "pre-push", false, "judge what git's lines on stdin say is pushed")
	return cmd
}

// verify judges a revision or a range; "" is what git tells a pre-push hook.
func (g *globals) verify(ctx context.Context, rev string, f trustFlags) error {
	trust, rules, err := g.trust(ctx, f)
	if err != nil {
		return err
	}
	repo, err := gitsync.OpenRepo(f.repo)
	if err != nil {
		return &exit.Failure{Code: exit.NotFound, Says: err.Error(), Hint: "run it inside a clone, or name one with --repo"}
	}
	j := checkout.NewJudge(ctx, checkout.At(f.repo, g.person()), repo, trust, rules)
	var v checkout.Verified
	if rev == "" {
		v, err = j.JudgePushes(g.in)
	} else {
		v, err = j.JudgeRevision(rev)
	}
	if err != nil {
		return err
	}
	if err := g.showVerified(v); err != nil {
		return err
	}
	if rev == "" && v.Refusal != nil && v.Refusal.Code == ring.AwaitingApproval {
		return nil // it has to be pushed for others to answer for it
	}
	if v.Refusal != nil && v.Refusal.Code == ring.AwaitingApproval {
		return exit.Outcome(exit.Held)
	}
	if v.Refusal != nil {
		return exit.Outcome(exit.Refused)
	}
	return nil
}

// trust is complete trust for judging in a clone.
func (g *globals) trust(ctx context.Context, f trustFlags) (*gitsync.Trust, checkout.Rules, error) {
	r, err := g.rules(ctx, f)
	if err != nil {
		return nil, r, err
	}
	trust, err := r.Trust()
	return trust, r, err
}

// rules are whose commits count, by what was typed. Where the clone names a
// configuration, that counts for the rest of the verb, too.
func (g *globals) rules(ctx context.Context, f trustFlags) (checkout.Rules, error) {
	if g.config == "" && !f.ByHand() {
		g.config = configFromEnv()
	}
	r, err := checkout.RulesOf(ctx, checkout.At(f.repo, g.person()), f.Trustees, g.config)
	g.config = r.File
	return r, err
}

func (g *globals) showVerified(v checkout.Verified) error {
	if g.machine() {
		return g.encode(v)
	}
	s := g.screen()
	if v.Empty != "" {
		s.Line(0, " ", screen.Text("nothing to verify:"), screen.Text(v.Empty))
	}
	for _, c := range v.Commits {
		who := c.Signer
		if c.Fingerprint != "" {
			who += " (" + c.Fingerprint + ")"
		}
		s.Line(0, " ", screen.Text(c.Commit.Short()), screen.Painted("good", screen.Green), screen.Text(who), screen.Text(wording.When(c.Note != "", "- "+c.Note)))
	}
	if r := v.Refusal; r != nil {
		s.Line(0, " ", screen.Text(r.Commit.Short()), screen.Painted("refused", screen.Red), screen.Painted(string(r.Code)+":", screen.Red), screen.Text(r.Says))
		if r.Hint != "" {
			s.Line(2, " ", screen.Painted("hint:", screen.Dim), screen.Text(r.Hint))
		}
	}
	if v.Judged != "" {
		s.Line(2, " ", screen.Painted("judged:", screen.Dim), screen.Text(v.Judged))
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}
