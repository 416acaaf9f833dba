package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/api/pages"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/daemon"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/hub"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/store"
)

// hubConns is how many connections a hub has at once: each host may keep one.
const hubConns = 512

// gcPercent is by how much the memory of a hub may grow before it is swept.
const gcPercent = 25

func hubCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "hub",
		Short: "Show many hosts on one page, as they report themselves",
		Long: "hub takes the reports of hosts, and serves a page of all of them, the pages of each,\n" +
			"and an API. It reads a configuration of its own, " + config.DefaultHubFile + ". It holds\n" +
			"no key and no address of a host, and dials nobody: it can act on none of them.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := servesOn(runtime.GOOS); err != nil {
				return err
			}
			return g.hub(cmd.Context())
		},
	}
}

// hubPath is --config, GITRING_CONFIG or the hub's default.
func (g *globals) hubPath() string {
	return cmp.Or(g.config, configFromEnv(), config.DefaultHubFile)
}

func (g *globals) hub(ctx context.Context) error {
	cfg, err := config.LoadHub(g.hubPath())
	if err != nil {
		return err
	}
	// What hosts tell is garbage as soon as it is on disk, and what stays is small.
	debug.SetGCPercent(gcPercent)
	log := newLog(g)
	release, err := store.LockFolder(cfg.State)
	if err != nil {
		return err
	}
	defer release()
	door, err := openHub(cfg, log)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	if err := sdNotify(running, notifySocket(), "READY=1"); err != nil {
		log.Error("could not say that the hub is ready", "err", err)
	}
	log.Info("started", "version", ring.Release, "address", door.listener.Addr().String(), "state", cfg.State)
	if err := door.run(running); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("cannot go on: %w", err)
	}
	log.Info("stopped")
	return nil
}

// hubDoor is a hub, and its only listener.
type hubDoor struct {
	hub      *hub.Hub
	web      *api.Web
	listener net.Listener
}

// openHub listens, and starts nothing.
func openHub(cfg *config.Hub, log *slog.Logger) (*hubDoor, error) {
	at := cfg.Listen.API
	tokens := api.NewTokens(cfg.API.Tokens, gitsync.CheckTrustFile, time.Now)
	if says := tokens.Trouble(); says != "" {
		log.Warn("could not take every token", "err", says)
	}
	key, err := api.LoadSessionKey(filepath.Join(cfg.State, "session.key"))
	if err != nil {
		return nil, err
	}
	d, oidc := &hubDoor{}, daemon.OIDC(cfg.API.OIDC, at)
	if d.hub, err = hub.Open(hub.Options{State: cfg.State, Tokens: tokens, Now: time.Now, Log: log}); err != nil {
		return nil, err
	}
	o := api.WebOptions{
		Tokens: tokens, OIDC: oidc, SessionKey: key, Address: at.Address, URL: at.URL, Hosts: at.Hosts, Conns: hubConns, Now: time.Now, Log: log,
		Pages: d.hub.Pages(pages.FleetOptions{
			Viewer: func(r *http.Request) (api.Viewer, bool) { return api.ViewerOf(r.Context()) },
			SignIn: func(w http.ResponseWriter, r *http.Request, token string) error {
				err := d.web.SignIn(w, r, token)
				if t, ok := tokens.Of(strings.TrimSpace(token)); err == nil && ok {
					log.Info("signed in", "actor", "token/"+t.Name, "address", r.RemoteAddr)
				}
				return err
			},
			OIDC:    daemon.PagesOIDC(oidc, &d.web),
			SignOut: func(w http.ResponseWriter) { d.web.SignOut(w) },
		}),
	}
	if at.TLS != nil {
		o.CertFile, o.KeyFile = at.TLS.CertFile, at.TLS.KeyFile
	}
	table := api.NewHub(d.hub.Calls())
	table.Count(d.hub.Count)
	if d.web, err = api.NewWeb(table, o); err != nil {
		return nil, err
	}
	if d.listener, err = net.Listen("tcp", at.Address); err != nil {
		return nil, &ring.HostError{Says: fmt.Sprintf("cannot serve the hub: %v", err), Hint: "free the address or give listen.api another one"}
	}
	return d, nil
}

func (d *hubDoor) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.hub.Run(ctx) })
	g.Go(func() error { return d.web.Run(ctx, d.listener) })
	return g.Wait()
}

// checkedHub is what "config check -o json" prints of a hub's configuration.
type checkedHub struct {
	File    string `json:"file"`
	Address string `json:"address"`
	Tokens  string `json:"tokens"`
}

func (g *globals) hubCheck(file string) error {
	cfg, err := config.LoadHub(file)
	if err != nil {
		return err
	}
	if g.machine() {
		return g.encode(checkedHub{file, cfg.Listen.API.Address, cfg.API.Tokens})
	}
	s := g.screen()
	s.Line(0, " ", screen.Text(file+":"), screen.Painted("nothing is wrong", screen.Green))
	s.Line(2, ", ", screen.Text("a hub at "+cfg.Listen.API.Address), screen.Text("tokens in "+cfg.API.Tokens))
	_, err = fmt.Fprint(g.out, s)
	return err
}
