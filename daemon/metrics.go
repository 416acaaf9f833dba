package daemon

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/metrics"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// meters are what is counted since this daemon was made. The journal is read when somebody
// asks, so that nothing runs where nobody does.
type meters struct {
	counts metrics.Counts

	carrying sync.Mutex // guards carried
	carried  metrics.Carried

	mu      sync.Mutex // guards what follows
	journal *metrics.Journal
	after   int64 // the last line that was counted
}

// wireMeters has the journal counted from its present end.
func (d *Daemon) wireMeters(ctx context.Context) error {
	newest, err := d.store.Events(ctx, store.EventQuery{Desc: true, Limit: 1})
	if err != nil {
		return err
	}
	d.meters.journal = metrics.NewJournal()
	if len(newest) == 1 {
		d.meters.after = newest[0].Seq
	}
	for i := range d.cfg.Sources {
		s := &d.cfg.Sources[i]
		for _, result := range []string{metrics.FetchOK, metrics.FetchFailed} {
			d.meters.counts.Begin(metrics.Fetches, s.Name, result)
		}
		if !hears(d.cfg, s) {
			continue
		}
		for _, result := range api.HookResults {
			d.meters.counts.Begin(metrics.Webhooks, s.Name, result)
		}
	}
	return nil
}

// countFront adds up what a front counts.
func (d *Daemon) countFront(at ring.FrontAt, seen ring.FrontSeen) {
	d.meters.carrying.Lock()
	defer d.meters.carrying.Unlock()
	d.meters.carried.Hear(at.Container, at.Service, &seen)
}

// hears reports whether the forge of a source can knock here.
func hears(cfg *config.Config, s *config.SourceConfig) bool {
	return cfg.Listen.HTTP != "" && s.Webhook != nil
}

// countFetch counts a look at a remote.
func (d *Daemon) countFetch(source string, err error) {
	result := metrics.FetchOK
	if err != nil {
		result = metrics.FetchFailed
	}
	d.meters.counts.Add(metrics.Fetches, source, result)
}

func (d *Daemon) countLook(look, decide time.Duration) {
	d.meters.counts.Observe(metrics.LookTook, look.Seconds())
	d.meters.counts.Observe(metrics.DecideTook, decide.Seconds())
}

func (d *Daemon) countRequest(route string, code int) {
	d.meters.counts.Add(metrics.APIRequests, route, strconv.Itoa(code))
}

// metricsPage serves the page at every door that has one.
func (d *Daemon) metricsPage() http.Handler {
	return api.Metrics(d.scrape, metrics.ContentType)
}

// scrape is one page. What cannot be read is left out and logged: the rest tells what is wrong.
func (d *Daemon) scrape(ctx context.Context) (string, error) {
	st, err := d.status(ctx)
	if err != nil {
		return "", err
	}
	s := metrics.Scrape{Now: time.Now().UTC(), Status: st, Counts: []*metrics.Counts{&d.meters.counts}}
	if s.Outbox, err = d.outbox(ctx); err != nil {
		d.log.Warn("could not count what has not arrived", "err", err)
	}
	if s.Expiry, err = d.expiries(ctx, s.Now); err != nil {
		d.log.Warn("could not tell when keys expire", "err", err)
	}
	if s.Succeeded, err = d.succeeded(ctx, &st); err != nil {
		d.log.Warn("could not tell when jobs succeeded", "err", err)
	}
	s.Fronts = d.frontsOf(ctx)
	d.meters.mu.Lock()
	defer d.meters.mu.Unlock()
	if err := d.countJournal(ctx); err != nil {
		return "", err // a counter that stands still looks like a quiet host
	}
	d.meters.journal.Know(&st)
	s.Journal = d.meters.journal
	d.meters.carrying.Lock()
	defer d.meters.carrying.Unlock()
	s.Carried = &d.meters.carried
	return s.Text(), nil
}

// frontsOf are the fronts of services in force, with what each said last.
func (d *Daemon) frontsOf(ctx context.Context) (out []metrics.Front) {
	within, cancel := context.WithTimeout(ctx, time.Second) // the loop may be at a look
	defer cancel()
	w, err := d.loop.World(within)
	if err != nil {
		return nil
	}
	for _, f := range frontsInForce(&w.Facts) {
		one := metrics.Front{Source: w.Facts.Apps[f.app].App.Source, App: f.app, Service: f.service.Name}
		if in := containerOf(&w, f, w.Facts.Fronts[f.id()].Front); in != nil {
			if seen, answers := w.Fronts[in.ID]; answers {
				one.Seen = &seen
			}
		}
		out = append(out, one)
	}
	return out
}

// countJournal counts the lines that came since the scrape before. The lock is held.
func (d *Daemon) countJournal(ctx context.Context) error {
	for {
		events, err := d.store.Events(ctx, store.EventQuery{After: d.meters.after})
		if err != nil {
			return fmt.Errorf("cannot count the journal: %w", err)
		}
		if len(events) == 0 {
			return nil
		}
		for _, e := range events {
			d.meters.journal.Count(e)
			d.meters.after = e.Seq
		}
	}
}

// expiries are when the first key of each source expires that still counts.
func (d *Daemon) expiries(ctx context.Context, now time.Time) (map[string]time.Time, error) {
	all, err := d.trust(ctx, "")
	first := map[string]time.Time{}
	for _, t := range all {
		for _, k := range t.Signers {
			if k.Until.IsZero() || k.Revoked != "" || k.Refused != "" || !k.Until.After(now) {
				continue
			}
			if was := first[t.Source]; was.IsZero() || k.Until.Before(was) {
				first[t.Source] = k.Until
			}
		}
	}
	return first, err
}

// lookedAt is how many runs of a job are read for the last that succeeded.
const lookedAt = 50

// succeeded are when jobs last succeeded, as far as their runs are kept.
func (d *Daemon) succeeded(ctx context.Context, st *ring.Status) (map[ring.ServiceID]time.Time, error) {
	last := map[ring.ServiceID]time.Time{}
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			for _, sv := range a.Services {
				if !sv.Kind.Ends() {
					continue
				}
				id := ring.ID(a.Name, sv.Name)
				runs, err := d.runs(ctx, api.JobQuery{Limit: lookedAt}, id, nil)
				if err != nil {
					return last, err
				}
				for _, r := range runs {
					if r.State == ring.RunSucceeded && r.Ended.After(last[id]) {
						last[id] = r.Ended
					}
				}
			}
		}
	}
	return last, nil
}
