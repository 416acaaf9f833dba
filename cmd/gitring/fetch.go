package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
)

// fetchCmd is the process that the daemon starts for whatever a remote sends. It
// is no verb for people.
func fetchCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:    gitsync.FetchVerb,
		Short:  "Fetch for the daemon, which starts this itself",
		Hidden: true,
		Args:   args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			in, ok := g.in.(*os.File)
			out, too := g.out.(*os.File)
			if !ok || !too {
				return byHand()
			}
			err := gitsync.ServeFetch(in, out)
			if errors.Is(err, gitsync.ErrByHand) {
				return byHand()
			}
			return err
		},
	}
}

func byHand() error {
	return &exit.Failure{Code: exit.Usage, Says: gitsync.ErrByHand.Error(), Hint: "gitring serve"}
}
