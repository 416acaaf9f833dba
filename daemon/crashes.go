package daemon

import (
	"context"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// crashes are what is recorded of an app or a service, also of one that is not
// in force any more.
func (d *Daemon) crashes(ctx context.Context, q api.CrashQuery) ([]api.CrashGroup, error) {
	of := ring.ServiceID(q.App)
	if q.Service != "" {
		of = ring.ID(q.App, q.Service)
	}
	all, err := d.store.CrashRecords(ctx, store.RecordQuery{Of: of, Logs: true})
	if err != nil && len(all) == 0 {
		return nil, err
	}
	if err != nil {
		d.log.Warn("could not read every crash record", "err", err)
	}
	if len(all) == 0 && q.App != "" && !d.here(q.App, q.Service) {
		return nil, d.noSuch(q.App, q.Service)
	}
	return api.GroupCrashes(all, q.Logs), nil
}

// here reports whether the status tells of an app, or of a service of it.
func (d *Daemon) here(app, service string) bool {
	st, _ := d.loop.Status()
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			if a.Name != app {
				continue
			}
			if service == "" {
				return true
			}
			for _, s := range a.Services {
				if s.Name == service {
					return true
				}
			}
		}
	}
	return false
}
