package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/wording"
)

// by is what all acts by hand have in common.
type by struct {
	reason, lasts string
	needless      bool // nothing is overridden: it may be done without a reason
}

// unreasoned stands in the journal for a reason that nobody gave.
const unreasoned = "no reason given"

// why is the reason of an act: as given, or as a person at a terminal says when asked.
// Where nothing is overridden there need not be one.
func (g *globals) why(cmd *cobra.Command, b by) (string, error) {
	switch {
	case strings.TrimSpace(b.reason) != "":
		return b.reason, nil
	case b.needless:
		return unreasoned, nil
	case g.asks() && !g.machine():
		said, err := g.ask("Why, for the journal and for all who look?", "")
		if err != nil || said != "" {
			return said, err
		}
	}
	return "", usage(cmd, "--reason is required")
}

// flags has a reason that is required, optional one that is not.
func (b *by) flags(cmd *cobra.Command, lasts string) {
	cmd.Flags().StringVar(&b.reason, "reason", "", "why, for the journal and for all who look (required); a terminal asks for it")
	b.during(cmd, lasts)
}

func (b *by) optional(cmd *cobra.Command) {
	b.needless = true
	cmd.Flags().StringVar(&b.reason, "reason", "", "why, for the journal and for all who look")
}

func (b *by) during(cmd *cobra.Command, lasts string) {
	if lasts != "" {
		cmd.Flags().StringVar(&b.lasts, "for", lasts, "how long it stands, 720h at most")
	}
}

// act sends one act and tells what came of it.
func (g *globals) act(cmd *cobra.Command, b by, r api.ActRequest) error {
	why, err := g.why(cmd, b)
	if err != nil {
		return err
	}
	r.Reason, r.For = why, b.lasts
	return g.acted(cmd.Context(), r)
}

func (g *globals) acted(ctx context.Context, r api.ActRequest) error {
	done, err := g.daemon().Act(ctx, r)
	if err != nil {
		return asked(err)
	}
	if g.machine() {
		return g.encode(done)
	}
	_, err = fmt.Fprintln(g.out, wording.SafeLine(done.Says))
	return err
}

// oneService is app/service as given; an app alone is not enough.
func (g *globals) oneService(cmd *cobra.Command, given string) (app, service string, err error) {
	app, service, err = target(given)
	if err == nil && service == "" {
		err = g.namesNoService(cmd.Context(), given, usage(cmd, fmt.Sprintf("%q names no service: app/service", given)))
	}
	return app, service, err
}

func holdCmd(g *globals) *cobra.Command {
	var b by
	cmd := &cobra.Command{
		Use:   "hold <app[/service]>",
		Short: "Keep hands off: nothing of it is changed, healed or removed",
		Long: "hold takes an app, or one service with all that is tied to it, out of gitring's\n" +
			"hands: nothing of it is created, started, stopped, healed or removed, and what\n" +
			"you stop stays stopped. A held app takes no newer plan; of a held service the\n" +
			"neighbours go on. gitring release ends it, and so does its time; then Git wins.\n" +
			"To stop new plans alone and have what runs healed, say hold: in gitring.yaml.",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			app, service, err := target(given[0])
			if err != nil {
				return err
			}
			return g.act(cmd, b, api.ActRequest{Verb: "hold", App: app, Service: service})
		},
	}
	b.flags(cmd, "4h")
	return cmd
}

// actOn carries out a verb that needs no more than its target and the reason.
func (g *globals) actOn(verb string, b *by) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, given []string) error {
		app, service, err := target(given[0])
		if err != nil {
			return err
		}
		return g.act(cmd, *b, api.ActRequest{Verb: verb, App: app, Service: service})
	}
}

func releaseCmd(g *globals) *cobra.Command {
	var b by
	cmd := &cobra.Command{
		Use:   "release <app[/service]>",
		Short: "End every override on an app or a service: Git wins again",
		Long: "release ends what people did by hand and what still stands: hold, pause, scale\n" +
			"and undo. Of an app it ends what stands on its services too.",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE:              g.actOn("release", &b),
	}
	b.optional(cmd)
	return cmd
}

func retryCmd(g *globals) *cobra.Command {
	var b by
	cmd := &cobra.Command{
		Use:   "retry <app[/service]>",
		Short: "Try again what failed: a version, a job, a pull, a start",
		Long: "retry forgets that a version failed, so that it is rolled out once more; runs a\n" +
			"job again that failed; and tries at once what waits for its next try, such as a\n" +
			"pull, or a service that crashed. What is well is not touched.",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE:              g.actOn("retry", &b),
	}
	b.optional(cmd)
	return cmd
}

