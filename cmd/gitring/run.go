package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// askEvery is how often a run that is waited for is asked about.
const askEvery = 500 * time.Millisecond

func runCmd(g *globals) *cobra.Command {
	var b by
	var wait bool
	var within time.Duration
	cmd := &cobra.Command{
		Use:   "run <app/job>",
		Short: "Run a job or a cron job now",
		Long: "run runs a job or a cron job once, now, besides what its commit or schedule asks.\n" +
			"It waits for what the job depends on, for ten minutes at most. It is refused while\n" +
			"a run is under way, and under a hold. With --wait it follows the run and exits by\n" +
			"how it came out: 0, 6 when it failed, 5 when it did not begin, 8 when --timeout is over.",
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			app, service, err := g.oneService(cmd, given[0])
			if err != nil {
				return err
			}
			why, err := g.why(cmd, b)
			if err != nil {
				return err
			}
			r := api.ActRequest{Verb: "run", App: app, Service: service, Reason: why}
			if !wait {
				return g.acted(cmd.Context(), r)
			}
			return g.runAndWait(cmd.Context(), r, within)
		},
	}
	b.optional(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "follow the run, and exit by how it came out")
	cmd.Flags().DurationVar(&within, "timeout", 0, "with --wait: how long to wait; 0 is until it ends")
	return cmd
}

func (g *globals) runAndWait(ctx context.Context, r api.ActRequest, within time.Duration) error {
	wish, err := g.daemon().Act(ctx, r)
	if err != nil {
		return asked(err)
	}
	if !g.machine() {
		g.notice("%s", wish.Says)
	}
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	run, err := g.awaitRun(ctx, r, wish.At)
	if err != nil {
		if within > 0 && ctx.Err() == context.DeadlineExceeded {
			return &exit.Failure{Code: exit.Timeout, Says: fmt.Sprintf("%s/%s did not end within %s", r.App, r.Service, within), Hint: "it goes on; gitring jobs " + r.App + "/" + r.Service + " shows it"}
		}
		return asked(err)
	}
	if g.machine() {
		err = g.encode(run)
	} else {
		s := g.screen()
		s.Line(0, " ", screen.Painted(r.App+"/"+r.Service, screen.Bold), outcomeWord(run.State), screen.Text("after "+took(run, g.now())+":"), screen.Text(run.Reason))
		_, err = io.WriteString(g.out, s.String())
	}
	if err != nil {
		return err
	}
	if run.State == "failed" && !g.machine() {
		g.notice("gitring jobs --logs %s shows what it wrote", runID(run))
	}
	return exit.With(map[string]int{"succeeded": exit.OK, "failed": exit.Failed, "skipped": exit.Conflict}[run.State])
}

// awaitRun asks until the run of a wish has ended, and no other try follows.
func (g *globals) awaitRun(ctx context.Context, r api.ActRequest, at time.Time) (*ring.Run, error) {
	for {
		all, err := g.daemon().Jobs(ctx, api.JobQuery{App: r.App, Service: r.Service, Limit: 50})
		if err != nil {
			return nil, err
		}
		if run := runOf(all, at); run != nil && !api.UnderWay(run) {
			return run, nil
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// runOf is the run of a wish, the newest try of it.
func runOf(all []api.JobNow, at time.Time) *ring.Run {
	for _, j := range all {
		for i := range j.Runs {
			if r := &j.Runs[i]; r.Trigger == ring.Asked && r.Due.Equal(at) {
				return r
			}
		}
	}
	return nil
}
