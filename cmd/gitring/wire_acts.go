package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

// act carries out what a person does by hand. What a person asks of this host
// goes through the same rules as what a commit asks.
func (d *daemon) act(ctx context.Context, p api.Peer, r api.ActRequest) (api.Acted, error) {
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
		a.Plan, err = d.before(ctx, &a)
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
// needs is on this host, and the rules of today let it pass.
func (d *daemon) before(ctx context.Context, a *reconcile.Act) (*ring.Past, error) {
	w, err := d.loop.World(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot tell what is in force: %w", err)
	}
	past := reconcile.Before(&w.Facts, a.App, a.To)
	if past == nil {
		return nil, nil
	}
	refusals, powers := d.judge.app(&past.App, d.judge.beside(past.App.Source, inForceBeside(&w.Facts, &past.App)))
	if len(refusals) > 0 {
		return nil, inOne(refusals)
	}
	past.App.Powers = powers
	return past, d.atHand(ctx, &past.App)
}

// inForceBeside are an app and those of its source that are in force beside it.
func inForceBeside(facts *ring.Facts, app *ring.App) []ring.App {
	apps := []ring.App{*app}
	for _, name := range sortedKeys(facts.Apps) {
		if f := facts.Apps[name]; name != app.Name && f.App.Source == app.Source {
			apps = append(apps, f.App)
		}
	}
	return apps
}

// atHand says what an app needs that is not on this host: images, and files of
// the commit.
func (d *daemon) atHand(ctx context.Context, app *ring.App) error {
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
		for _, file := range contentsOf(s) {
			if _, err := os.Lstat(filepath.Join(d.store.ContentDir(), file)); err != nil {
				return api.Conflicting("gitring rollback makes a commit that brings it back",
					"cannot undo: files of commit %s that %s/%s mounts are not on this host any more", app.Commit.Short(), app.Name, s.Name)
			}
		}
	}
	return nil
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
func (d *daemon) mayScale(ctx context.Context, a *reconcile.Act) error {
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
		if refusals, _ := d.judge.app(&app, d.judge.beside(app.Source, inForceBeside(&w.Facts, &app))); len(refusals) > 0 {
			return inOne(refusals)
		}
	}
	return nil
}
