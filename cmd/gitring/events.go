package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
	"github.com/gitring/gitring/wording"
)

func eventsCmd(g *globals) *cobra.Command {
	var q api.EventQuery
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show the journal",
		Long:  "events shows the newest lines of the journal, oldest first. -o json writes one\nobject a line.",
		Args:  args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Last < 0 {
				return usage(cmd, "--tail is a number of lines; 0 is all")
			}
			return g.events(cmd.Context(), q)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&q.Follow, "follow", "f", false, "go on with what happens")
	flags.StringVar(&q.App, "app", "", "of one app only")
	flags.IntVarP(&q.Last, "tail", "n", 100, "how many lines to begin with; 0 is all")
	return cmd
}

func (g *globals) events(ctx context.Context, q api.EventQuery) error {
	told := false
	q.Trimmed = func(first int64) { g.notice("lines before %d were trimmed: nothing older is kept", first) }
	err := g.daemon().Events(ctx, q, func(e ring.Event) error {
		told = true
		if g.machine() {
			return g.encodeLine(e)
		}
		return g.showEvent(e)
	})
	if q.Follow && ctx.Err() != nil {
		return nil // the way to end it
	}
	if err == nil && !told && q.App != "" {
		return g.known(ctx, q.App)
	}
	return asked(err)
}

// known is nil for an app that this host has. One that left has its journal,
// and need not be asked for.
func (g *globals) known(ctx context.Context, app string) error {
	if name, _, service := strings.Cut(app, "/"); service {
		return &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("%q is a service, and the journal is kept by app", app), Hint: "name the app: " + name}
	}
	_, err := g.status(ctx, app)
	return err
}

// showEvent is one line; the widths fit what is usual, and never cut.
func (g *globals) showEvent(e ring.Event) error {
	s := g.screen()
	s.Line(0, "  ", screen.Painted(screen.Stamp(e.At), screen.Dim), screen.Text(fmt.Sprintf("%-18s", e.Kind)), screen.Text(fmt.Sprintf("%-16s", show.PlaceOf(e))),
		screen.Text(fmt.Sprintf("%-7s", e.Commit.Short())), screen.Text(e.Reason), screen.Text(wording.When(e.Actor != "", "by "+e.Actor)))
	_, err := fmt.Fprint(g.out, s)
	return err
}
