package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/screen"
)

func historyCmd(g *globals) *cobra.Command {
	var q api.HistoryQuery
	cmd := &cobra.Command{
		Use:   "history [app]",
		Short: "Show what became of commits, newest first",
		Long: "history is a line for each commit that this host has seen: who signed it, what it\n" +
			"says, and what became of it here. Runs of jobs are folded into that. -o json has\n" +
			"the same commits. gitring events has each step.",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			if len(given) == 1 {
				q.App = given[0]
			}
			if q.Limit < 1 {
				return usage(cmd, "--limit is at least 1")
			}
			return g.history(cmd.Context(), q)
		},
	}
	cmd.Flags().IntVarP(&q.Limit, "limit", "n", 50, "how many commits at most")
	return cmd
}

func (g *globals) history(ctx context.Context, q api.HistoryQuery) error {
	commits, err := g.daemon().Commits(ctx, q)
	if err != nil {
		return asked(err)
	}
	if len(commits) == 0 && q.App != "" {
		if err := g.known(ctx, q.App); err != nil {
			return err
		}
	}
	if g.machine() {
		return g.encode(commits)
	}
	if len(commits) == 0 {
		g.notice("nothing happened yet")
		return nil
	}
	s := g.screen()
	showHistory(s, commits)
	_, err = fmt.Fprint(g.out, s)
	return err
}

func showHistory(s *screen.Screen, commits []api.CommitNow) {
	head := []string{"AT (UTC)", "COMMIT", "OUTCOME", "SIGNER", "SUBJECT"}
	several := slices.ContainsFunc(commits, func(c api.CommitNow) bool { return c.Source != commits[0].Source })
	if several {
		head = slices.Insert(head, 1, "SOURCE")
	}
	rows := make([][]screen.Word, len(commits))
	for i, c := range commits {
		row := []screen.Word{
			screen.Text(c.At.UTC().Format("2006-01-02 15:04")), screen.Text(c.Commit.Short()),
			screen.Painted(c.Outcome, outcomeHue(c.Outcome)),
			screen.Text(cmp.Or(c.Signer, "-")),
			screen.Text(strings.Trim(c.Subject+"; "+c.Says, "; ")),
		}
		if several {
			row = slices.Insert(row, 1, screen.Text(c.Source))
		}
		rows[i] = row
	}
	s.Table(0, head, rows)
}

func outcomeHue(outcome string) screen.Hue {
	switch outcome {
	case api.OutcomeLive:
		return screen.Green
	case api.OutcomeReplaced:
		return screen.Dim
	case api.OutcomeRefused, api.OutcomeFailed, api.OutcomeRestored, api.OutcomePartly, api.OutcomeJob:
		return screen.Red
	}
	return screen.Yellow
}
