package daemon

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/api/pages"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/issuer"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// sessionKey is where the key of browsers' sessions lies, in the state's folder.
const sessionKey = "session.key"

// openAPI listens for people and programs where the configuration names an address.
func (d *Daemon) openAPI(socket *api.Socket) error {
	cfg := d.cfg.Listen.API
	if cfg == nil {
		return nil
	}
	key, err := api.LoadSessionKey(filepath.Join(d.cfg.State, sessionKey))
	if err != nil {
		return err
	}
	d.tokens = api.NewTokens(d.cfg.API.Tokens, gitsync.CheckTrustFile, time.Now)
	if says := d.tokens.Trouble(); says != "" {
		d.log.Warn("could not take every token", "err", says)
	}
	o := api.WebOptions{
		Tokens: d.tokens, OIDC: OIDC(d.cfg.API.OIDC, cfg), SessionKey: key, Address: cfg.Address, URL: cfg.URL, Hosts: cfg.Hosts, Now: time.Now, Log: d.log,
	}
	var web *api.Web
	o.Pages = pages.New(pages.Options{
		Answers: func(v api.Viewer) pages.Answers { return socket.Inside(v) },
		Viewer:  func(r *http.Request) (api.Viewer, bool) { return api.ViewerOf(r.Context()) },
		SignIn: func(w http.ResponseWriter, r *http.Request, token string) error {
			err := web.SignIn(w, r, token)
			if t, ok := d.tokens.Of(strings.TrimSpace(token)); err == nil && ok {
				d.log.Info("signed in", "actor", "token/"+t.Name, "address", r.RemoteAddr)
			}
			return err
		},
		OIDC:    PagesOIDC(o.OIDC, &web),
		SignOut: func(w http.ResponseWriter) { web.SignOut(w) },
		Now:     time.Now,
	})
	if cfg.TLS != nil {
		o.CertFile, o.KeyFile = cfg.TLS.CertFile, cfg.TLS.KeyFile
	}
	if web, err = api.NewWeb(&socket.Table, o); err != nil {
		return err
	}
	l, err := net.Listen("tcp", cfg.Address)
	if err != nil {
		return &ring.HostError{
			Says: fmt.Sprintf("cannot serve the api: %v", err),
			Hint: "free the address or give listen.api another one",
		}
	}
	d.doors = append(d.doors, door{l, web.Run})
	return nil
}

// lines are those of the journal, with the beginnings of their hashes.
func (d *Daemon) lines(ctx context.Context, q api.EventQuery) ([]api.Line, error) {
	of := store.EventQuery{After: q.After, App: q.App, Limit: q.Limit}
	if q.Last > 0 {
		of = store.EventQuery{App: q.App, Limit: q.Last, Desc: true}
	}
	all, err := d.store.HashedEvents(ctx, of)
	if q.Last > 0 {
		slices.Reverse(all)
	}
	out := make([]api.Line, len(all))
	for i, l := range all {
		out[i] = api.Line{Event: l.Event, Hash: hex.EncodeToString(l.Hash[:min(4, len(l.Hash))])}
	}
	return out, err
}

// OIDC is the issuer that people sign in with at a listener; nil is none. Nobody is dialled before
// somebody signs in.
func OIDC(o *config.OIDCConfig, l *config.ListenAPI) *api.OIDC {
	if o == nil {
		return nil
	}
	roles := map[string]api.Scopes{}
	for row, names := range o.Roles {
		roles[row], _ = api.ParseScopes(strings.Join(names, ",")) // config has judged them
	}
	return &api.OIDC{Name: o.Issuer, Roles: roles, Issuer: issuer.New(issuer.Options{
		URL: o.Issuer, ClientID: o.ClientID, SecretFile: o.ClientSecretFile, Scopes: o.Scopes, GroupsClaim: o.GroupsClaim,
		Redirect: api.OIDCHome(l.URL, l.Address) + api.OIDCBackPath, Now: time.Now,
	})}
}

// PagesOIDC is how pages sign in with an issuer. web is there when somebody does.
func PagesOIDC(o *api.OIDC, web **api.Web) *pages.SignInWith {
	if o == nil {
		return nil
	}
	return &pages.SignInWith{
		Issuer: o.Name,
		Begin: func(w http.ResponseWriter, r *http.Request, then string) (string, error) {
			return (*web).BeginSignIn(w, r, then)
		},
		Finish: func(w http.ResponseWriter, r *http.Request) (string, error) { return (*web).FinishSignIn(w, r) },
	}
}
