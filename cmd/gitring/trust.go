package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
)

func trustCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Show and settle whom a source trusts, and up to where",
		Args:  knownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(trustShowCmd(g), trustAcceptCmd(g), trustReverifyCmd(g), trustCompareCmd(g))
	return cmd
}

func trustAcceptCmd(g *globals) *cobra.Command {
	var r api.AcceptRequest
	cmd := &cobra.Command{
		Use:   "accept <sha>",
		Short: "Trust a commit that the rules of the range refuse",
		Long: "accept moves the anchor of a source to the tip of its branch by a person's\n" +
			"decision: after a forced push, a range that is too large, or a state directory\n" +
			"that was lost. The tip itself has to be signed by a trusted key. Who, from where,\n" +
			"to where and why is journalled for good.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			sha, err := commitID(given[0])
			if err != nil {
				return err
			}
			if len(sha) != 40 {
				return &exit.Failure{
					Code: exit.Usage, Says: fmt.Sprintf("%q is no full commit id", given[0]),
					Hint: "all 40 hex digits: what is signed once may have several ids; git rev-parse, or gitring trust show -o json",
				}
			}
			if r.Reason, err = g.why(cmd, by{reason: r.Reason}); err != nil {
				return err
			}
			r.Commit = sha
			if err := g.daemon().Accept(cmd.Context(), r); err != nil {
				return asked(err)
			}
			g.notice("trusted up to %s", sha.Short())
			return nil
		},
	}
	cmd.Flags().StringVar(&r.Source, "source", "", "the source, where there is more than one")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the journal (required); a terminal asks for it")
	return cmd
}

func trustShowCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show [source]",
		Short: "Show whom each source trusts, and up to where",
		Args:  args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			all, err := g.daemon().Trust(cmd.Context(), strings.Join(given, ""))
			if err != nil {
				return asked(err)
			}
			if g.machine() {
				return g.encode(all)
			}
			s := g.screen()
			for i, t := range all {
				if i > 0 {
					s.Gap()
				}
				show.Trust(s, t, g.now())
			}
			_, err = fmt.Fprint(g.out, s)
			return err
		},
	}
}

func trustReverifyCmd(g *globals) *cobra.Command {
	var r api.ReverifyRequest
	cmd := &cobra.Command{
		Use:   "reverify",
		Short: "Hold the trusted history against the present keys",
		Long: "reverify verifies again every commit since trust began, under the keys and rules\n" +
			"of now, and lists those that would not pass. It takes nothing back: what is trusted\n" +
			"stays trusted, and what runs goes on. In mode forge-merge the whole history is judged\n" +
			"as one range, and heads are fetched again; of a head that the forge does not have any\n" +
			"more it cannot be told. Exit 7 when a commit would not pass or cannot be told.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := g.daemon().Reverify(cmd.Context(), r)
			if err != nil {
				return asked(err)
			}
			return g.showReverified(found)
		},
	}
	cmd.Flags().StringVar(&r.Source, "source", "", "the source, where there is more than one")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the journal")
	return cmd
}

func (g *globals) showReverified(found ring.Reverified) error {
	if g.machine() {
		if err := g.encode(found); err != nil {
			return err
		}
	} else {
		s := g.screen()
		s.Line(0, " ", screen.Painted(found.Source, screen.Bold), screen.Text(fmt.Sprintf("%d commits since %s, up to %s:", found.Commits, found.From.Short(), found.To.Short())),
			screen.Text(outOf(len(found.Refusals), len(found.Untold))))
		for _, r := range found.Refusals {
			show.Refusal(s, 2, "", r)
		}
		for _, r := range found.Untold {
			show.Refusal(s, 2, "cannot be told", r)
		}
		if _, err := fmt.Fprint(g.out, s); err != nil {
			return err
		}
	}
	if len(found.Refusals)+len(found.Untold) > 0 {
		return exit.Outcome(exit.Refused)
	}
	return nil
}

func outOf(refused, untold int) string {
	says := fmt.Sprintf("%d would not pass now, and stay trusted", refused)
	switch {
	case refused == 0 && untold == 0:
		return "all would pass now"
	case refused == 0:
		says = "none is known that would not pass now"
	}
	if untold > 0 {
		says += fmt.Sprintf("; of %d it cannot be told", untold)
	}
	return says
}
