package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

func historyCmd(g *globals) *cobra.Command {
	var q api.HistoryQuery
	cmd := &cobra.Command{
		Use:   "history [app]",
		Short: "Show what became of commits, newest first",
		Long: "history is a line for each commit that this host has seen: who signed it, what it\n" +
			"says, and what became of it here. Runs of jobs are folded into that. -o json has\n" +
			"the same commits. gitring events has each step.",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			if len(given) == 1 {
				q.App = given[0]
			}
			if q.Limit < 1 {
				return usage(cmd, "--limit is at least 1")
			}
			return g.history(cmd.Context(), q)
		},
	}
	cmd.Flags().IntVarP(&q.Limit, "limit", "n", 50, "how many commits at most")
	return cmd
}

func (g *globals) history(ctx context.Context, q api.HistoryQuery) error {
	commits, err := g.daemon().Commits(ctx, q)
	if err != nil {
		return asked(err)
	}
	if len(commits) == 0 && q.App != "" {
		if err := g.known(ctx, q.App); err != nil {
			return err
		}
	}
	if g.machine() {
		return g.encode(commits)
	}
	if len(commits) == 0 {
		g.notice("nothing happened yet")
		return nil
	}
	s := g.screen()
	showHistory(s, commits)
	_, err = fmt.Fprint(g.out, s)
	return err
}

func showHistory(s *screen, commits []api.CommitNow) {
	head := []string{"AT (UTC)", "COMMIT", "OUTCOME", "SIGNER", "SUBJECT"}
	several := slices.ContainsFunc(commits, func(c api.CommitNow) bool { return c.Source != commits[0].Source })
	if several {
		head = slices.Insert(head, 1, "SOURCE")
	}
	rows := make([][]word, len(commits))
	for i, c := range commits {
		row := []word{
			w(c.At.UTC().Format("2006-01-02 15:04")), w(c.Commit.Short()), {c.Outcome, outcomeHue(c.Outcome)}, w(cmp.Or(c.Signer, "-")),
			w(strings.Trim(c.Subject+"; "+c.Says, "; ")),
		}
		if several {
			row = slices.Insert(row, 1, w(c.Source))
		}
		rows[i] = row
	}
	s.table(0, head, rows)
}

func outcomeHue(outcome string) hue {
	switch outcome {
	case outcomeLive:
		return green
	case outcomeRefused, outcomeFailed, outcomeRestored, outcomePartly, outcomeJob:
		return red
	}
	return yellow
}

// What became of a commit.
const (
	outcomeRefused    = "refused"
	outcomeFailed     = "failed"
	outcomeRestored   = "restored"
	outcomePartly     = "partly refused" // an app of it
	outcomeJob        = "job failed"
	outcomeAwaiting   = "awaiting approval"
	outcomeSuperseded = "superseded"
	outcomeLive       = "live"     // all that it asked for was done
	outcomeAccepted   = "accepted" // nothing was done for it, so far
)

// foldHistory makes a commit of all lines of the journal about it. The lines are the newest
// first, and so are the commits, by when each was first seen.
func foldHistory(events []ring.Event) []api.CommitNow {
	folds := map[[2]string]*fold{}
	var order []*fold
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		if e.Commit == "" || strings.HasPrefix(e.Kind, "override.") {
			continue
		}
		key := [2]string{e.Source, string(e.Commit)}
		f := folds[key]
		if f == nil {
			f = &fold{now: api.CommitNow{Source: e.Source, Commit: e.Commit, At: e.At}, last: map[string]*ring.Event{}}
			folds[key] = f
			order = append(order, f)
		}
		f.take(e)
	}
	commits := make([]api.CommitNow, len(order))
	for i, f := range order {
		commits[len(order)-1-i] = f.outcome()
	}
	return commits
}

// answers is whose content a commit brings, where its signer is somebody else.
var answers = regexp.MustCompile(`(content by|vouched by) .*`)

// fold is what the journal says of one commit.
type fold struct {
	now      api.CommitNow
	last     map[string]*ring.Event // the newest line of each app, and of each service
	refused  *ring.Event
	awaiting *ring.Event
	said     []string // what persons did
}

func (f *fold) take(e *ring.Event) {
	switch e.Kind {
	case ring.CommitAccepted:
		f.refused, f.now.Signer = nil, cmp.Or(e.Actor, f.now.Signer)
		if whose := answers.FindString(e.Reason); whose != "" {
			f.said = append(f.said, whose)
		}
	case ring.CommitRefused:
		f.refused = e
	case ring.PlanAwaiting:
		f.awaiting = e
	case ring.PlanApproved:
		f.awaiting = nil
		f.said = append(f.said, fmt.Sprintf("approved by %s: %s", e.Actor, e.Reason))
	case ring.TrustAccepted:
		f.refused = nil
		f.said = append(f.said, fmt.Sprintf("accepted by %s: %s", e.Actor, e.Reason))
	case ring.RolloutCompleted, ring.RolloutFailed, ring.RolloutRestored, ring.RolloutSuperseded, ring.RolloutAborted,
		ring.JobSucceeded, ring.JobFailed:
		f.last[e.App+"/"+e.Service] = e
	case ring.AppInForce, ring.AppRefused, ring.AppRemoved:
		f.last[e.App] = e
		f.awaiting = nil
	}
}

func (f *fold) outcome() api.CommitNow {
	c := f.now
	of := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(f.last)) {
		e := f.last[id]
		says := id + ": " + e.Reason
		switch e.Kind {
		case ring.RolloutFailed, ring.RolloutAborted:
			of[outcomeFailed] = append(of[outcomeFailed], says)
		case ring.RolloutRestored:
			of[outcomeRestored] = append(of[outcomeRestored], says)
		case ring.AppRefused:
			of[outcomePartly] = append(of[outcomePartly], says)
		case ring.JobFailed:
			of[outcomeJob] = append(of[outcomeJob], says)
		case ring.RolloutSuperseded:
			of[outcomeSuperseded] = append(of[outcomeSuperseded], id)
		default:
			of[outcomeLive] = append(of[outcomeLive], id)
		}
	}
	switch {
	case f.refused != nil:
		c.Outcome, of[outcomeRefused] = outcomeRefused, []string{f.refused.Reason}
	case f.awaiting != nil:
		c.Outcome, of[outcomeAwaiting] = outcomeAwaiting, []string{f.awaiting.Reason}
	default:
		c.Outcome = outcomeAccepted
		for _, o := range []string{outcomeFailed, outcomeRestored, outcomePartly, outcomeJob, outcomeSuperseded, outcomeLive} {
			if len(of[o]) > 0 {
				c.Outcome = o
				break
			}
		}
	}
	says := f.said
	if c.Outcome != outcomeLive && c.Outcome != outcomeSuperseded {
		says = append(says, of[c.Outcome]...)
	}
	c.Says = strings.Join(says, "; ")
	return c
}
