package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// localDoor is a Local that serves, and a browser that follows no redirect.
type localDoor struct {
	*Local
	t       *testing.T
	d       *daemon
	url     string // without the code
	first   string // with it
	browser *http.Client
	stop    func()
}

func newLocalDoor(t *testing.T, change ...func(*LocalOptions)) *localDoor {
	t.Helper()
	d := newDaemon()
	client, stopDaemon := serveSocket(t, d)
	t.Cleanup(stopDaemon)
	o := LocalOptions{
		Client: client, Actor: "ann", Now: time.Now, Log: quiet,
		Pages: func(asks *Client) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				v, ok := ViewerOf(r.Context())
				_, err := asks.Act(r.Context(), ActRequest{Verb: "hold", App: "web", Reason: "r"})
				fmt.Fprintf(w, "%s %t %s %s %t %v", r.URL.Path, ok, v.Actor, v.Scopes, v.Session, err)
			})
		},
	}
	for _, c := range change {
		c(&o)
	}
	on, err := ListenLocal("127.0.0.1:0")
	require.NoError(t, err)
	l, err := NewLocal(on.Addr(), o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, on) }()
	stop := func() { cancel(); require.NoError(t, <-done); done <- nil }
	t.Cleanup(stop)
	door := &localDoor{Local: l, t: t, d: d, url: "http://" + on.Addr().String(), first: l.Address(on.Addr()), stop: stop}
	door.browser = door.newBrowser()
	return door
}

func (l *localDoor) newBrowser() *http.Client {
	jar, err := cookiejar.New(nil)
	require.NoError(l.t, err)
	b := &http.Client{Jar: jar, Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	l.t.Cleanup(b.CloseIdleConnections)
	return b
}

// ask is one request of a browser.
func (l *localDoor) ask(b *http.Client, method, target, body string, change ...func(*http.Request)) (int, string, http.Header) {
	l.t.Helper()
	r, err := http.NewRequestWithContext(l.t.Context(), method, target, strings.NewReader(body))
	require.NoError(l.t, err)
	for _, c := range change {
		c(r)
	}
	res, err := b.Do(r)
	require.NoError(l.t, err)
	defer res.Body.Close() //nolint:errcheck // only read
	said, err := io.ReadAll(res.Body)
	require.NoError(l.t, err)
	return res.StatusCode, string(said), res.Header
}

func (l *localDoor) open() *localDoor {
	l.t.Helper()
	code, said, h := l.ask(l.browser, "GET", l.first, "")
	require.Equal(l.t, http.StatusSeeOther, code, said)
	require.Equal(l.t, "/", h.Get("Location"))
	return l
}

func TestTheCodeWorksOnceAndBecomesACookie(t *testing.T) {
	l := newLocalDoor(t)
	_, code, _ := strings.Cut(l.first, "code=")
	require.Len(t, code, 43, "256 bits in base64url")

	status, _, h := l.ask(l.newBrowser(), "GET", l.url+"/open?code=x"+code, "")
	require.Equal(t, http.StatusUnauthorized, status)
	require.Empty(t, h.Get("Set-Cookie"))
	status, _, _ = l.ask(l.newBrowser(), "HEAD", l.first, "")
	require.Equal(t, http.StatusMethodNotAllowed, status, "what only looks uses nothing up")
	status, _, _ = l.ask(l.newBrowser(), "GET", l.first, "", func(r *http.Request) { r.Header.Set("Sec-Purpose", "prefetch") })
	require.Equal(t, http.StatusServiceUnavailable, status)

	status, _, h = l.ask(l.browser, "GET", l.first, "")
	require.Equal(t, http.StatusSeeOther, status)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(l.url, "http://"))
	cookie := h.Get("Set-Cookie")
	require.Regexp(t, `^gitring-ui-`+port+`=[\w-]{43}; Path=/; HttpOnly; SameSite=Lax$`, cookie)
	require.NotContains(t, cookie, code)

	status, said, _ := l.ask(l.newBrowser(), "GET", l.first, "")
	require.Equal(t, http.StatusUnauthorized, status, "a second browser")
	require.Contains(t, said, "it works once")
	status, _, _ = l.ask(l.browser, "GET", l.first, "")
	require.Equal(t, http.StatusSeeOther, status, "who has the cookie may reload")
}

