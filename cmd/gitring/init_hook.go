package main

import (
	"context"
	"fmt"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/setup"
)

// initHook writes the hook that keeps from being pushed what hosts would refuse.
func (g *globals) initHook(ctx context.Context, f initFlags) error {
	c, err := checkout.Open(ctx, f.repo, g.person())
	if err != nil {
		return err
	}
	by := checkout.Trustees{Source: f.Source, Branch: f.Branch, AllowedSigners: f.allowedSigners, OpenPGPKeys: f.openPGPKeys}
	file := g.config
	if file == "" && !by.ByHand() {
		file = configFromEnv()
	}
	file, changed, err := setup.WriteHook(ctx, c, by, file, g.out)
	if err != nil {
		return err
	}
	if !changed {
		g.notice("nothing was changed: %s is in place", file)
		return nil
	}
	s := g.screen()
	s.Line(0, " ", screen.Text("wrote"), screen.Text(file))
	_, err = fmt.Fprint(g.out, s)
	return err
}
