package daemon

import (
	"context"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
)

var pageLinks = regexp.MustCompile(` (?:href|src|action)="([^"]*)"`)

// A browser signs in with a token, finds every page of a daemon whose engine is away, may do
// what the token may, and is out as soon as the token is.
func TestABrowserSignsInAndEveryPageAnswers(t *testing.T) {
	cfg := lonely(t, "")
	text, token := api.NewToken("alice", api.Scopes{api.ScopeRead, api.ScopeLogs, api.ScopeOperate}, "never")
	cfg.API.Tokens = filepath.Join(filepath.Dir(cfg.State), "tokens")
	require.NoError(t, os.WriteFile(cfg.API.Tokens, []byte(token.Line()+"\n"), 0o600))
	cfg.Listen.API = &config.ListenAPI{Address: "127.0.0.1:0"}
	d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	defer func() {
		cancel()
		<-ended
		d.Close()
	}()

	base := "http://" + d.doors[len(d.doors)-1].listener.Addr().String()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar, Timeout: time.Minute}
	defer browser.CloseIdleConnections()
	get := func(path string) (*http.Response, string) {
		for { // so many a second are answered, and a test is faster
			res, err := browser.Get(base + path)
			require.NoError(t, err)
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			if res.StatusCode != http.StatusTooManyRequests {
				return res, string(body)
			}
		}
	}
	res, body := get("/svc/web/web")
	require.Equal(t, "/signin", res.Request.URL.Path)
	require.Contains(t, body, `name="token"`)
	require.NotContains(t, body, "edge-1", "who is not signed in learns what host this is")
	res, err = browser.PostForm(base+"/signin", url.Values{"token": {"grt_wrong"}, "then": {"/plan"}})
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	res, err = browser.PostForm(base+"/signin", url.Values{"token": {text}, "then": {"/plan"}})
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, "/plan", res.Request.URL.Path)
	require.Equal(t, http.StatusOK, res.StatusCode)

	seen, next := map[string]bool{"/": true}, []string{"/"}
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		res, body := get(path)
		require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", path, body)
		if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
			continue
		}
		require.Contains(t, body, "token/alice", path)
		for _, m := range pageLinks.FindAllStringSubmatch(body, -1) {
			if to := html.UnescapeString(m[1]); strings.HasPrefix(to, "/") && !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	for _, path := range []string{"/", "/plan", "/history", "/jobs", "/crashes", "/trust", "/doctor", "/signout"} {
		require.True(t, seen[path], "no page leads to %s", path)
	}
	res, _ = get("/approve/aaaaaaa")
	require.Equal(t, http.StatusForbidden, res.StatusCode)
	_, body = get("/")
	require.Contains(t, body, "cannot reach the engine")
	require.Contains(t, body, "trust is disabled")

	require.NoError(t, os.WriteFile(cfg.API.Tokens, []byte("# nobody\n"), 0o600))
	require.Eventually(t, func() bool {
		res, _ := get("/")
		return res.Request.URL.Path == "/signin"
	}, time.Minute, 50*time.Millisecond, "a token that was revoked still opens pages")
}
