package main

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

func policyCheckCmd(g *globals) *cobra.Command {
	var by policyFlags
	cmd := &cobra.Command{
		Use:   "check [rev|dir]",
		Short: "Show what the policy says of a commit",
		Long: "check reads a folder (default: the current one) or a revision of the clone\n" +
			"around, and shows each thing that its apps ask beyond what every app may: what\n" +
			"is denied, what is a power, by which grant, and where it stands. What is wrong\n" +
			"with the files themselves is gitring validate's to say.\n" +
			"Exit 7 when anything is denied.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return g.policyCheck(cmd.Context(), strings.Join(given, ""), by)
		},
	}
	by.add(cmd)
	return cmd
}

func (g *globals) policyCheck(ctx context.Context, what string, by policyFlags) error {
	c, err := g.commitAt(ctx, what, by)
	if err != nil {
		return err
	}
	defer c.close()
	out := admission.CheckCommit(c.judge, c.commit, c.settings)
	if g.machine() {
		err = g.encode(out)
	} else {
		err = g.showChecked(&out, path.Clean(cmp.Or(what, ".")))
	}
	if err == nil && out.Denies() {
		return exit.Outcome(exit.Refused)
	}
	return err
}

func (g *globals) showChecked(c *admission.Checked, name string) error {
	s := g.screen()
	hues := map[string]screen.Hue{string(policy.Deny): screen.Red, string(policy.Power): screen.Yellow, string(policy.Note): screen.Dim}
	for _, d := range c.Decisions {
		at := d.File
		if d.Line > 0 {
			at = fmt.Sprintf("%s:%d", d.File, d.Line)
		}
		s.Line(0, " ", screen.Text(at+":"), screen.Painted(d.Verdict, hues[d.Verdict]), screen.Text(d.Rule+wording.When(d.Value != "", " "+d.Value)+wording.When(d.Service != "", " of service "+d.Service)+": "+d.Risk))
		if d.Grant != "" {
			s.Line(2, " ", screen.Painted("grant:", screen.Dim), screen.Text(d.Grant))
		}
		if d.Hint != "" {
			s.Line(2, " ", screen.Painted("hint:", screen.Dim), screen.Text(d.Hint))
		}
	}
	for _, r := range c.Refused {
		s.Line(0, " ", screen.Text(r.Where()+":"), screen.Painted(string(policy.Deny), screen.Red), screen.Text(r.Says))
		s.Line(2, " ", screen.Painted("hint:", screen.Dim), screen.Text(r.Hint))
	}
	if !c.Denies() && (c.Faults == 0 || len(c.Apps) > 0) {
		s.Line(0, " ", screen.Painted("ok:", screen.Green), screen.Text("the policy lets "+wording.Counted(len(c.Apps), "app")+" of "+name+" pass"))
	}
	if c.Faults > 0 {
		who := wording.When(len(c.Unread) > 0, strings.Join(c.Unread, ", ")+": ")
		s.Line(0, " ", screen.Painted("not judged whole:", screen.Yellow), screen.Text(who+wording.Counted(c.Faults, "fault")+" of the files, which gitring validate tells"))
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}
