package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

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

// actVerbs are what a person can do to an app, and to a service, by hand.
var actVerbs = []reconcile.Verb{
	reconcile.HoldIt, reconcile.Release, reconcile.Undo, reconcile.Retry, reconcile.Pause, reconcile.Resume, reconcile.Promote, reconcile.Abort,
	reconcile.Restart, reconcile.Scale, reconcile.RunNow,
}

// acts decides each act as if somebody asked for it, and carries out none.
func (d *Daemon) acts(ctx context.Context, q api.ActsQuery) ([]api.ActNow, error) {
	w, err := d.loop.World(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot tell what is in force: %w", err)
	}
	var out []api.ActNow
	for _, verb := range actVerbs {
		if q.Service != "" && verb == reconcile.Undo {
			continue // an undo is of a whole app
		}
		a := reconcile.Act{Verb: verb, App: q.App, Service: q.Service, Actor: "-", Reason: "-", For: time.Hour, To: q.To}
		now := api.ActNow{Verb: string(verb)}
		if verb == reconcile.Undo {
			now.Back, err = d.wouldUndo(ctx, w, &a)
		}
		if err == nil {
			_, err = reconcile.Carry(w, a, time.Now())
		}
		var unfit *reconcile.Unfit
		var answer *api.Error
		var refusal *ring.Refusal
		switch {
		case errors.Is(err, reconcile.ErrNotFound):
			return nil, d.noSuch(q.App, q.Service)
		case errors.As(err, &unfit):
			now.Why, now.Hint, now.Back = unfit.Says, unfit.Hint, nil
		case errors.As(err, &answer):
			now.Why, now.Hint, now.Back = strings.TrimPrefix(answer.Message, "cannot undo: "), answer.Hint, nil
		case errors.As(err, &refusal):
			now.Why, now.Hint, now.Back = refusal.Says, refusal.Hint, nil
		case err != nil:
			return nil, err
		}
		out, err = append(out, now), nil
	}
	return out, nil
}

// wouldUndo is what an undo would bring back; nil where there is no earlier plan, of which
// Carry tells more.
func (d *Daemon) wouldUndo(ctx context.Context, w reconcile.World, a *reconcile.Act) (*api.Earlier, error) {
	past, done, err := d.before(ctx, a)
	if err != nil {
		return nil, err
	}
	defer done()
	if a.Plan = past; past == nil {
		return nil, nil
	}
	changes := reconcile.WouldUndo(w, &past.App, time.Now())
	for i := range changes.Services {
		for j := range changes.Services[i].Fields {
			changes.Services[i].Fields[j].Values = nil
		}
	}
	return &api.Earlier{Commit: past.App.Commit, Subject: past.Subject, Signer: past.Signer, Completed: past.At, Changes: changes}, nil
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
