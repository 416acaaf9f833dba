package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// provider is an OpenID Connect provider that is not ours: the example server of zitadel/oidc.
type provider struct {
	t            *testing.T
	at, redirect string
	users        string
	process      *exec.Cmd
}

// clientSecret is that of the client web, as the provider's program has it.
const clientSecret = "secret"

// newProvider does not run yet. People come back from it to one address.
func newProvider(t *testing.T, redirect string) *provider {
	t.Helper()
	if _, err := os.Stat("../bin/oidc-provider"); err != nil {
		require.NotEqual(t, "1", os.Getenv("GITRING_ENGINE_TESTS"), "bin/oidc-provider is not here: scripts/oidc.sh")
		t.Skip("bin/oidc-provider is not here: make oidc (scripts/oidc.sh)")
	}
	p := &provider{t: t, at: freePort(t), redirect: redirect, users: filepath.Join(t.TempDir(), "users.json")}
	users := obj{}
	for id, u := range map[string]obj{
		"1": {"Username": "alice", "Email": "Alice@example.org", "EmailVerified": true},
		"2": {"Username": "bob", "Email": "bob@example.org", "EmailVerified": false},
		"3": {"Username": "carol", "Email": "carol@example.org", "EmailVerified": true},
	} {
		users[id] = merged(u, obj{"ID": id, "Password": "pass-of-" + u["Username"].(string), "PreferredLanguage": "en"})
	}
	body, err := json.Marshal(users)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(p.users, body, 0o600))
	t.Cleanup(p.end)
	return p
}

// issuer is how the provider calls itself.
func (p *provider) issuer() string {
	_, port, err := net.SplitHostPort(p.at)
	require.NoError(p.t, err)
	return "http://localhost:" + port + "/"
}

func (p *provider) begin() {
	p.t.Helper()
	_, port, err := net.SplitHostPort(p.at)
	require.NoError(p.t, err)
	p.process = exec.Command("../bin/oidc-provider")
	p.process.Env = append(bareEnviron(), "PORT="+port, "USERS_FILE="+p.users, "REDIRECT_URI="+p.redirect)
	p.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(p.t, p.process.Start())
	require.Eventually(p.t, func() bool {
		res, err := http.Get(p.issuer() + ".well-known/openid-configuration") //nolint:noctx // on loopback
		if err != nil {
			return false
		}
		return res.Body.Close() == nil && res.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond, "the provider does not answer")
}

func (p *provider) end() {
	if p.process != nil {
		_ = p.process.Process.Kill()
		_ = p.process.Wait()
		p.process = nil
	}
}

// visitor is a browser without scripts.
type visitor struct {
	t      *testing.T
	client *http.Client
	home   string
	went   []string // addresses, of all answers
}

func newVisitor(t *testing.T, home string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	v := &visitor{t: t, home: home}
	v.client = &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		v.went = append(v.went, r.URL.String())
		return nil
	}}
	t.Cleanup(v.client.CloseIdleConnections)
	return v
}

// opens a page, or posts a form to it.
func (v *visitor) opens(at string, form url.Values) (code int, page string, is *url.URL) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, at, nil)
	if form != nil {
		r, err = http.NewRequestWithContext(v.t.Context(), http.MethodPost, at, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	require.NoError(v.t, err)
	res, err := v.client.Do(r)
	require.NoError(v.t, err)
	defer res.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(res.Body)
	require.NoError(v.t, err)
	return res.StatusCode, string(body), res.Request.URL
}

var (
	withIssuer = regexp.MustCompile(`<a href="(/signin/oidc\?then=[^"]*)">Sign in with ([^<]*)</a>`)
	loginID    = regexp.MustCompile(`name="id" value="([^"]*)"`)
)

// signsIn goes the way of a person who opens a page: to the issuer, through its form, and back.
func (v *visitor) signsIn(page, user string) (code int, text string, is *url.URL) {
	v.t.Helper()
	_, text, _ = v.opens(v.home+page, nil)
	link := withIssuer.FindStringSubmatch(text)
	require.NotNil(v.t, link, text)
	_, text, is = v.opens(v.home+strings.ReplaceAll(link[1], "&amp;", "&"), nil)
	id := loginID.FindStringSubmatch(text)
	require.NotNil(v.t, id, text)
	return v.opens(is.Scheme+"://"+is.Host+"/login/username", url.Values{"id": {id[1]}, "username": {user}, "password": {"pass-of-" + user}})
}

// signedOut reports whether the session is none any more. While a daemon reads its configuration anew
// nobody knows.
func (v *visitor) signedOut() bool {
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.home+"/v1/session", nil)
	require.NoError(v.t, err)
	res, err := v.client.Do(r)
	return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusUnauthorized
}

// signInWith is the configuration of an issuer.
func (h *host) signInWith(p *provider, roles obj) obj {
	return obj{"issuer": p.issuer(), "client_id": "web", "client_secret_file": h.secret("client-secret", clientSecret+"\n"), "roles": roles}
}