func TestWithoutTheCookieNothingIsShown(t *testing.T) {
	l := newLocalDoor(t)
	stranger := l.newBrowser()
	for _, path := range []string{"/", "/app/web", "/act/web", "/v1/status", "/v1/stream", "/v1/logs?app=web", "/metrics", "/style.css"} {
		status, said, _ := l.ask(stranger, "GET", l.url+path, "")
		require.Equal(t, http.StatusUnauthorized, status, path)
		require.NotContains(t, said, "ann", path)
	}
	status, _, _ := l.ask(stranger, "POST", l.url+"/v1/act", `{"verb":"hold","app":"web","reason":"r"}`)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Empty(t, l.d.takeCalled())

	l.open()
	status, said, h := l.ask(l.browser, "GET", l.url+"/app/web", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "/app/web true ann logs,operate,approve false <nil>", said)
	require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
	require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
}

func TestPagesMayNoMoreThanTheDashboard(t *testing.T) {
	l := newLocalDoor(t, func(o *LocalOptions) { o.ReadOnly = true }).open()
	status, said, _ := l.ask(l.browser, "GET", l.url+"/", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "/ true ann logs false the dashboard may not do this: it has logs", said)
	require.Empty(t, l.d.takeCalled())
	require.ErrorIs(t, l.Client.Within(Scopes{ScopeAdmin}).Accept(t.Context(), AcceptRequest{}), ErrNotFound)
}

func TestTheCookieIsWorthNothingToTheNextCommand(t *testing.T) {
	before := newLocalDoor(t).open()
	before.stop()
	after := newLocalDoor(t)
	status, _, _ := after.ask(after.newBrowser(), "GET", after.url+"/", "", func(r *http.Request) {
		r.AddCookie(&http.Cookie{Name: after.cookie, Value: before.worth})
	})
	require.Equal(t, http.StatusUnauthorized, status)
}

// Every route, by a dashboard and by one that only reads. The oracle is the table that was
// written by hand.
func TestADashboardPassesOnWhatItsScopesAllow(t *testing.T) {
	for readOnly, scopes := range map[bool][]Scope{false: {"read", "logs", "operate", "approve"}, true: {"read", "logs"}} {
		l := newLocalDoor(t, func(o *LocalOptions) { o.ReadOnly = readOnly }).open()
		for path, row := range everyRoute {
			if path == "/v1/stream" {
				continue // it would not end
			}
			l.requests = newRate(webPerActor)
			l.d.takeCalled()
			status, said, _ := l.ask(l.browser, row.method, l.url+row.target, row.body)
			want := http.StatusForbidden
			for _, s := range scopes {
				if s == row.scope {
					want = http.StatusOK
				}
			}
			if row.scope == "" {
				want = http.StatusNotFound
			}
			require.Equal(t, want, status, "%s: %s", path, said)
			require.Equal(t, want == http.StatusOK && path != "/v1/openapi.json", len(l.d.takeCalled()) > 0, path)
		}
		status, _, _ := l.ask(l.browser, "POST", l.url+"/v1/plan", "PK")
		require.Equal(t, http.StatusNotFound, status, "a folder")
		status, _, _ = l.ask(l.browser, "POST", l.url+"/v1/act", strings.Repeat(" ", bodyLimit+1))
		require.Equal(t, map[bool]int{false: http.StatusRequestEntityTooLarge, true: http.StatusForbidden}[readOnly], status)
	}
}

func TestADaemonsAnswerArrivesAsItIs(t *testing.T) {
	l := newLocalDoor(t).open()
	status, _, h := l.ask(l.browser, "GET", l.url+"/v1/status", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, []string{"no-store"}, h.Values("Cache-Control"))
	status, said, _ := l.ask(l.browser, "GET", l.url+"/v1/status", "", func(r *http.Request) { r.Header.Set("If-None-Match", h.Get("ETag")) })
	require.Equal(t, http.StatusNotModified, status, said)
	status, said, _ = l.ask(l.browser, "GET", l.url+"/v1/logs", "")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, said, `"code":"Usage"`)
}

func TestTheDaemonSeesNothingOfTheBrowser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	on, err := net.Listen("unix", path)
	require.NoError(t, err)
	far := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "x=y")
		_, _ = fmt.Fprintln(w, r.Host, r.URL, r.Header)
	})}
	ended := make(chan error, 1)
	go func() { ended <- far.Serve(on) }()
	t.Cleanup(func() { _ = far.Close(); <-ended }) //nolint:errcheck // it was closed
	l := newLocalDoor(t, func(o *LocalOptions) { o.Client = NewClient(path) }).open()
	status, said, h := l.ask(l.browser, "GET", l.url+"/v1/status?phase=Ready", "", func(r *http.Request) {
		r.Header.Set("Last-Event-ID", "7.0a0a0a0a")
		r.Header.Set("Authorization", "Bearer x")
		r.Header.Set("X-Forwarded-For", "10.0.0.1")
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
	})
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "gitring /v1/status?phase=Ready map[Accept-Encoding:[gzip] Last-Event-Id:[7.0a0a0a0a]]\n", said)
	require.Empty(t, h.Get("Set-Cookie"))
}

