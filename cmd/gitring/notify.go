package main

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/screen"
)

func notifyCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "Try the receivers of notifications",
		Args:  knownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "test [name]",
		Short: "Send a test message now",
		Long: "test has the daemon send a message that says it is a test to one receiver of the\n" +
			"configuration, or to all, and says of each whether it was taken. Exit 1 when one\n" +
			"was not. What waits for a receiver is neither sent nor delayed by it.",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: g.completeReceivers,
		RunE: func(cmd *cobra.Command, given []string) error {
			var r api.NotifyTestRequest
			if len(given) > 0 {
				r.Name = given[0]
			}
			return g.notifyTest(cmd.Context(), r)
		},
	})
	return cmd
}

// completeReceivers are the names in the configuration, where it can be read.
func (g *globals) completeReceivers(_ *cobra.Command, given []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if c, err := config.Read(g.configPath()); err == nil && len(given) == 0 {
		for _, r := range c.Notify {
			names = append(names, r.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (g *globals) notifyTest(ctx context.Context, r api.NotifyTestRequest) error {
	all, err := g.daemon().NotifyTest(ctx, r)
	if err != nil {
		return asked(err)
	}
	code := exit.OK
	for _, t := range all {
		if !t.Taken {
			code = exit.Error
		}
	}
	if g.machine() {
		if err := g.encode(all); err != nil {
			return err
		}
		return exit.With(code)
	}
	s := g.screen()
	var rows [][]screen.Word
	for _, t := range all {
		said := screen.Painted("taken", screen.Green)
		if !t.Taken {
			said = screen.Painted("not taken", screen.Red)
		}
		rows = append(rows, []screen.Word{screen.Text(t.Name), screen.Text(t.Service), said, screen.Text(cmp.Or(t.Reason, "-"))})
	}
	s.Table(0, []string{"RECEIVER", "SERVICE", "OUTCOME", "REASON"}, rows)
	if _, err := io.WriteString(g.out, s.String()); err != nil {
		return err
	}
	return exit.With(code)
}