func scaleCmd(g *globals) *cobra.Command {
	var b by
	cmd := &cobra.Command{
		Use:   "scale <app/service>=<n>",
		Short: "Run another number of a service for a while",
		Long: "scale runs n instances of a service in the place of what its commit says, until\n" +
			"its time has come or gitring release ends it. More come, and surplus goes, as by\n" +
			"a commit: inside the rollout's bounds. What may not run twice is not scaled up.",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			name, count, ok := strings.Cut(given[0], "=")
			n, err := strconv.Atoi(count)
			if !ok || err != nil || n < 0 {
				return usage(cmd, fmt.Sprintf("%q is not app/service=number", given[0]))
			}
			app, service, err := g.oneService(cmd, name)
			if err != nil {
				return err
			}
			return g.act(cmd, b, api.ActRequest{Verb: "scale", App: app, Service: service, Replicas: n})
		},
	}
	b.flags(cmd, "1h")
	return cmd
}

func rolloutCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Take a rollout into your own hands: pause, resume, promote, abort, restart, undo",
		Long: "rollout changes how a rollout goes, or begins one, in the place of a commit. What\n" +
			"stands is shown by gitring status until it ends; then Git wins again.",
		Args: knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		pauseCmd(g),
		resumeCmd(g),
		g.rolloutVerb("promote", "", "Go on now, past what is only time",
			"promote says that a version has been watched long enough: the rollout goes on past\nthe step of a canary, past bake, past warm_for of a blue-green one, and past\nmin_ready_time of its second set."),
		g.rolloutVerb("abort", "", "Give a rollout up as if it had failed",
			"abort gives the verdict that a failure would: the last good version comes back and\nthe aborted one is not tried again until it changes, or gitring retry. Of a first\n"+
				"deploy nothing comes back: it stops where it is. While the rollout waits for a job,\nthe run of that job is stopped with it; of a job, abort ends its run."),
		restartCmd(g),
		undoCmd(g),
	)
	return cmd
}

func pauseCmd(g *globals) *cobra.Command {
	return g.rolloutVerb("pause", "4h", "Stop where it is: nothing is created or removed, what runs is healed",
		"pause keeps the rollouts of a service, and of all that is tied to it, where they\nare: nothing is created or removed, the deadline does not run, and what runs is\n"+
			"kept alive. A newer commit waits as well. gitring resume lets it go on.")
}

func resumeCmd(g *globals) *cobra.Command {
	return g.rolloutVerb("resume", "", "Go on after a pause, or after a rollout that stopped by itself",
		"resume ends a pause. It also has a rollout go on that stopped by on_failure: pause,\nand a first deploy that failed: that it failed is forgotten.")
}

func restartCmd(g *globals) *cobra.Command {
	return g.rolloutVerb("restart", "", "Replace every instance by one of the same spec",
		"restart rolls a service to a version of its own of the same spec: inside the bounds\nof any rollout, and undone like one when it fails. The next change of the service in\n"+
			"Git ends it.")
}

func (g *globals) rolloutVerb(verb, lasts, short, long string) *cobra.Command {
	var b by
	cmd := &cobra.Command{
		Use: verb + " <app/service>", Short: short, Long: long, Args: args(cobra.ExactArgs(1)), ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			app, service, err := g.oneService(cmd, given[0])
			if err != nil {
				return err
			}
			return g.act(cmd, b, api.ActRequest{Verb: verb, App: app, Service: service})
		},
	}
	if verb == "pause" || verb == "abort" {
		b.flags(cmd, lasts)
	} else {
		b.optional(cmd)
	}
	return cmd
}

func undoCmd(g *globals) *cobra.Command {
	var b by
	var to string
	cmd := &cobra.Command{
		Use:   "undo <app>",
		Short: "Bring back an earlier plan of an app that completed here",
		Long: "undo brings back the plan of an app that completed on this host before the one in\n" +
			"force, or the one of the commit that --to names: with the images it ran, and\n" +
			"without asking a forge, a registry or a key. The policy of today judges it again.\n" +
			"A newer commit of the app waits until the undo ends: by its time, or by gitring\n" +
			"release. For good, make the commit: gitring rollback.",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			app, service, err := target(given[0])
			if err != nil {
				return err
			}
			if service != "" {
				return usage(cmd, "an undo is of a whole app: "+app)
			}
			r := api.ActRequest{Verb: "undo", App: app}
			if to != "" {
				if r.To, err = commitID(to); err != nil {
					return err
				}
			}
			return g.act(cmd, b, r)
		},
	}
	b.flags(cmd, "4h")
	cmd.Flags().StringVar(&to, "to", "", "the commit of the plan to bring back")
	return cmd
}
