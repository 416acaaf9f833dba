package e2e

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// cutter stands between a daemon and its engine, and kills the daemon at a request that
// changes something: before the engine hears of it, or before the daemon hears its answer.
type cutter struct {
	at    string
	proxy *httputil.ReverseProxy
	kill  func()
	lists atomic.Int64 // lists of containers: a look has one

	cutting sync.WaitGroup // the request that is cut, until the daemon is no more

	mu    sync.Mutex // guards what follows
	left  int        // requests until then; 0 is never
	after bool
}

func newCutter(t *testing.T, h *host) *cutter {
	t.Helper()
	_, socket, _ := strings.Cut(h.engine.url, "://")
	c := &cutter{at: "unix://" + filepath.Join(h.dir, "cutter"), kill: h.kill}
	var d net.Dialer
	c.proxy = &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport:     &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) }},
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	l, err := net.Listen("unix", filepath.Join(h.dir, "cutter"))
	require.NoError(t, err)
	s := &http.Server{Handler: c}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return c
}

func (c *cutter) arm(n int, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.after = n, after
}

// disarm returns once nothing will be cut, nor is being.
func (c *cutter) disarm() {
	c.arm(0, false)
	c.cutting.Wait()
}

// turn reports whether this request is the one.
func (c *cutter) turn(q *http.Request) (cut, after bool) {
	if q.Method == http.MethodGet || q.Method == http.MethodHead {
		return false, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return false, false
	}
	c.left--
	if c.left == 0 {
		c.cutting.Add(1)
	}
	return c.left == 0, c.after
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if strings.HasSuffix(q.URL.Path, "/containers/json") {
		c.lists.Add(1)
	}
	cut, after := c.turn(q)
	if cut {
		defer c.cutting.Done()
	}
	if cut && !after {
		c.kill()
		panic(http.ErrAbortHandler)
	}
	if cut {
		w = held{w, c.kill}
		q = q.WithContext(context.WithoutCancel(q.Context()))
	}
	c.proxy.ServeHTTP(w, q)
}

// held is an answer that its client does not live to hear.
type held struct {
	http.ResponseWriter
	kill func()
}

func (w held) WriteHeader(int) {
	w.kill()
	panic(http.ErrAbortHandler)
}

// Hijack is how the answer of a command begins.
func (w held) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.kill()
	panic(http.ErrAbortHandler)
}

// rotation gives an app other values, again and again: one of each source, in the environment
// and in files.
type rotation struct {
	*host
	app, recipient string
	at             int
	// reg, where it is there, has an image of the app, which is another one each time.
	reg *registry
}

// next has another value in each source, and pushes what the repository has of them.
func (r *rotation) next() (sha string) {
	r.t.Helper()
	r.at++
	r.hostValue(r.app+"/.env", "HOSTV='"+secretValue("host", r.at)+"'\n")
	next := filepath.Join(r.dir, "vault.value")
	require.NoError(r.t, os.WriteFile(next+".new", []byte(secretValue("prov", r.at)+"\n"), 0o600))
	require.NoError(r.t, os.Rename(next+".new", next))
	fs := secretsOf(r.app, r.recipient, r.at, r.t)
	services := obj{
		"db":   web("1", obj{"env_file": []any{"token.age"}, "environment": obj{"HOSTV": "${HOSTV}", "SOPSV": "${SOPSV}", "PROVV": "${PROVV}"}, "post_start": []any{obj{"command": []any{"/app", "tell", "0", "${SOPSV}"}}}}),
		"file": web("1", obj{"secrets": []any{"host", "sops", "prov", "tls"}}),
	}
	if r.reg != nil {
		version := strconv.Itoa(r.at)
		r.reg.push(version)
		services["signed"] = web("", obj{"image": r.reg.at + "/web:" + version, "pull_policy": nil, "environment": obj{"VERSION": nil}})
	}
	fs[r.app+"/compose.yaml"] = r.compose(r.app, services, obj{
		"x-gitring": obj{"secrets": obj{"PROVV": "vault:secret/" + r.app + "/pw"}},
		"secrets":   obj{"host": obj{"environment": "HOSTV"}, "sops": obj{"environment": "SOPSV"}, "prov": obj{"environment": "PROVV"}, "tls": obj{"file": "./tls.enc"}},
	})
	return r.repo.pushed("Other secrets", fs)
}

