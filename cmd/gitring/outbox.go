package main

import (
	"cmp"
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

func outboxCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "outbox",
		Short: "Show and send what forges and receivers have not been told",
		Args:  knownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(outboxListCmd(g), outboxRetryCmd(g))
	return cmd
}

func outboxListCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List what has not arrived",
		Long: "list shows commit statuses and notifications that wait, how often each was tried,\n" +
			"why it was not taken and when it is tried next; those that were given up; and\n" +
			"those for a receiver that the configuration does not name any more (nobody).",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return g.outboxList(cmd.Context()) },
	}
}

func outboxRetryCmd(g *globals) *cobra.Command {
	var r api.OutboxRetryRequest
	cmd := &cobra.Command{
		Use:   "retry [id]",
		Short: "Send again what has not arrived",
		Long: "retry makes one line of gitring outbox list due at once, or every one that was\n" +
			"given up (--dead), or all that has not arrived (--all). Its attempts count anew.",
		Args: args(cobra.MaximumNArgs(2)), // the id of a status has a space in it
		ValidArgsFunction: func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(given) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			all, _ := g.daemon().Outbox(cmd.Context())
			var ids []string
			for _, u := range all {
				if u.State != ring.UnsaidLeft {
					ids = append(ids, u.ID)
				}
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, given []string) error {
			r.ID = strings.Join(given, " ")
			n := 0
			for _, yes := range []bool{r.ID != "", r.All, r.Dead} {
				if yes {
					n++
				}
			}
			if n != 1 {
				return usage(cmd, "name an id, or say --dead or --all")
			}
			done, err := g.daemon().OutboxRetry(cmd.Context(), r)
			if err != nil {
				return asked(err)
			}
			if g.machine() {
				return g.encode(done)
			}
			g.notice("%d sent again", done.Count)
			return nil
		},
	}
	cmd.Flags().BoolVar(&r.All, "all", false, "all that has not arrived")
	cmd.Flags().BoolVar(&r.Dead, "dead", false, "all that was given up")
	return cmd
}

func (g *globals) outboxList(ctx context.Context) error {
	all, err := g.daemon().Outbox(ctx)
	if err != nil {
		return asked(err)
	}
	if g.machine() {
		return g.encode(all)
	}
	if len(all) == 0 {
		g.notice("everything has arrived")
		return nil
	}
	s := g.screen()
	var rows [][]screen.Word
	for _, u := range all {
		state, next := screen.Painted(u.State, screen.Yellow), cmp.Or(screen.Stamp(u.Next), "now")
		switch u.State {
		case ring.UnsaidDead:
			state, next = screen.Painted("given up", screen.Red), "-"
		case ring.UnsaidLeft:
			state, next = screen.Painted("nobody", screen.Dim), "-"
		}
		rows = append(rows, []screen.Word{screen.Text(u.ID), screen.Text(u.To), screen.Text(u.What), state, screen.Text(strconv.Itoa(u.Attempts)), screen.Text(next), screen.Text(cmp.Or(u.Reason, "-"))})
	}
	s.Table(0, []string{"ID", "TO", "WHAT", "STATE", "TRIED", "NEXT (UTC)", "REASON"}, rows)
	_, err = io.WriteString(g.out, s.String())
	return err
}