func TestAnotherHostAndAnotherOriginGetNothing(t *testing.T) {
	l := newLocalDoor(t).open()
	for host, want := range map[string]int{
		"evil.example.org": 421, "127.0.0.1.nip.io": 421, "localhost.evil.example.org": 421, "10.0.0.1": 421, "0.0.0.0": 421,
		"localhost": 200, "localhost:1": 200, "127.0.0.1": 200, "[::1]:80": 200, "gitring.localhost": 200,
	} {
		status, _, _ := l.ask(l.newBrowser(), "GET", l.url+"/", "", func(r *http.Request) {
			r.Host = host
			r.AddCookie(&http.Cookie{Name: l.cookie, Value: l.worth})
		})
		require.Equal(t, want, status, host)
	}
	act := func(change func(*http.Request)) int {
		l.d.takeCalled()
		status, _, _ := l.ask(l.browser, "POST", l.url+"/v1/act", `{"verb":"hold","app":"web","reason":"r"}`, change)
		require.Equal(t, status == http.StatusOK, len(l.d.takeCalled()) > 0)
		return status
	}
	require.Equal(t, http.StatusForbidden, act(func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8080") }), "another port")
	require.Equal(t, http.StatusForbidden, act(func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.org") }))
	require.Equal(t, http.StatusForbidden, act(func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }))
	require.Equal(t, http.StatusOK, act(func(r *http.Request) { r.Header.Set("Origin", l.url); r.Header.Set("Sec-Fetch-Site", "same-origin") }))
	status, _, _ := l.ask(l.browser, "GET", l.url+"/v1/status", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") })
	require.Equal(t, http.StatusForbidden, status, "a page of another port reads no answer")
	status, _, _ = l.ask(l.browser, "GET", l.url+"/app/web", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	require.Equal(t, http.StatusOK, status, "a link from elsewhere opens a page")
}

func TestADashboardIsOfThisMachineAlone(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "edge-1:0"} {
		_, err := ListenLocal(address)
		require.ErrorContains(t, err, "the dashboard is for this machine alone", address)
	}
	for _, address := range []string{"127.0.0.1", "", "127.0.0.1:x"} {
		_, err := ListenLocal(address)
		require.Error(t, err, address)
	}
	on, err := ListenLocal("localhost:0")
	require.NoError(t, err)
	require.NoError(t, on.Close())
}

func TestAStreamGoesThroughAsItIsWritten(t *testing.T) {
	l := newLocalDoor(t).open()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", l.url+"/v1/stream", nil)
	require.NoError(t, err)
	res, err := l.browser.Do(r)
	require.NoError(t, err)
	defer res.Body.Close() //nolint:errcheck // only read
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	in := bufio.NewReader(res.Body)
	first, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "retry: 1000\n", first, "a page follows again within 5 s of a restart")
	require.Equal(t, 1, l.streams.n)

	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, in); close(ended) }()
	l.stop()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("a stream goes on after the command ended")
	}
	require.Zero(t, l.streams.n)
}

func TestADaemonThatIsAwayIsToldToPages(t *testing.T) {
	l := newLocalDoor(t, func(o *LocalOptions) { o.Client = NewClient(socketPath(t)) }).open()
	status, said, _ := l.ask(l.browser, "GET", l.url+"/v1/status", "")
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, said, `"code":"Away"`)
	require.Contains(t, said, "cannot reach the daemon on")
}

func TestADashboardIsBounded(t *testing.T) {
	l := newLocalDoor(t)
	var statuses []int
	for range 12 {
		status, _, _ := l.ask(l.newBrowser(), "GET", l.url+"/open?code=wrong", "")
		statuses = append(statuses, status)
	}
	require.Equal(t, http.StatusUnauthorized, statuses[0])
	require.Equal(t, http.StatusTooManyRequests, statuses[11])
	l.open() // the right one is let in all the same
	at := time.Now()
	l.Now = func() time.Time { return at }
	l.requests = newRate(webPerActor)
	for range webPerActor {
		status, _, _ := l.ask(l.browser, "GET", l.url+"/", "")
		require.Equal(t, http.StatusOK, status)
	}
	status, _, h := l.ask(l.browser, "GET", l.url+"/", "")
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, "1", h.Get("Retry-After"))
}
