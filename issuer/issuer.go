package issuer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/secrets"
)

const (
	// within bounds each step, with all that it asks.
	within = 5 * time.Second
	// knownFor is how long what an issuer says of itself counts, and awayFor how long nobody asks one
	// again that did not answer.
	knownFor = time.Hour
	awayFor  = 5 * time.Second
	// longestSecret is far above any secret of a client.
	longestSecret = 4 << 10
)

// Options say which issuer is asked, and as whom.
type Options struct {
	URL        string
	ClientID   string
	SecretFile string   // "" is a client without a secret: PKCE alone
	Scopes     []string // besides openid
	// GroupsClaim is where the issuer tells of groups; "" where nobody asks for them.
	GroupsClaim string
	// Redirect is the one address that the issuer sends people back to.
	Redirect string
	Now      func() time.Time
}

// Issuer is one that people sign in with. It dials nobody before the first of them does.
type Issuer struct {
	Options
	client *http.Client
	turn   chan struct{} // holds one value: who has it may use what follows
	found  *found
	away   error
	at     time.Time // of found or away
}

// found is what an issuer says of itself.
type found struct {
	provider *oidc.Provider
	oauth    oauth2.Config
}

// New starts nothing.
func New(o Options) *Issuer {
	return &Issuer{Options: o, client: newClient(), turn: make(chan struct{}, 1)}
}

// Begin is the address at which a person signs in. state, nonce and verifier are fresh secrets of
// the caller, which Finish is handed again.
func (i *Issuer) Begin(ctx context.Context, state, nonce, verifier string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	f, err := i.discover(ctx)
	if err != nil {
		return "", because(err)
	}
	return f.oauth.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), nil
}

// Finish is who signed in. A code counts once, at the issuer.
func (i *Issuer) Finish(ctx context.Context, code, nonce, verifier string) (api.Person, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, i.client), within)
	defer cancel()
	f, err := i.discover(ctx)
	if err != nil {
		return api.Person{}, because(err)
	}
	config := f.oauth
	if config.ClientSecret, err = i.secret(); err != nil {
		return api.Person{}, err
	}
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		return api.Person{}, because(err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return api.Person{}, errors.New("it gave no id token")
	}
	id, err := f.provider.Verifier(&oidc.Config{ClientID: i.ClientID, Now: i.Now}).Verify(ctx, raw)
	if err != nil {
		return api.Person{}, because(err)
	}
	person, err := i.person(ctx, f.provider, id, token, nonce)
	return person, because(err)
}

// discover asks the issuer about itself, once for all who sign in meanwhile.
func (i *Issuer) discover(ctx context.Context) (*found, error) {
	select {
	case i.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-i.turn }()
	since := i.Now().Sub(i.at)
	switch {
	case i.found != nil && since >= 0 && since < knownFor:
		return i.found, nil
	case i.away != nil && since >= 0 && since < awayFor:
		return nil, i.away
	}
	i.found, i.away = i.ask(ctx)
	i.at = i.Now()
	return i.found, i.away
}

// ask is for all who sign in meanwhile and a while longer, so it goes on where the one who began it leaves.
func (i *Issuer) ask(ctx context.Context) (*found, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.URL)
	if err != nil {
		return nil, err
	}
	var said struct {
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&said); err != nil {
		return nil, err
	}
	endpoint := provider.Endpoint()
	for _, at := range []string{endpoint.AuthURL, endpoint.TokenURL, said.Keys, provider.UserInfoEndpoint()} {
		if at != "" && !safe(i.URL, at) {
			return nil, fmt.Errorf("it names an address that is not https: %q", at)
		}
	}
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if len(said.Methods) > 0 && !slices.Contains(said.Methods, "client_secret_basic") || i.SecretFile == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &found{provider, oauth2.Config{
		ClientID: i.ClientID, Endpoint: endpoint, RedirectURL: i.Redirect, Scopes: append([]string{oidc.ScopeOpenID}, i.Scopes...),
	}}, nil
}

// safe reports whether an address that an issuer names may be asked: by https, or on this machine
// where the issuer is there, too.
func safe(issuer, at string) bool {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u) && isLoopback(parsed(issuer))
}

func parsed(at string) *url.URL {
	u, err := url.Parse(at)
	if err != nil {
		return &url.URL{}
	}
	return u
}

func isLoopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// secret is the client's, as the file has it now.
func (i *Issuer) secret() (string, error) {
	if i.SecretFile == "" {
		return "", nil
	}
	raw, err := disk.ReadOwned(i.SecretFile, disk.Owned{User: os.Geteuid(), Closed: secrets.ClosedTo(i.SecretFile), Most: longestSecret})
	if err != nil {
		return "", fmt.Errorf("cannot use api.oidc.client_secret_file: %w", err)
	}
	text := strings.TrimSpace(string(raw))
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("cannot use api.oidc.client_secret_file: %s holds no secret, or more than one word", i.SecretFile)
	}
	return text, nil
}
