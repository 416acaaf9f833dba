package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// shownUI is a "gitring ui" that runs, and what it printed.
type shownUI struct {
	openedUI
	said *lockedBuffer
	end  func() (code int)
}

type lockedBuffer struct {
	mu sync.Mutex // guards what follows
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startUI runs the verb until it is ended, and waits for its first words.
func startUI(t *testing.T, args ...string) *shownUI {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	u := &shownUI{said: &lockedBuffer{}}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"ui", "-o", "json"}, args...), strings.NewReader(""), in, u.said, time.Now)
		_ = in.Close()
	}()
	u.end = sync.OnceValue(func() int { cancel(); return <-ended })
	t.Cleanup(func() { u.end() })
	require.NoError(t, json.NewDecoder(out).Decode(&u.openedUI), "it said %s", u.said)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return u
}

// daemonAt answers a status and a version on a socket, and tells what was asked.
func daemonAt(t *testing.T, socket string) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/version":
			_, _ = io.WriteString(w, `{"gitring":"1.2.3"}`)
		case "/v1/status":
			_ = json.NewEncoder(w).Encode(ring.Status{Host: "edge-1"})
		}
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })
}

// shortDir is a folder for sockets, whose path is short.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gr")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func browserOf(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b := &http.Client{Jar: jar, Transport: &http.Transport{}}
	t.Cleanup(b.CloseIdleConnections)
	return b
}

func got(t *testing.T, b *http.Client, url string) (int, string) {
	t.Helper()
	res, err := b.Get(url)
	require.NoError(t, err)
	defer res.Body.Close() //nolint:errcheck // only read
	said, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(said)
}

func TestAPersonOpensTheDashboardOnceAndItEndsWithTheCommand(t *testing.T) {
	t.Setenv("SSH_CONNECTION", "")
	t.Setenv("GITRING_HOST", "")
	socket := filepath.Join(shortDir(t), "s")
	daemonAt(t, socket)
	u := startUI(t, "--socket", socket)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/open\?code=[\w-]{43}$`, u.URL)
	require.Empty(t, u.Forward)

	browser := browserOf(t)
	code, page := got(t, browser, u.URL)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, page, "edge-1")
	code, _ = got(t, browserOf(t), u.URL)
	require.Equal(t, http.StatusUnauthorized, code)

	require.Equal(t, 0, u.end())
	_, err := browser.Get(u.URL)
	require.Error(t, err)
	require.NotContains(t, u.said.String(), "error")
}

func TestADashboardOfAnotherHostIsAskedOverSSH(t *testing.T) {
	f := newFarHost(t)
	daemonAt(t, f.socket())
	u := startUI(t, "--host", "ssh://root@edge-1", "--read-only")
	code, page := got(t, browserOf(t), u.URL)
	require.Equal(t, http.StatusOK, code, page)
	require.Contains(t, page, "root@edge-1")
	require.Equal(t, 0, u.end())
}

func TestWhoCameBySSHIsToldTheLineThatForwards(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 41231}
	for connection, want := range map[string]string{
		"":                               "",
		"10.0.0.5 50000 10.0.0.7":        "",
		"10.0.0.5 50000 10.0.0.7 22":     "ssh -N -L 41231:127.0.0.1:41231 ann@10.0.0.7",
		"10.0.0.5 50000 10.0.0.7 2222":   "ssh -N -L 41231:127.0.0.1:41231 -p 2222 ann@10.0.0.7",
		"fe80::5%eth0 1 fe80::7%eth0 22": "ssh -N -L 41231:127.0.0.1:41231 ann@fe80::7",
	} {
		require.Equal(t, want, forwardOf(at, connection, "ann"), connection)
	}
	require.Equal(t, "ssh -N -L 41231:127.0.0.1:41231 10.0.0.7", forwardOf(at, "10.0.0.5 50000 10.0.0.7 22", ""))
}

func TestADashboardForOthersIsWrongUsage(t *testing.T) {
	var out, said strings.Builder
	code := run(context.Background(), []string{"ui", "--listen", "0.0.0.0:8081", "--socket", "/nowhere"}, strings.NewReader(""), &out, &said, time.Now)
	require.Equal(t, 2, code)
	require.Contains(t, said.String(), "the dashboard is for this machine alone")
	require.Empty(t, out.String())
}
