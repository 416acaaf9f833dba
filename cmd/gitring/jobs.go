package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
	"github.com/gitring/gitring/wording"
)

func jobsCmd(g *globals) *cobra.Command {
	var logs string
	limit := 5
	cmd := &cobra.Command{
		Use:   "jobs [app[/service]]",
		Short: "Show jobs and cron jobs, their runs and when they are due",
		Long: "jobs lists the jobs and cron jobs of this host: where each stands, when it is due\n" +
			"next, and its last runs with what started them, how they came out and how long\n" +
			"they took. The end of a run's log is kept after its container is gone: --logs\n" +
			"writes that of a run, or of the last run of a service.",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			q := api.JobQuery{Limit: limit}
			if len(given) > 0 {
				var err error
				if q.App, q.Service, err = target(given[0]); err != nil {
					return err
				}
			}
			if limit < 1 || limit > 1000 {
				return usage(cmd, "--limit is a number from 1 to 1000")
			}
			if cmd.Flags().Changed("logs") {
				return g.jobLogs(cmd, given, logs)
			}
			return g.jobs(cmd.Context(), q)
		},
	}
	cmd.Flags().StringVar(&logs, "logs", "", "write the log of a run, or of the last run of app/service")
	cmd.Flags().IntVar(&limit, "limit", limit, "how many runs of each")
	return cmd
}

func (g *globals) jobs(ctx context.Context, q api.JobQuery) error {
	all, err := g.daemon().Jobs(ctx, q)
	if err != nil {
		return asked(err)
	}
	if g.machine() {
		return g.encode(all)
	}
	s := g.screen()
	for i, j := range all {
		if i > 0 {
			s.Gap()
		}
		s.Line(0, "  ", screen.Painted(j.App+"/"+j.Service, screen.Bold), screen.Text(string(j.Kind)), screen.Painted(string(j.Phase), show.PhaseHue(j.Phase)), screen.Text(j.Reason))
		g.showRuns(s, j.Runs)
	}
	if len(all) == 0 {
		g.notice("there are no jobs here")
	}
	_, err = io.WriteString(g.out, s.String())
	return err
}

func (g *globals) showRuns(s *screen.Screen, runs []ring.Run) {
	var rows [][]screen.Word
	for i := range runs {
		r := &runs[i]
		rows = append(rows, []screen.Word{
			screen.Text(cmp.Or(runID(r), "-")), screen.Text(trigger(r)), outcomeWord(r.State), screen.Text(strconv.Itoa(r.Try)), screen.Text(cmp.Or(screen.Stamp(cmp.Or(r.Started, r.Due)), "-")), screen.Text(took(r, g.now())), screen.Text(r.Reason),
		})
	}
	if len(rows) > 0 {
		s.Table(2, []string{"RUN", "BY", "OUTCOME", "TRY", "BEGAN", "TOOK", "REASON"}, rows)
	}
}

// runID is 12 digits of the container of a run; "" for one that had none.
func runID(r *ring.Run) string { return r.Instance[:min(12, len(r.Instance))] }

// trigger is what started a run, in a word or two.
func trigger(r *ring.Run) string {
	switch r.Trigger {
	case ring.Before:
		return "before " + r.For
	case ring.Asked:
		return cmp.Or(r.Actor, "somebody")
	}
	return r.Trigger
}

func outcomeWord(state string) screen.Word {
	hues := map[string]screen.Hue{"succeeded": screen.Green, "failed": screen.Red, "skipped": screen.Yellow, api.RunRetrying: screen.Yellow}
	if h, ok := hues[state]; ok {
		return screen.Painted(state, h)
	}
	return screen.Painted(state, screen.Cyan)
}

// took is how long a run lasted, or has so far.
func took(r *ring.Run, now time.Time) string {
	switch {
	case r.Started.IsZero():
		return "-"
	case r.Ended.IsZero() && r.State == api.RunRunning:
		return max(0, now.Sub(r.Started)).Round(time.Second).String()
	case r.Ended.IsZero():
		return "-"
	}
	return max(0, r.Ended.Sub(r.Started)).Round(time.Second).String()
}

var someRun = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// jobLogs writes what was kept of the log of one run.
func (g *globals) jobLogs(cmd *cobra.Command, given []string, of string) error {
	q := api.JobQuery{Logs: true, Limit: 20}
	switch {
	case len(given) > 0:
		return usage(cmd, "--logs names the run or the service by itself")
	case someRun.MatchString(of):
		q.Run = of
	default:
		var err error
		if q.App, q.Service, err = g.oneService(cmd, of); err != nil {
			return err
		}
	}
	all, err := g.daemon().Jobs(cmd.Context(), q)
	if err != nil {
		return asked(err)
	}
	for _, j := range all {
		for i := range j.Runs {
			r := &j.Runs[i]
			if api.UnderWay(r) && q.Run == "" || r.State == "skipped" {
				continue
			}
			return g.runLog(j, r)
		}
	}
	return &exit.Failure{Code: exit.NotFound, Says: "nothing of " + of + " has run yet", Hint: "gitring logs " + of + " shows a run that is under way"}
}

func (g *globals) runLog(j api.JobNow, r *ring.Run) error {
	if g.machine() {
		return g.encode(r)
	}
	if api.UnderWay(r) {
		return &exit.Failure{Code: exit.Conflict, Says: "the run " + runID(r) + " is under way", Hint: "gitring logs " + j.App + "/" + j.Service + " -f follows it"}
	}
	g.notice("%s/%s %s, run %s by %s, %s: %s", j.App, j.Service, screen.Stamp(r.Started), runID(r), trigger(r), r.State, r.Reason)
	if len(r.Log) == 0 {
		g.notice("it wrote nothing, or nothing was kept")
	}
	var b strings.Builder
	for _, line := range r.Log {
		b.WriteString(wording.SafeLine(line) + "\n")
	}
	_, err := fmt.Fprint(g.out, b.String())
	return err
}
