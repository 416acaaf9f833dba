package daemon

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/report"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// wireReport makes the reporter where the configuration names a hub. Nothing waits for it.
func (d *Daemon) wireReport() {
	cfg := d.cfg.Report
	if cfg == nil {
		return
	}
	d.reporter = report.New(report.Options{
		Host: d.cfg.Host, Gitring: ring.Release, URL: cfg.URL, TokenFile: cfg.TokenFile, Status: d.status, Tag: api.ReportTag,
		Lines: d.linesAfter, Appended: d.store.Changed, Now: time.Now, Log: d.log,
	})
}

// linesAfter are lines of the journal as a hub is told of them.
func (d *Daemon) linesAfter(ctx context.Context, after int64, limit int) ([]report.Line, error) {
	all, err := d.store.HashedEvents(ctx, store.EventQuery{After: after, Limit: limit})
	out := make([]report.Line, len(all))
	for i, l := range all {
		out[i] = report.Line{Event: l.Event, Hash: hex.EncodeToString(l.Hash[:min(4, len(l.Hash))])}
	}
	return out, err
}
