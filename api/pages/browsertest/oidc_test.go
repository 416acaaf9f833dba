package browsertest

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/api/pages"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/daemon"
)

// provides runs a provider of OpenID Connect that is not ours (scripts/oidc.sh), and is its issuer.
func provides(t *testing.T, redirect string) (issuer string) {
	t.Helper()
	program, err := filepath.Abs("../../../bin/oidc-provider")
	require.NoError(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Skip("bin/oidc-provider is not here: make oidc (scripts/oidc.sh)")
	}
	users, err := json.Marshal(map[string]any{"1": map[string]any{"ID": "1", "Username": "alice", "Password": "hers", "Email": "alice@example.org", "EmailVerified": true, "PreferredLanguage": "en"}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "users.json")
	require.NoError(t, os.WriteFile(file, users, 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	cmd := exec.Command(program)
	cmd.Env = []string{"PORT=" + port, "USERS_FILE=" + file, "REDIRECT_URI=" + redirect}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	issuer = "http://localhost:" + port + "/"
	require.Eventually(t, func() bool {
		res, err := http.Get(issuer + ".well-known/openid-configuration") //nolint:noctx // on loopback
		return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
	}, patience, 20*time.Millisecond)
	return issuer
}

// serveWithIssuer is listen.api of a host, at which nobody is signed in yet.
func serveWithIssuer(t *testing.T, w *world) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &site{t: t, w: w, url: "http://" + l.Addr().String(), cookie: func() *http.Cookie { return nil }}
	quiet := slog.New(slog.DiscardHandler)
	socket, err := api.NewSocket(w.calls(), quiet)
	require.NoError(t, err)
	address := l.Addr().String()
	oidc := daemon.OIDC(&config.OIDCConfig{
		Issuer: provides(t, s.url+api.OIDCBackPath), ClientID: "web", ClientSecretFile: secretFile(t), Scopes: []string{"email"},
		Roles: map[string][]string{"alice@example.org": {"read", "operate"}},
	}, &config.ListenAPI{Address: address})
	var web *api.Web
	web, err = api.NewWeb(&socket.Table, api.WebOptions{
		Tokens:     api.NewTokens(filepath.Join(t.TempDir(), "none"), func(string) error { return nil }, time.Now),
		SessionKey: make([]byte, 32), Address: address, Now: s.unhurried(), Log: quiet, OIDC: oidc,
		Pages: pages.New(pages.Options{
			Answers: func(v api.Viewer) pages.Answers { return socket.Inside(v) },
			Viewer:  func(r *http.Request) (api.Viewer, bool) { return api.ViewerOf(r.Context()) },
			SignIn:  func(w http.ResponseWriter, r *http.Request, token string) error { return web.SignIn(w, r, token) },
			OIDC:    daemon.PagesOIDC(oidc, &web),
			SignOut: func(w http.ResponseWriter) { web.SignOut(w) },
			Now:     time.Now,
		}),
	})
	require.NoError(t, err)
	t.Cleanup(s.run(l, web.Run))
	return s
}

func secretFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600)) // as the provider's program has it
	return file
}

// A person signs in with an issuer, sees the page that was wanted, and signs out.
func TestAPersonSignsInWithAnIssuerAndOut(t *testing.T) {
	s := serveWithIssuer(t, newWorld())
	for name, l := range map[string]look{"with scripts": light, "without, on a phone": {width: phone.width, height: phone.height, dark: true, plain: true}} {
		t.Run(name, func(t *testing.T) {
			b := s.open(t, l)
			b.visit("/history").reads("Sign in with http://localhost:").fits()
			if !l.plain {
				b.accessible("{}")
			}
			require.Empty(t, b.heard())
			b.press("Sign in with").until("the issuer's own form", `!!document.querySelector('[name=username]')`)
			b.fill("username", "alice").fill("password", "hers").press("Login")
			b.until("she is back at the page that she wanted", `location.origin == `+quoted(s.url)+` && location.pathname == '/history'`).reads("alice@example.org")
			require.Empty(t, js[string](b, `document.cookie`), "scripts see no cookie")
			b.forget() // what the issuer's pages lack
			b.press("Sign out").press("Sign out of this browser").reads("Sign in with")
			b.visit("/history").until("nobody is signed in", `location.pathname == '/signin'`)
			require.NotContains(t, strings.ToLower(b.text()), "alice")
		})
	}
}
