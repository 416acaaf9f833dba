package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/show"
)

func inspectCmd(g *globals) *cobra.Command {
	trace := false
	cmd := &cobra.Command{
		Use:   "inspect <app/service[/slot]>",
		Short: "Say why a service is as it is, and what comes next",
		Long: "inspect answers \"why is this not running\": what is wanted and what is seen,\n" +
			"which rule decides now and what it waits for, the last crash, the last checks,\n" +
			"the next try, ports and addresses, how the image was pinned, what the version\n" +
			"is made of and what differs from the last good one, and the overrides that\n" +
			"stand.\n\n" +
			"It decides as the next look would, and changes nothing.",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			app, service, slot, err := inspected(given[0])
			if err != nil {
				return g.namesNoService(cmd.Context(), given[0], err)
			}
			return g.inspect(cmd.Context(), api.InspectQuery{App: app, Service: service, Slot: slot, Trace: trace})
		},
	}
	cmd.Flags().BoolVar(&trace, "trace", false, "also the rules that were asked, in their order, and what each came to")
	return cmd
}

// inspected reads app/service[/slot].
func inspected(given string) (app, service string, slot int, err error) {
	parts := strings.Split(given, "/")
	wrong := &exit.Failure{Code: exit.Usage, Says: given + " names no service", Hint: "gitring inspect <app>/<service>, or with a slot: <app>/<service>/1"}
	if len(parts) < 2 || len(parts) > 3 {
		return "", "", 0, wrong
	}
	if len(parts) == 3 {
		if slot, err = strconv.Atoi(parts[2]); err != nil || slot < 1 {
			return "", "", 0, wrong
		}
	}
	if app, service, err = target(parts[0] + "/" + parts[1]); err != nil || service == "" {
		return "", "", 0, wrong
	}
	return app, service, slot, nil
}

// namesNoService is the mistake of what names no service, with the services that there are
// where a daemon says them.
func (g *globals) namesNoService(ctx context.Context, given string, mistake error) error {
	st, err := g.daemon().Status(ctx)
	if err != nil || strings.Contains(given, "/") {
		return mistake
	}
	says, hint := api.Partial(&st, given)
	return &exit.Failure{Code: exit.Usage, Says: says, Hint: hint}
}

func (g *globals) inspect(ctx context.Context, q api.InspectQuery) error {
	e, err := g.daemon().Inspect(ctx, q)
	if err != nil {
		return asked(err)
	}
	if g.machine() {
		return g.encode(&e)
	}
	s := g.screen()
	show.Explained(s, &e, g.now())
	_, err = fmt.Fprint(g.out, s)
	return err
}
