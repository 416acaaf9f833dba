package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
)

func refreshCmd(g *globals) *cobra.Command {
	var b by
	cmd := &cobra.Command{
		Use:   "refresh <app[/service]>",
		Short: "Look image tags up anew, and roll to what changed",
		Long: "refresh asks what the image tags of an app, or of one service, mean now. A tag\n" +
			"that means another digest is a new version and rolls as a commit's would; where\n" +
			"nothing changed, nothing happens. Where a registry does not answer, nothing\n" +
			"happens either, and the exit code says so. It is journalled.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			app, service, err := target(given[0])
			if err != nil {
				return err
			}
			why, err := g.why(cmd, b)
			if err != nil {
				return err
			}
			return g.refresh(cmd.Context(), api.RefreshRequest{App: app, Service: service, Reason: why})
		},
	}
	b.optional(cmd)
	return cmd
}

func (g *globals) refresh(ctx context.Context, r api.RefreshRequest) error {
	images, err := g.daemon().Refresh(ctx, r)
	if err != nil {
		return asked(err)
	}
	if g.machine() {
		return g.encode(images)
	}
	s, changed := g.screen(), 0
	for _, i := range images {
		if i.Newer {
			changed++
			s.Line(0, " ", screen.Painted(i.App+"/"+i.Service, screen.Bold), screen.Text(i.Image+":"), screen.Text(show.Digest(i.Pinned, false)+" -> "+show.Digest(i.Now, false)))
		}
	}
	if _, err := fmt.Fprint(g.out, s); err != nil {
		return err
	}
	if changed == 0 {
		g.notice("nothing is newer; what runs stays as it is")
		return nil
	}
	g.notice("gitring status tells what comes of it; gitring sync --wait follows it")
	return nil
}
