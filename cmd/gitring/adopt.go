package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/wording"
)

func adoptCmd(g *globals) *cobra.Command {
	var r api.AdoptRequest
	cmd := &cobra.Command{
		Use:   "adopt <app>",
		Short: "Take over a running Compose project without a restart",
		Long: "adopt gives the containers that docker compose runs of an app into gitring's hands.\n" +
			"None is stopped or changed: each counts as what the commit asks for, is checked and\n" +
			"restarted when it ends, and is replaced when its service first changes. Volumes and\n" +
			"folders that a container writes have to be where the next one looks for them; what\n" +
			"is not is refused, with what to do. --compare changes nothing and says, for each\n" +
			"container, what will be different then. It also takes back an app that was left.",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) (err error) {
			if r.App, err = oneApp(cmd, given[0]); err != nil {
				return err
			}
			if !r.Compare {
				if r.Reason, err = g.why(cmd, by{reason: r.Reason}); err != nil {
					return err
				}
			}
			return g.adopt(cmd.Context(), r)
		},
	}
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the journal and for all who look (required); a terminal asks for it")
	cmd.Flags().BoolVar(&r.Compare, "compare", false, "only say what differs from what gitring would make")
	return cmd
}

// oneApp is an app as given; a service is none.
func oneApp(cmd *cobra.Command, given string) (string, error) {
	app, service, err := target(given)
	if err == nil && service != "" {
		err = usage(cmd, cmd.Name()+" is of a whole app: "+app)
	}
	return app, err
}

func (g *globals) adopt(ctx context.Context, r api.AdoptRequest) error {
	done, err := g.daemon().Adopt(ctx, r)
	if err != nil {
		return asked(err)
	}
	if g.machine() {
		if err := g.encode(done); err != nil {
			return err
		}
		return exit.With(adoptCode(&done))
	}
	if _, err := fmt.Fprint(g.out, adoptText(&done, r.Compare)); err != nil {
		return err
	}
	return exit.With(adoptCode(&done))
}

// adoptText is a line for each thing that a person has to know.
func adoptText(a *api.Adoption, compare bool) string {
	lines := []string{a.Says}
	for _, c := range a.Containers {
		if !compare {
			break
		}
		lines = append(lines, fmt.Sprintf("%s/%d (%s)", c.Service, c.Slot, c.Name))
		if len(c.Differs) == 0 {
			lines = append(lines, "  nothing differs")
		}
		for _, d := range c.Differs {
			lines = append(lines, "  "+d)
		}
	}
	if len(a.Starts) > 0 {
		lines = append(lines, "gitring starts what Compose does not run: "+strings.Join(a.Starts, ", "))
	}
	for _, o := range a.Obstacles {
		lines = append(lines, "in the way: "+o.Says, "  "+o.Hint)
	}
	for i := range lines {
		lines[i] = wording.SafeLine(lines[i])
	}
	return strings.Join(lines, "\n") + "\n"
}

// adoptCode is 7 where something is in the way.
func adoptCode(a *api.Adoption) int {
	if len(a.Obstacles) > 0 {
		return exit.Refused
	}
	return exit.OK
}