// People sign in with a provider that is not ours. The daemon starts without it, says which it is
// while it is away, and lets tokens in meanwhile. Sessions go on without it, and end with their row.
func TestPeopleSignInWithAnIssuer(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	address, token := h.opensDoor()
	home := "http://" + address
	p := newProvider(t, home+"/signin/oidc/back")
	h.config["api"].(obj)["oidc"] = h.signInWith(p, obj{"alice@example.org": []any{"read", "operate"}, "bob@example.org": []any{"admin"}, "sub:2": []any{"read"}})
	h.start()
	h.deployed("One", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1")})})

	early := newVisitor(t, home)
	code, text, _ := early.opens(home+"/signin/oidc?then=/", nil)
	require.Equal(t, http.StatusBadGateway, code)
	require.Contains(t, text, "cannot sign in with "+p.issuer()+": ")
	require.Contains(t, text, "connection refused")
	code, _, is := early.opens(home+"/signin", url.Values{"token": {token}, "then": {"/history"}})
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "/history", is.Path, "a token signs in")

	p.begin()
	alice := newVisitor(t, home)
	h.until("the provider is asked again", func() bool {
		code, _, _ := newVisitor(t, home).opens(home+"/signin/oidc", nil)
		return code == http.StatusOK
	})
	code, text, is = alice.signsIn("/app/"+app, "alice")
	require.Equal(t, http.StatusOK, code, text)
	require.Equal(t, home+"/app/"+app, is.String(), "back at the page that she wanted")
	require.Contains(t, text, "alice@example.org")

	code, text, _ = alice.opens(home+"/act/"+app, url.Values{"verb": {"hold"}, "reason": {"she said so"}, "for": {"10m"}})
	require.Equal(t, http.StatusOK, code, text)
	_, out := h.run("events", "-o", "json", "-n", "0", "--app", app)
	require.Regexp(t, `"actor":"oidc/alice@example.org","via":"oidc"`, out)
	require.Contains(t, out, "she said so")

	// Who comes back once more, or elsewhere, is nobody.
	back := alice.went[len(alice.went)-2]
	require.Contains(t, back, "/signin/oidc/back?code=")
	for _, who := range []*visitor{alice, newVisitor(t, home)} {
		code, text, _ = who.opens(back, nil)
		require.Equal(t, http.StatusBadRequest, code)
		require.Contains(t, text, "was not begun in this browser")
	}

	bob, carol := newVisitor(t, home), newVisitor(t, home)
	code, text, _ = bob.signsIn("/", "bob")
	require.Equal(t, http.StatusOK, code, text)
	require.Contains(t, text, "oidc/sub:2", "an e-mail that nobody verified counts for nothing")
	code, _, _ = bob.opens(home+"/act/"+app, url.Values{"verb": {"release"}, "reason": {"r"}})
	require.Equal(t, http.StatusForbidden, code)
	code, text, _ = carol.signsIn("/", "carol")
	require.Equal(t, http.StatusForbidden, code)
	require.Contains(t, text, "carol@example.org may do nothing here")
	_, _, is = carol.opens(home+"/", nil)
	require.Equal(t, "/signin", is.Path)
	stolen := newVisitor(t, home)
	_, _, is = stolen.opens(home+"/signin/oidc?then=//evil.example.org/", nil)
	require.Equal(t, "localhost", is.Hostname())

	// The provider is gone, and sessions go on; then a row is.
	p.end()
	code, _, is = alice.opens(home+"/history", nil)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "/history", is.Path)
	h.config["api"].(obj)["oidc"] = h.signInWith(p, obj{"sub:2": []any{"read"}})
	h.writeConfig()
	require.NoError(t, h.daemon.Process.Signal(syscall.SIGHUP))
	h.until("her row is gone, and her session with it", alice.signedOut)
	code, _, is = bob.opens(home+"/history", nil)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "/history", is.Path)
	_, _, is = bob.opens(home+"/signout", url.Values{})
	require.Equal(t, "/signin", is.Path)
	_, _, is = bob.opens(home+"/history", nil)
	require.Equal(t, "/signin", is.Path, "he signed out")

	log, err := os.ReadFile(filepath.Join(h.dir, "log"))
	require.NoError(t, err)
	require.Contains(t, string(log), `"signed in","actor":"oidc/alice@example.org"`)
	require.Contains(t, string(log), `"signed in nobody","actor":"oidc/carol@example.org"`)
	code1, err := url.Parse(back)
	require.NoError(t, err)
	u, err := url.Parse(home)
	require.NoError(t, err)
	secrets := []string{code1.Query().Get("code"), code1.Query().Get("state"), "eyJ", "pass-of-", "client-secret\""}
	for _, v := range []*visitor{alice, bob} {
		for _, c := range v.client.Jar.Cookies(u) {
			secrets = append(secrets, c.Value)
		}
	}
	for _, s := range secrets {
		require.False(t, bytes.Contains(log, []byte(s)), "%s is in the log", s)
	}
}

// A hub lets the same people in, and shows them what it has.
func TestPeopleSignInAtAHubWithAnIssuer(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	u := newHub(t)
	home := "http://" + u.address
	p := newProvider(t, home+"/signin/oidc/back")
	body, err := os.ReadFile(u.config())
	require.NoError(t, err)
	config := obj{}
	require.NoError(t, json.Unmarshal(body, &config))
	config["api"].(map[string]any)["oidc"] = h.signInWith(p, obj{"alice@example.org": []any{"read"}})
	body, err = json.Marshal(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(u.config(), body, 0o600))
	p.begin()
	u.begin()
	alice, carol := newVisitor(t, home), newVisitor(t, home)
	code, text, is := alice.signsIn("/hosts", "alice")
	require.Equal(t, http.StatusOK, code, text)
	require.Equal(t, home+"/hosts", is.String())
	require.Contains(t, text, "alice@example.org")
	code, text, _ = carol.signsIn("/hosts", "carol")
	require.Equal(t, http.StatusForbidden, code)
	require.Contains(t, text, "carol@example.org may do nothing here")
}
