package health

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// here is an instance that answers on a loopback address.
func here() ring.Instance {
	return ring.Instance{ID: "c1", Addresses: map[string]string{"app_default": "127.0.0.1"}}
}

func portOf(t *testing.T, raw string) int {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	n, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	return n
}

// serve starts h and returns its port.
func serve(t *testing.T, h http.HandlerFunc) int {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return portOf(t, s.URL)
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

func ask(c ring.Check) answer {
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	return newProber(nil).ask(context.Background(), here(), c)
}

func TestHTTP(t *testing.T) {
	for _, tc := range []struct {
		name  string
		serve http.HandlerFunc
		check ring.HTTPCheck
		says  string // "" passes; PORT is the server's
	}{
		{"200 is well", status(200, ""), ring.HTTPCheck{Path: "/healthz"}, ""},
		{"204 is well", status(204, ""), ring.HTTPCheck{Path: "/healthz"}, ""},
		{"503 is not", status(503, ""), ring.HTTPCheck{Path: "/healthz"}, "GET :PORT/healthz answered 503"},
		{"a status that is asked for is well", status(418, ""), ring.HTTPCheck{Path: "/", Status: []int{404, 418}}, ""},
		{"200 is not well where others are asked for", status(200, ""), ring.HTTPCheck{Path: "/", Status: []int{404}}, "GET :PORT/ answered 200"},
		{"the body matches", status(200, "all is ready."), ring.HTTPCheck{Path: "/", Match: "ready"}, ""},
		{"the body does not match", status(200, "starting"), ring.HTTPCheck{Path: "/", Match: "ready"}, "GET :PORT/ answered 200 without the text to match"},
		{"the last place of a match", status(200, strings.Repeat("x", bodyCap-5)+"ready"), ring.HTTPCheck{Path: "/", Match: "ready"}, ""},
		{"a match beyond 64 KiB is not seen", status(200, strings.Repeat("x", bodyCap-4)+"ready"), ring.HTTPCheck{Path: "/", Match: "ready"}, "GET :PORT/ answered 200 without the text to match"},
		{"no path is the root", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				w.WriteHeader(404)
			}
		}, ring.HTTPCheck{}, ""},
		{"the query is sent and not told", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("token") == "s3cret" {
				w.WriteHeader(500)
			}
		}, ring.HTTPCheck{Path: "/h?token=s3cret"}, "GET :PORT/h answered 500"},
		{"headers and host are sent", func(w http.ResponseWriter, r *http.Request) {
			if r.Host != "shop.example.org" || r.Header.Get("X-Probe") != "yes" || r.UserAgent() != "gitring" {
				w.WriteHeader(400)
			}
		}, ring.HTTPCheck{Path: "/", Host: "shop.example.org", Headers: map[string]string{"x-probe": "yes"}}, ""},
		{"a host among the headers is the host", func(w http.ResponseWriter, r *http.Request) {
			if r.Host != "shop.example.org" {
				w.WriteHeader(400)
			}
		}, ring.HTTPCheck{Path: "/", Headers: map[string]string{"host": "shop.example.org"}}, ""},
		{"a path that looks like another host is a path", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "//192.0.2.1/x" {
				w.WriteHeader(400)
			}
		}, ring.HTTPCheck{Path: "//192.0.2.1/x"}, ""},
		{"a URL for a path stays here", func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/http:") {
				w.WriteHeader(400)
			}
		}, ring.HTTPCheck{Path: "http://192.0.2.1/x"}, ""},
		{"a body that breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("short"))
		}, ring.HTTPCheck{Path: "/", Match: "ready"}, "GET :PORT/ answered 200, then its body closed the connection without an answer"},
		{"https asked of a server without", status(200, ""), ring.HTTPCheck{Path: "/", Scheme: "https"}, "GET :PORT/ did not give a proper answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := tc.check
			c.Port = serve(t, tc.serve)
			a := ask(ring.Check{HTTP: &c})
			require.True(t, a.known)
			require.Equal(t, strings.ReplaceAll(tc.says, "PORT", strconv.Itoa(c.Port)), a.says)
			require.Equal(t, tc.says == "", a.ok)
			require.Equal(t, tc.name == "the body does not match", a.printed == "starting", "what it answered is told")
		})
	}
	port := serve(t, status(503, "no database"))
	require.Equal(t, "no database", ask(ring.Check{HTTP: &ring.HTTPCheck{Port: port, Path: "/"}}).printed)
}

