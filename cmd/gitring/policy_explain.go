package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

func policyExplainCmd(g *globals) *cobra.Command {
	var by policyFlags
	var dir string
	cmd := &cobra.Command{
		Use:   "explain <app|rule>",
		Short: "Say what a rule is about, or what the policy gives an app",
		Long: "explain says of a rule, such as capabilities.add, what it guards against, what\n" +
			"profile compose lets pass, and how it is granted. Of an app it shows the grants\n" +
			"that the policy of --config has for it, and what the policy says of it in the\n" +
			"folder --dir (default: the current one).",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return g.policyExplain(cmd.Context(), given[0], dir, by)
		},
	}
	by.add(cmd)
	cmd.Flags().StringVar(&dir, "dir", ".", "the folder or revision in which the app is")
	return cmd
}

func (g *globals) policyExplain(ctx context.Context, what, dir string, by policyFlags) error {
	if facts, ok := policy.Explain(what); ok {
		return g.explainRule(facts)
	}
	c, err := g.commitAt(ctx, dir, by)
	if err != nil {
		return err
	}
	defer c.close()
	out := admission.ExplainApp(c.judge, what, c.commit, c.settings)
	plan := admission.CheckCommit(c.judge, c.commit, c.settings)
	known := slices.Concat(plan.Apps, policy.RuleNames())
	for _, d := range plan.Decisions {
		known = append(known, d.App)
	}
	if !slices.Contains(known, what) && len(out.Grants) == 0 {
		return &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("%q is no rule, and no app of %s", what, dir), Hint: ring.Meant(what, known)}
	}
	if g.machine() {
		return g.encode(out)
	}
	return g.showExplained(&out)
}

func (g *globals) explainRule(f policy.RuleFacts) error {
	if g.machine() {
		return g.encode(f)
	}
	s := g.screen()
	row := func(key string, says ...string) {
		s.Line(0, " ", screen.Painted(fmt.Sprintf("%-13s", key), screen.Dim), screen.Text(strings.Join(says, "; ")))
	}
	row("rule", f.Rule)
	row("Compose keys", strings.Join(f.Keys, ", "))
	row("it", f.Risks...)
	row("compose lets", f.Lets...)
	row("owner", f.Owner)
	if f.Grants {
		row("granted by", "{feature: "+f.Rule+", value: …, reason: …}; gitring policy suggest prints it")
	} else {
		row("granted by", "no grant")
	}
	if len(f.Fields) > 0 {
		row("fields", strings.Join(f.Fields, ", "))
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}

func (g *globals) showExplained(a *admission.AppPolicy) error {
	s := g.screen()
	s.Line(0, " ", screen.Painted(a.App, screen.Bold), screen.Text("profile "+string(a.Profile)+", may write to "+strings.Join(a.BindRoots, ", ")))
	for _, x := range a.Grants {
		says := x.Feature + " " + x.Value + wording.When(x.Service != "", " for service "+x.Service) + wording.When(len(x.Signers) > 0, " for what "+strings.Join(x.Signers, ", ")+" signs") + ": " + x.Reason
		s.Line(2, " ", screen.Painted("grant:", screen.Dim), screen.Text(says), screen.Text("("+x.At+wording.When(x.Expired, ", expired: it ended with "+x.Ends)+wording.When(!x.Expired && x.Ends != "", ", ends with "+x.Ends)+wording.When(!x.Used, ", not used here")+")"))
	}
	for _, d := range a.Decisions {
		s.Line(2, " ", screen.Painted(d.Verdict+":", screen.Dim), screen.Text(d.Rule+wording.When(d.Value != "", " "+d.Value)+wording.When(d.Service != "", " of service "+d.Service)+": "+d.Risk))
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}
