package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

func leaveCmd(g *globals) *cobra.Command {
	var r api.LeaveRequest
	cmd := &cobra.Command{
		Use:   "leave <app>",
		Short: "Hand an app back to Compose as it runs",
		Long: "leave takes gitring's hands off an app: nothing is stopped or changed, the engine's\n" +
			"restart policies are those of the Compose file, and no commit is deployed any more\n" +
			"until gitring adopt takes it back. The files of the commit in force are written into\n" +
			"a folder from which docker compose goes on, with the data and volumes where they\n" +
			"are. The command that changes nothing there is told, and which services a plain\n" +
			"docker compose up would make anew all the same, each with why.",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) (err error) {
			if r.App, err = oneApp(cmd, given[0]); err != nil {
				return err
			}
			if r.Reason, err = g.why(cmd, by{reason: r.Reason}); err != nil {
				return err
			}
			if r.To != "" {
				if r.To, err = filepath.Abs(r.To); err != nil {
					return err
				}
			}
			return g.leave(cmd.Context(), r)
		},
	}
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the journal and for all who look (required); a terminal asks for it")
	cmd.Flags().StringVar(&r.To, "to", "", "the folder to write the project into, on the daemon's host (default left/<app> below its state)")
	cmd.Flags().BoolVar(&r.WithSecrets, "with-secrets", false, "write what encrypted files of the commit hold into the folder, mode 0600")
	return cmd
}

func (g *globals) leave(ctx context.Context, r api.LeaveRequest) error {
	done, err := g.daemon().Leave(ctx, r)
	if err != nil {
		return asked(err)
	}
	if g.machine() {
		return g.encode(done)
	}
	for _, note := range done.Notes {
		g.notice("%s", wording.SafeLine(note))
	}
	_, err = fmt.Fprintf(g.out, "%s\nproject: %s\n%s", screen.Wrapped(wording.SafeLine(done.Says), g.width()), wording.SafeLine(done.Dir),
		wording.When(done.Command != "", "to change nothing: "+wording.SafeLine(done.Command)+"\n"))
	return err
}
