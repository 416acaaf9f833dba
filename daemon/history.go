package daemon

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// Of the journal this much is read for the list of commits. Runs that succeeded are asked
// for apart: a cron job writes many lines and says little.
const (
	historyLines = 5000
	historyRuns  = 500
)

// commits is what became of each commit, with its subject where the mirror still has it.
func (d *Daemon) commits(ctx context.Context, q api.HistoryQuery) ([]api.CommitNow, error) {
	kinds := slices.DeleteFunc(slices.Clone(toldByHistory), func(k string) bool { return k == ring.JobSucceeded })
	kinds = append(kinds, ring.RolloutBegan)
	events, err := d.store.Events(ctx, store.EventQuery{Kinds: kinds, Limit: historyLines, Desc: true})
	if err != nil {
		return nil, err
	}
	runs, err := d.store.Events(ctx, store.EventQuery{Kinds: []string{ring.JobSucceeded}, Limit: historyRuns, Desc: true})
	if err != nil {
		return nil, err
	}
	events = append(events, runs...)
	slices.SortFunc(events, func(a, b ring.Event) int { return int(b.Seq - a.Seq) })
	if q.App != "" {
		events = ofApp(events, q.App)
	}
	inForce, _ := d.ledger.apps()
	st, _ := d.loop.Status()
	now := presentOf(inForce, &st)
	if q.App != "" {
		for _, of := range now.open {
			maps.DeleteFunc(of, func(id, _ string) bool { return !strings.HasPrefix(id, q.App+"/") })
		}
	}
	commits := foldHistory(events, now)
	commits = commits[:min(len(commits), q.Limit)]
	for i := range commits {
		commits[i].Subject = d.subject(ctx, &commits[i])
	}
	return commits, nil
}

// ofApp are the lines about an app, and those about the commits that it took.
func ofApp(events []ring.Event, app string) []ring.Event {
	its := map[ring.SHA]bool{}
	for i := range events {
		if events[i].App == app {
			its[events[i].Commit] = true
		}
	}
	return slices.DeleteFunc(events, func(e ring.Event) bool { return e.App != app && (e.App != "" || !its[e.Commit]) })
}

// subject is the first line of a commit's message; "" where the mirror does not have it.
func (d *Daemon) subject(ctx context.Context, c *api.CommitNow) string {
	f := d.follower(c.Source)
	if f == nil {
		return ""
	}
	commit, err := f.git.Commit(ctx, c.Commit)
	if err != nil {
		return ""
	}
	return commit.Subject
}