func TestRedirectIsAnAnswer(t *testing.T) {
	var followed atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	t.Cleanup(elsewhere.Close)
	port := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) })

	a := ask(ring.Check{HTTP: &ring.HTTPCheck{Port: port, Path: "/"}})
	require.False(t, a.ok)
	require.Contains(t, a.says, "answered 302")
	require.True(t, ask(ring.Check{HTTP: &ring.HTTPCheck{Port: port, Path: "/", Status: []int{302}}}).ok)
	require.False(t, followed.Load(), "the redirect was followed")
}

func TestHTTPSTakesAnyCertificate(t *testing.T) {
	s := httptest.NewTLSServer(status(200, ""))
	t.Cleanup(s.Close)
	require.Equal(t, passed(), ask(ring.Check{HTTP: &ring.HTTPCheck{Port: portOf(t, s.URL), Path: "/", Scheme: "https"}}))
}

func TestHTTPUsesNoProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:1")
	t.Setenv("NO_PROXY", "")
	require.Nil(t, newProber(nil).transport([]string{"127.0.0.1"}, "").Proxy)
}

func TestSlowAnswers(t *testing.T) {
	release := make(chan struct{})
	port := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	a := ask(ring.Check{HTTP: &ring.HTTPCheck{Port: port, Path: "/"}, Timeout: 50 * time.Millisecond})
	require.Equal(t, "GET :"+strconv.Itoa(port)+"/ did not answer within 50ms", a.says)
}

func TestTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.Equal(t, passed(), ask(ring.Check{TCP: &ring.TCPCheck{Port: port}}))
	require.NoError(t, l.Close())
	require.Equal(t, failed("tcp :%d refused the connection", port), ask(ring.Check{TCP: &ring.TCPCheck{Port: port}}))
	require.Equal(t, failed("GET :%d/ refused the connection", port), ask(ring.Check{HTTP: &ring.HTTPCheck{Port: port, Path: "/"}}))
}

func TestExec(t *testing.T) {
	argv := []string{"check-db", "--password=s3cret"}
	run := func(e Exec) answer {
		return newProber(e).ask(context.Background(), here(), ring.Check{Exec: argv, Timeout: 20 * time.Millisecond})
	}
	require.Equal(t, passed(), run(func(_ context.Context, id string, got []string) (int, string, error) {
		require.Equal(t, "c1", id)
		require.Equal(t, argv, got)
		return 0, "", nil
	}))
	wrong := run(func(context.Context, string, []string) (int, string, error) {
		return 3, "password s3cret was wrong", nil
	})
	require.Equal(t, "exec check-db exited 3", wrong.says, "a reason is read by everyone")
	require.Equal(t, "password s3cret was wrong", wrong.printed)
	long := run(func(context.Context, string, []string) (int, string, error) {
		return 3, strings.Repeat("x", 2*ring.PrintedCap), nil
	})
	require.Len(t, long.printed, ring.PrintedCap)
	require.Equal(t, failed("exec check-db did not end within 20ms"), run(func(ctx context.Context, _ string, _ []string) (int, string, error) {
		<-ctx.Done()
		return 0, "", ctx.Err()
	}))
	away := run(func(context.Context, string, []string) (int, string, error) { return 0, "", errors.New("engine away") })
	require.False(t, away.known, "an engine that is away says nothing about the instance")
}

func TestStoppingIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a := newProber(nil).ask(ctx, here(), ring.Check{TCP: &ring.TCPCheck{Port: 1}, Timeout: time.Second})
	require.Equal(t, answer{}, a)
}

func TestAReasonIsOneShortLine(t *testing.T) {
	a := failed("a\nb\x1b[31m%s", strings.Repeat("ä", 300))
	require.NotContains(t, a.says, "\n")
	require.NotContains(t, a.says, "\x1b")
	require.Len(t, []rune(a.says), 200)
}
