package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

// inspect explains one service from what the loop would decide from now, with
// what only the store remembers: the last crash, and the last results of checks.
func (d *Daemon) inspect(ctx context.Context, q api.InspectQuery) (ring.Explained, error) {
	w, err := d.loop.World(ctx)
	if err != nil {
		return ring.Explained{}, err
	}
	id := ring.ID(q.App, q.Service)
	e, ok := reconcile.Explain(w, time.Now().UTC(), id, q.Slot, q.Trace)
	if !ok {
		return e, d.noSuch(q.App, q.Service)
	}
	if err := hasSlot(&e, id, q.Slot); err != nil {
		return ring.Explained{}, err
	}
	crashes, err := d.store.Crashes(ctx, id, 1)
	if err != nil {
		d.log.Warn("could not read the last crash", "err", err)
	}
	if len(crashes) > 0 && (q.Slot == 0 || crashes[0].Slot == q.Slot) {
		e.Crash = &crashes[0]
	}
	for i := range e.Instances {
		in := &e.Instances[i]
		if in.Checks, err = d.lastResults(ctx, in.ID); err != nil {
			d.log.Warn("could not read the results of checks", "instance", in.ID, "err", err)
		}
		if in.Printed, err = d.printedOf(ctx, &w, id, in); err != nil {
			d.log.Warn("could not ask what checks printed", "instance", in.ID, "err", err)
		}
	}
	e.Notes = d.looseOf(ctx, w, q)
	return e, nil
}

// printedOf is what the checks of an instance printed that is not ready.
func (d *Daemon) printedOf(ctx context.Context, w *reconcile.World, id ring.ServiceID, in *ring.ExplainedInstance) ([]ring.CheckPrinted, error) {
	if in.Engine != ring.StateRunning || in.State == ring.SlotReady {
		return nil, nil
	}
	return d.engine.Printed(ctx, in.ID, madeFrom(&w.Facts, id, in.Version))
}

// madeFrom is the service as an instance of a version was made from it; nil where that
// is not known any more.
func madeFrom(f *ring.Facts, id ring.ServiceID, v ring.Version) *ring.Service {
	app, service := id.Split()
	services := f.Apps[app].App.Services
	if good := f.Good[id]; good != nil {
		services = append(slices.Clone(services), good.Service)
	}
	for i := range services {
		if s := &services[i]; s.Name == service && s.Version == v {
			return s
		}
	}
	return nil
}

// usage is what the instances of this host take of it now.
func (d *Daemon) usage(ctx context.Context) (map[string]ring.Usage, error) {
	st, _ := d.loop.Status()
	var ids []string
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			for _, s := range a.Services {
				for _, in := range s.Instances {
					if !in.Started.IsZero() {
						ids = append(ids, in.ID)
					}
				}
			}
		}
	}
	return d.engine.Usage(ctx, ids)
}

// looseOf are the notes on the volumes of one service.
func (d *Daemon) looseOf(ctx context.Context, w reconcile.World, q api.InspectQuery) []string {
	app := w.Facts.Apps[q.App].App
	app.Services = slices.DeleteFunc(slices.Clone(app.Services), func(s ring.Service) bool { return s.Name != q.Service })
	return d.loose(ctx, &app)
}

// loose are the notes on an app's volumes that nobody says whose they are; none where
// the engine does not say.
func (d *Daemon) loose(ctx context.Context, app *ring.App) []string {
	notes, err := d.engine.Loose(ctx, app)
	if err != nil {
		d.log.Warn("could not look at volumes", "app", app.Name, "err", err)
	}
	return notes
}

// subnets are the notes on what an app's subnets take of the host; none where the
// engine does not say.
func (d *Daemon) subnets(ctx context.Context, app *ring.App) []string {
	notes, err := d.engine.Subnets(ctx, app)
	if err != nil {
		d.log.Warn("could not look at subnets", "app", app.Name, "err", err)
	}
	return notes
}

// hasSlot refuses a slot that is neither wanted nor taken: there is nothing to explain.
func hasSlot(e *ring.Explained, id ring.ServiceID, slot int) error {
	if slot == 0 || len(e.Instances) > 0 || e.Wanted == nil || slot <= e.Wanted.Replicas {
		return nil
	}
	return api.NotFound("gitring inspect "+string(id)+" shows those that there are", "%s has no slot %d: %d wanted", id, slot, e.Wanted.Replicas)
}

// lastResults is the newest result of each check of an instance.
func (d *Daemon) lastResults(ctx context.Context, instance string) ([]ring.Result, error) {
	all, err := d.store.Results(ctx, instance)
	newest := map[string]int{}
	var out []ring.Result
	for _, r := range all {
		if i, ok := newest[r.Check]; ok {
			if r.Last.After(out[i].Last) {
				out[i] = r
			}
			continue
		}
		newest[r.Check] = len(out)
		out = append(out, r)
	}
	return out, err
}
