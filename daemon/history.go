package daemon

import (
	"cmp"
	"context"
	"slices"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/history"
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
	kinds := slices.DeleteFunc(slices.Clone(history.Kinds), func(k string) bool { return k == ring.JobSucceeded })
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
	inForce, _ := d.ledger.apps()
	st, _ := d.loop.Status()
	commits := history.Commits(events, q.App, history.PresentOf(inForce, &st))
	commits = commits[:min(len(commits), q.Limit)]
	for i := range commits {
		commits[i].Subject = d.subject(ctx, &commits[i])
		commits[i].Signer = cmp.Or(commits[i].Signer, signerOf(inForce, &st, &commits[i]))
	}
	return commits, nil
}

// signerOf is who signed a commit that is trusted or in force, where the journal does not say
// it: that begins anew with a lost state, and the anchor does not. "" where nobody knows.
func signerOf(inForce map[string]ring.InForce, st *ring.Status, c *api.CommitNow) string {
	for i := range st.Sources {
		if src := &st.Sources[i]; src.Name == c.Source && cmp.Or(src.Commit, src.Trusted) == c.Commit {
			return src.Signer
		}
	}
	for name := range inForce {
		if of := inForce[name]; of.App.Source == c.Source && of.App.Commit == c.Commit {
			return of.Signer
		}
	}
	return ""
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
