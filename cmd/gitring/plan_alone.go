package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

// nobodyThere reports whether no daemon serves this host, or none is running. One
// that may not be asked is there, and another host may well be served.
func (g *globals) nobodyThere(err error) bool {
	var away *api.ErrUnreachable
	return g.hostGiven() == "" && errors.As(err, &away) && !errors.Is(away, fs.ErrPermission)
}

// planAlone is the plan of a folder for a host on which nothing of it runs yet,
// read and judged as validate does: all that is refused is told, not one fault for
// each app.
func (g *globals) planAlone(ctx context.Context, dir, source, profile string) (*ring.Changes, error) {
	g.useConfigOfClone(ctx, dir)
	settings, err := g.settings(dir, source)
	if err != nil {
		return nil, err
	}
	judge, err := g.judgeFor(profile)
	if err != nil {
		return nil, err
	}
	tree, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	plan, refusals, notRead := judge.LookFurther(&ring.Commit{Tree: tree}, settings)
	if g.config == "" {
		refusals = withoutSource(refusals, settings.Source)
	}
	plan.Refused = nil // they are told one by one
	changes := reconcile.Plan(reconcile.World{Host: settings.Host}, &plan, g.now())
	changes.Refusals, changes.NotRead = refusals, manifest.SayNotRead(notRead)
	return &changes, nil
}
