package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/daemon"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/upgrade"
)

func rehearseCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "rehearse",
		Short: "Say what this release would do on this host in place of the running one",
		Long: "rehearse reads the configuration, copies the database and brings the copy to this\n" +
			"release's form, looks at the engine once, and decides once. It prints the steps that\n" +
			"this release would take, and takes none. The daemon may run, also of another release.\n" +
			"It is for root or the daemon's user. gitring upgrade does this with the new program.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := servesOn(runtime.GOOS); err != nil {
				return err
			}
			return g.rehearse(cmd.Context())
		},
	}
}

func (g *globals) rehearse(ctx context.Context) error {
	cfg, err := g.served()
	if err != nil {
		return err
	}
	r, err := daemon.Rehearse(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("cannot rehearse: %w", err)
	}
	if g.machine() {
		return g.encode(r)
	}
	s := g.screen()
	s.Line(0, " ", screen.Text("gitring "+r.Gitring), screen.Text("on "+r.Host+":"), screen.Text(rehearsed(&r)))
	for _, says := range r.Refused {
		s.Line(0, " ", screen.Text("would refuse:"), screen.Text(says))
	}
	for _, says := range r.Notes {
		s.Line(0, " ", screen.Text("note:"), screen.Text(says))
	}
	_, err = fmt.Fprint(g.out, s)
	return err
}

func rehearsed(r *upgrade.Rehearsal) string {
	if len(r.Steps) == 0 {
		return "would change nothing"
	}
	return "would " + upgrade.Told(r.Steps)
}
