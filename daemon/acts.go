package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

// act carries out what a person does by hand. What a person asks of this host
// goes through the same rules as what a commit asks.
func (d *Daemon) act(ctx context.Context, p api.Peer, r api.ActRequest) (api.Acted, error) {
	lasts, err := r.Lasts()
	if err != nil {
		return api.Acted{}, err
	}
	a := reconcile.Act{
		Verb: reconcile.Verb(r.Verb), App: r.App, Service: r.Service, Actor: p.Actor(), Reason: r.Reason,
		For: lasts, To: r.To, Replicas: r.Replicas,
	}
	switch a.Verb {
	case reconcile.Undo:
		var done func()
		a.Plan, done, err = d.before(ctx, &a)
		defer done()
	case reconcile.Scale:
		err = d.mayScale(ctx, &a)
	}
	if err != nil {
		return api.Acted{}, err
	}
	done, err := d.loop.Do(ctx, a)
	var unfit *reconcile.Unfit
	switch {
	case errors.Is(err, reconcile.ErrNotFound):
		return api.Acted{}, d.noSuch(r.App, r.Service)
	case errors.As(err, &unfit):
		return api.Acted{}, api.Conflicting(unfit.Hint, "cannot %s: %s", r.Verb, unfit.Says)
	case err != nil:
		return api.Acted{}, err
	}
	return api.Acted{Says: done.Says, At: done.At, Until: done.Until}, nil
}

// before is the plan that an undo brings back, nil when there is none: what it
// needs is on this host, and the rules of today let it pass. Its files stay at least
// until done is called, which is never nil.
func (d *Daemon) before(ctx context.Context, a *reconcile.Act) (past *ring.Past, done func(), err error) {
	done = func() {}
	w, err := d.loop.World(ctx)
	if err != nil {
		return nil, done, fmt.Errorf("cannot tell what is in force: %w", err)
	}
	if past = reconcile.Before(&w.Facts, a.App, a.To); past == nil {
		return nil, done, nil
	}
	refusals, powers := d.judge.App(&past.App, d.judge.Beside(past.App.Source, inForceBeside(&w.Facts, &past.App)))
	if len(refusals) > 0 {
		return nil, done, admission.InOne(refusals)
	}
	past.App.Powers = powers
	if err := d.imagesAtHand(ctx, &past.App); err != nil {
		return nil, done, err
	}
	held, err := d.filesAtHand(ctx, &past.App)
	if err != nil {
		return nil, done, err
	}
	return past, held, nil
}

// inForceBeside are an app and those of its source that are in force beside it.
func inForceBeside(facts *ring.Facts, app *ring.App) []ring.App {
	apps := []ring.App{*app}
	for _, name := range slices.Sorted(maps.Keys(facts.Apps)) {
		if f := facts.Apps[name]; name != app.Name && f.App.Source == app.Source {
			apps = append(apps, f.App)
		}
	}
	return apps
}

// imagesAtHand says which image an app needs that is not on this host.
func (d *Daemon) imagesAtHand(ctx context.Context, app *ring.App) error {
	for i := range app.Services {
		s := &app.Services[i]
		here, err := d.engine.ImageHere(ctx, s.Pin.Image)
		if err != nil {
			return err
		}
		if !here {
			return api.Conflicting("gitring rollback makes a commit that brings it back, and pulls it; prune.images.keep says how many plans keep theirs",
				"cannot undo: image %s of %s/%s is not on this host any more", s.Pin.Image, app.Name, s.Name)
		}
	}
	return nil
}

// filesAtHand has the files that an app mounts on this host, until done is called, or
// says why they are not. It asks the mirror, never the remote.
func (d *Daemon) filesAtHand(ctx context.Context, app *ring.App) (done func(), err error) {
	done, err = d.contentStore.back(ctx, app, func(ctx context.Context, sha ring.SHA) (contents, error) {
		f := d.follower(app.Source)
		if f == nil {
			return nil, fmt.Errorf("source %s is not followed any more", app.Source)
		}
		values, err := d.env.read()
		if err != nil {
			return nil, err
		}
		return f.contentsAt(ctx, sha, values)
	})
	switch {
	case errors.Is(err, errOther):
		return nil, api.Conflicting("gitring rollback makes a commit that brings it back, with the values of today",
			"cannot undo: commit %s mounts files that are not on this host any more, because a value of the host's env folder or the configuration changed since", app.Commit.Short())
	case err != nil:
		return nil, api.Conflicting("gitring rollback makes a commit that brings it back",
			"cannot undo: files that commit %s mounts are not on this host any more: %v", app.Commit.Short(), err)
	}
	return done, nil
}

// contentsOf are the contents that a service mounts, below the folder of contents.
func contentsOf(s *ring.Service) (out []string) {
	for _, m := range s.Spec.Mounts {
		switch m.Kind {
		case ring.MountContent:
			out = append(out, filepath.Join(m.Source, m.File))
		case ring.MountSeed:
			out = append(out, m.Seed)
		}
	}
	if s.Reload != nil {
		for _, hash := range s.Reload.Live {
			out = append(out, hash)
		}
	}
	return out
}

// mayScale holds a person's count to the rules that a commit's is held to.
func (d *Daemon) mayScale(ctx context.Context, a *reconcile.Act) error {
	w, err := d.loop.World(ctx)
	if err != nil {
		return fmt.Errorf("cannot tell what is in force: %w", err)
	}
	app := w.Facts.Apps[a.App].App
	app.Services = slices.Clone(app.Services)
	for i := range app.Services {
		s := &app.Services[i]
		if s.Name != a.Service || a.Replicas <= s.Replicas {
			continue
		}
		s.Replicas = a.Replicas
		if refusals, _ := d.judge.App(&app, d.judge.Beside(app.Source, inForceBeside(&w.Facts, &app))); len(refusals) > 0 {
			return admission.InOne(refusals)
		}
	}
	return nil
}
