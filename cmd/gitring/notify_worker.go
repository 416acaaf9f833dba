package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/notify"
)

// workerCmd is the process that the daemon starts to tell one chat one message. It
// is no verb for people.
func workerCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:    notify.WorkerVerb,
		Short:  "Tell a chat for the daemon, which starts this itself",
		Hidden: true,
		Args:   args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if f, ok := g.in.(*os.File); ok {
				if st, err := f.Stat(); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
					return &exit.Failure{Code: exit.Usage, Says: "notify-worker is started by the daemon alone", Hint: "gitring notify test"}
				}
			}
			return notify.ServeWorker(g.in, g.out)
		},
	}
}