// live waits until the newest values are where they should be.
func (r *rotation) live(sha string) {
	r.t.Helper()
	r.until("the new values are live", func() bool {
		db, file := r.containers("db"), r.containers("file")
		if st, err := r.look(); err != nil || len(st.Sources) == 0 || st.Sources[0].Commit != sha || st.Sources[0].Sync != "Synced" || len(db) != 1 || len(file) != 1 || !file[0].State.Running {
			return false
		}
		_, host := r.ask(file[0], "/file?path=/run/secrets/host")
		_, tls := r.ask(file[0], "/file?path=/run/secrets/tls")
		return db[0].env("HOSTV") == secretValue("host", r.at) && db[0].env("SOPSV") == secretValue("sops", r.at) && host == secretValue("host", r.at) && strings.HasPrefix(tls, secretValue("file", r.at)+"\n") &&
			(r.reg == nil || r.ranAs("signed", strconv.Itoa(r.at)))
	})
}

// TestNoSecretIsLeftByADaemonThatIsKilledAtAnyStep changes every secret, and kills the daemon
// at a request by which it carries that out: at three of them, and with GITRING_E2E_LONG at each.
func TestNoSecretIsLeftByADaemonThatIsKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	most := amount(t, "CUTS", 3, 1000)
	h := newHost(t)
	r, recipient := h.toldEverybody(t), h.secretSources(t)
	c := newCutter(t, h)
	h.config["engine"] = obj{"kind": "docker", "url": c.at}
	app := h.app("shop")
	of := &rotation{host: h, app: app, recipient: recipient}
	rotated, live := of.next, of.live
	sha := rotated()
	h.start()
	live(sha)
	looked := 0
	look := func(where string, b []byte) {
		t.Helper()
		looked++
		require.Empty(t, leaked(b), "a secret is in %s", where)
	}
	cuts := 0
	for cuts < most {
		n, after := 1+3*cuts, cuts%2 == 1
		if most > 3 {
			n = 1 + cuts/2
		}
		c.arm(n, after)
		sha = rotated()
		_, _ = h.run("secret", "refresh", app)
		done := false
		h.until("it is killed, or has nothing left to do", func() bool {
			if h.gone() {
				return true
			}
			st, err := h.look()
			db := h.containers("db")
			done = err == nil && len(st.Sources) > 0 && st.Sources[0].Commit == sha && st.Sources[0].Sync == "Synced" && len(db) == 1 && db[0].env("HOSTV") == secretValue("host", of.at)
			return done
		})
		c.disarm()
		if done && !h.gone() { // its last request may have been the one
			require.Greater(t, cuts, 20, "there are more steps than that")
			break
		}
		cuts++
		h.lookAtFiles(look)
		h.start()
		live(sha)
		h.lookAtFiles(look)
	}
	t.Logf("%d cuts", cuts)
	for _, kind := range []string{"api", "chat", "hook"} {
		for _, said := range r.of(kind) {
			look("what "+kind+" was told", []byte(said))
		}
	}
	for where, b := range h.answers(app) {
		look(where, b)
	}
	require.Greater(t, looked, 50)
	// Of the values before nothing is left either where they may lie: only those of now.
	h.until("replaced values are gone from the files with values", func() bool {
		for n := 1; n < of.at; n++ {
			for _, source := range []string{"host", "sops", "file"} {
				if len(h.holding(secretValue(source, n))) > 0 {
					return false
				}
			}
		}
		return len(h.holding(secretValue("host", of.at))) == 1
	})
}
