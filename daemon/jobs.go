package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// jobs are the jobs and cron jobs in force, each with its runs. What is under way
// is read before what has ended: a run that ends in between is in both, never in
// none.
func (d *Daemon) jobs(ctx context.Context, q api.JobQuery) ([]api.JobNow, error) {
	w, err := d.loop.World(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot tell what is under way: %w", err)
	}
	active := reconcile.UnderWay(&w.Facts)
	st, _ := d.loop.Status()
	var out []api.JobNow
	known := q.App == ""
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			for _, s := range a.Services {
				mine := (q.App == "" || a.Name == q.App) && (q.Service == "" || s.Name == q.Service)
				known = known || mine
				if !mine || !s.Kind.Ends() {
					continue
				}
				j := api.JobNow{App: a.Name, Service: s.Name, Kind: s.Kind, Phase: s.Phase, Reason: s.Reason, Next: s.NextRun, Runs: []ring.Run{}}
				if c := cronOf(&w.Facts, a.Name, s.Name); c != nil && s.Kind == ring.CronK {
					now := time.Now()
					j.Schedule, j.Timezone = c.Schedule, c.Timezone
					j.Due = reconcile.DueTimes(c, now, now.Add(dueWithin), dueAtMost)
				}
				if j.Runs, err = d.runs(ctx, q, ring.ID(a.Name, s.Name), active); err != nil {
					return nil, err
				}
				if q.Run == "" || len(j.Runs) > 0 {
					out = append(out, j)
				}
			}
		}
	}
	switch {
	case !known:
		return nil, d.noSuch(q.App, q.Service)
	case q.Service != "" && len(out) == 0:
		return nil, api.NotFound("gitring jobs lists them", "%s/%s is no job", q.App, q.Service)
	case q.Run != "" && len(out) == 0:
		return nil, api.NotFound("gitring jobs lists those that are kept", "no run %s is known", q.Run)
	}
	return out, nil
}

// How far ahead a cron job is told to be due, and how often at most.
const (
	dueWithin = 7 * 24 * time.Hour
	dueAtMost = 50
)

// cronOf is when a cron job in force runs; nil for another service.
func cronOf(facts *ring.Facts, app, service string) *ring.Cron {
	services := facts.Apps[app].App.Services
	i := slices.IndexFunc(services, func(s ring.Service) bool { return s.Name == service })
	if i < 0 {
		return nil
	}
	return services[i].Cron
}

// runs are those of a service: under way, then ended.
func (d *Daemon) runs(ctx context.Context, q api.JobQuery, id ring.ServiceID, active []ring.Run) ([]ring.Run, error) {
	out := []ring.Run{}
	for _, r := range active {
		if r.ID == id {
			out = append(out, r)
		}
	}
	limit := q.Limit
	if q.Run != "" {
		limit = 0 // it may be any
	}
	ended, err := d.store.RunRecords(ctx, store.RecordQuery{Of: id, Limit: limit, Logs: q.Logs, Ran: q.Logs})
	var some *store.LeftOut
	if errors.As(err, &some) {
		d.log.Warn("could not read every run", "service", id, "err", err)
	} else if err != nil {
		return nil, err
	}
	out = append(out, ended...)
	if q.Run == "" {
		return out, nil
	}
	return slices.DeleteFunc(out, func(r ring.Run) bool { return !strings.HasPrefix(r.Instance, q.Run) }), nil
}
