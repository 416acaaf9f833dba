package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// How registries are asked for people: so many at once, and each, and all, no
// longer than this.
const (
	askAtOnce    = 4
	askOneWithin = 20 * time.Second
	askAllWithin = time.Minute
)

// looked is one service in force, and what came of asking for its image.
type looked struct {
	api.ImageNow
	own bool          // the image is this host's own, which no registry is asked about
	no  *ring.Refusal // the registry's, or the host's
	err error         // nobody could say
}

func (d *Daemon) outdated(ctx context.Context, q api.OutdatedQuery) ([]api.ImageNow, error) {
	rows, err := d.lookUp(ctx, q.App, "", q.Tags)
	if err != nil {
		return nil, err
	}
	var out []api.ImageNow
	for _, r := range rows {
		out = append(out, r.ImageNow)
	}
	return out, nil
}

// refresh asks first and changes nothing where any answer is missing: a wish
// that could not be carried out would only keep the next plan waiting.
func (d *Daemon) refresh(ctx context.Context, p api.Peer, r api.RefreshRequest) ([]api.ImageNow, error) {
	rows, err := d.lookUp(ctx, r.App, r.Service, false)
	if err != nil {
		return nil, err
	}
	var out []api.ImageNow
	for _, row := range rows {
		who := "cannot refresh " + row.App + "/" + row.Service
		switch {
		case row.err != nil:
			return nil, api.Away("what runs stays as it is; try again when the registry answers", "%s: %s", who, row.Reason)
		case row.no != nil:
			return nil, api.Conflicting(row.no.Hint, "%s: %s; what runs stays as it is", who, row.Reason)
		case row.Now == "":
			return nil, api.Conflicting("check the tag, and docker login for a private image; gitring outdated tells of every service", "%s: %s", who, row.Reason)
		}
		out = append(out, row.ImageNow)
	}
	err = d.loop.Refresh(ctx, r.App, r.Service, p.Actor(), r.Reason)
	if errors.Is(err, reconcile.ErrNotFound) {
		return nil, d.notInForce(r.App, r.Service)
	}
	return out, err
}

// lookUp asks what the image of each service in force means now, of an app or
// of all for "".
func (d *Daemon) lookUp(ctx context.Context, app, service string, tags bool) ([]looked, error) {
	w, err := d.loop.World(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot tell what is in force: %w", err)
	}
	services := inForce(&w.Facts, app, service)
	if len(services) == 0 && app != "" {
		return nil, d.notInForce(app, service)
	}
	ctx, cancel := context.WithTimeout(ctx, askAllWithin)
	defer cancel()
	asker := d.engine.Asker()
	rows := make([]looked, len(services))
	var g errgroup.Group
	g.SetLimit(askAtOnce)
	for i, s := range services {
		g.Go(func() error {
			rows[i] = lookUpOne(ctx, asker, s)
			if tags && !rows[i].own {
				lookUpTags(ctx, asker, &rows[i].ImageNow)
			}
			return nil
		})
	}
	return rows, g.Wait()
}

// inForce are services of the plans in force, by app and name. The image of a front is
// gitring's own, of which no registry knows.
func inForce(f *ring.Facts, app, service string) (out []serviceOf) {
	for name, row := range f.Apps {
		for _, s := range row.App.Services {
			if (app == "" || name == app) && (service == "" || s.Name == service) && !row.Leaving && s.FrontOf == "" {
				out = append(out, serviceOf{name, s})
			}
		}
	}
	slices.SortFunc(out, func(a, b serviceOf) int {
		return cmp.Or(cmp.Compare(a.app, b.app), cmp.Compare(a.Name, b.Name))
	})
	return out
}

type serviceOf struct {
	app string
	ring.Service
}

// mostTags is how many newer tags of one image are told.
const mostTags = 20

// lookUpTags finds newer tags of the shape that the image has. A word, such as stable, has none.
func lookUpTags(ctx context.Context, asker *runtime.Asker, row *api.ImageNow) {
	tag := ring.ParseImage(row.Image).Tag
	if !strings.ContainsAny(tag, "0123456789") {
		return
	}
	all, err := asker.Tags(ctx, row.Image)
	if err != nil {
		row.TagsReason = err.Error()
		return
	}
	newer := ring.NewerTags(tag, all)
	row.Tags = newer[:min(len(newer), mostTags)]
}

// lookUpOne goes the way of a resolve, so that what it says is what a refresh
// would pin.
func lookUpOne(ctx context.Context, asker *runtime.Asker, s serviceOf) looked {
	row := looked{ImageNow: api.ImageNow{App: s.app, Service: s.Name, Image: s.Spec.Image, Pinned: s.Pin.Digest()}}
	if runtime.Fixed(s.Spec.Image) {
		row.Now, row.Reason = row.Pinned, "the commit names its digest"
		return row
	}
	ctx, cancel := context.WithTimeout(ctx, askOneWithin)
	defer cancel()
	pin, err := asker.Resolve(ctx, ring.Action{
		Kind: ring.DoResolve, App: s.app, Service: s.Name, Image: s.Spec.Image,
		Platform: s.Spec.Platform, PullPolicy: s.Spec.PullPolicy, Want: &s.Service,
	})
	switch {
	case errors.As(err, &row.no):
		row.Reason = row.no.Says
	case errors.Is(err, context.DeadlineExceeded):
		row.err, row.Reason = err, "its registry did not answer in time"
	case err != nil:
		row.err, row.Reason = err, err.Error()
	case pin.Note != "" && pin.Image != pin.Digest(): // a registry's image that stays for want of an answer
		row.Reason = pin.Note
	default:
		row.Now, row.Newer, row.Reason = pin.Digest(), pin.Digest() != row.Pinned, pin.Note
		row.own = pin.Note != "" // what a registry has is named with it
	}
	return row
}
