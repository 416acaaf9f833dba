package gitsync

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// httpBackend serves the origin's folder with git's own smart-HTTP backend.
func (o *origin) httpBackend() http.Handler { return httpBackend(o.t, filepath.Dir(o.bare)) }

func httpBackend(t testing.TB, root string) http.Handler {
	path, err := exec.Command("git", "--exec-path").Output()
	require.NoError(t, err)
	return &cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null"},
		Stderr: io.Discard,
	}
}

// withPassword lets only bot in.
func withPassword(password string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "bot" || pass != password {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serve answers on a loopback port until the test ends.
func serve(t testing.TB, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func at(url string) func(*Config) {
	return func(c *Config) { c.URL = url }
}

func TestASmartHTTPRemoteIsFollowedWithATokenFromAFile(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("hunter2\n"), 0o600))
	url := serve(t, withPassword("hunter2", o.httpBackend())) + "/remote.git"
	o.signed("one")
	w := lookAt(t, o.follow(a, at(url), func(c *Config) { c.Auth = Auth{Username: "bot", PasswordFile: token} }))
	w.must()
	o.commit("two", "-S")
	three := o.signed("three")
	require.Equal(t, three, w.must().Commit.SHA)
	require.Equal(t, three, w.must().Commit.SHA)

	require.NoError(t, os.WriteFile(token, []byte("rotated"), 0o600))
	r := w.look(t.Context())
	require.ErrorContains(t, r.Err, "does not take the user name and password")
	require.NotContains(t, r.Err.Error(), "rotated")
	require.False(t, r.Reached)
	require.Equal(t, three, r.Commit.SHA)
	require.NoError(t, os.WriteFile(token, []byte("hunter2"), 0o600))
	w.must()

	o.git(o.bare, "update-ref", "-d", "refs/heads/main")
	require.Equal(t, "RefMissing: the remote has no branch at all; push a signed commit to it (git push origin main), or name another branch in the configuration", w.must().Reason)
}

func TestHTTPSIsCheckedAgainstTheTrustedRoots(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	sha := o.signed("one")
	s := httptest.NewUnstartedServer(o.httpBackend())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the first handshake is meant to fail
	s.StartTLS()
	t.Cleanup(s.Close)
	f := o.follow(a, at(s.URL+"/remote.git"))
	r := lookAt(t, f).look(t.Context())
	require.ErrorContains(t, r.Err, "certificate")

	d := newHTTPDialer(f.address, f.cfg.Auth, f.cfg.Limits, files{}, nil)
	d.wire.TLSClientConfig.RootCAs = x509.NewCertPool()
	d.wire.TLSClientConfig.RootCAs.AddCert(s.Certificate())
	f.remote = &wire{branch: f.remote.(*wire).branch, open: d.open, idle: d.rest}
	require.Equal(t, sha, lookAt(t, f).must().Commit.SHA)
	f.remote.rest()
}

func TestAnHTTPRemoteThatIsNotThereSaysSo(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	url := serve(t, o.httpBackend()) + "/nothing.git"
	r := lookAt(t, o.follow(&ledger{}, at(url))).look(t.Context())
	require.ErrorContains(t, r.Err, "cannot look at "+url+": the remote knows no such repository")
}

func TestARedirectToAnotherHostIsRefusedAndCarriesNoPassword(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.signed("one")
	var asked atomic.Int32
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("hunter2"), 0o600))
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+r.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	f := o.follow(&ledger{}, at(url+"/remote.git"), func(c *Config) { c.Auth.PasswordFile = token })
	r := lookAt(t, f).look(t.Context())
	require.ErrorContains(t, r.Err, "sends us to another place, "+elsewhere)
	require.Zero(t, asked.Load())
}

func TestARepositoryThatMovedOnItsHostIsFollowed(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.signed("one")
	backend := o.httpBackend()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.RequestURI(), "/old.git/"); ok {
			http.Redirect(w, r, "/remote.git/"+rest, http.StatusMovedPermanently)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	require.Equal(t, sha, lookAt(t, o.follow(&ledger{}, at(url+"/old.git"))).must().Commit.SHA)
}

func TestAWebPageInsteadOfGitsAnswerIsSaidToBeOne(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>Please log in</html>")
	}))
	r := lookAt(t, o.follow(&ledger{}, at(url+"/remote.git"))).look(t.Context())
	require.ErrorContains(t, r.Err, "answers with a web page")
}

func TestARemoteThatAsksToWaitIsLeftAloneThatLong(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	f := o.follow(&ledger{}, at(url+"/remote.git"))
	r := lookAt(t, f).look(t.Context())
	require.ErrorContains(t, r.Err, "429 Too Many Requests and asks to wait until")

	p := f.newPace(time.Now())
	p.begin(time.Now())
	p.end(time.Now(), r.Err)
	p.poked = true
	require.Greater(t, time.Until(p.at()), 110*time.Second)
}

func TestADeadHTTPServerIsGivenUpAfterItsIdleTime(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for name, answer := range map[string]string{
		"it never answers":            "",
		"it dies within its answer":   "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nContent-Length: 5000\r\n\r\n001e# service=git-upload-pack\n0000",
		"it dies within its headers":  "HTTP/1.1 200 OK\r\nContent-",
		"it sends a byte and is dead": "H",
	} {
		t.Run(name, func(t *testing.T) {
			f := o.follow(&ledger{}, at("http://"+deaf(t, answer)+"/x.git"), func(c *Config) { c.Limits.Idle = 200 * time.Millisecond })
			began := time.Now()
			r := lookAt(t, f).look(t.Context())
			require.Error(t, r.Err)
			require.False(t, r.Reached)
			require.Less(t, time.Since(began), 5*time.Second)
		})
	}
}

// deaf takes connections, writes a beginning and is silent from then on.
func deaf(t *testing.T, beginning string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go func() {
				if beginning == "" {
					return
				}
				// An answer that comes before its request is another fault.
				_, _ = c.Read(make([]byte, 1))
				_, _ = fmt.Fprint(c, beginning)
			}()
		}
	}()
	return l.Addr().String()
}

func TestAFetchStopsAtItsLimits(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	for i := range 5 {
		o.write(fmt.Sprintf("f%d", i), fmt.Sprintf("file %d", i))
	}
	o.signed("one")
	url := serve(t, o.httpBackend()) + "/remote.git"
	for name, tt := range map[string]struct {
		url   string
		limit Limits
	}{
		"bytes over http":            {url, Limits{Received: 100}},
		"objects over http":          {url, Limits{Objects: 3}},
		"an object over http":        {url, Limits{Object: 3}},
		"bytes from a file":          {o.url(), Limits{Received: 100}},
		"objects from a file":        {o.url(), Limits{Received: 100, Objects: 3}},
		"refs over http":             {url, Limits{Adverts: 20}},
		"an object as a file's pack": {o.url(), Limits{Received: 2000, Object: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			f := o.follow(a, at(tt.url), func(c *Config) { c.Limits = tt.limit })
			if strings.HasPrefix(tt.url, "file:") {
				f.mirror.careful = true // so that it comes as a pack
			}
			r := lookAt(t, f).look(t.Context())
			require.ErrorIs(t, r.Err, errLimit)
			left, err := os.ReadDir(f.mirror.packDir())
			if err == nil {
				require.Empty(t, left, "a pack that was refused left something behind")
			}
		})
	}
	require.Empty(t, a.moves)
}

func TestALookEndsWithItsTime(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.signed("one")
	backend := o.httpBackend()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // progress now and then is not idle, but never a pack
			_, _ = w.Write([]byte("0008NAK\n"))
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("0006\x02."))
				w.(http.Flusher).Flush()
				tick(r.Context())
			}
			return
		}
		backend.ServeHTTP(w, r)
	}))
	f := o.follow(&ledger{}, at(url+"/remote.git"), func(c *Config) { c.Limits.Clone = 300 * time.Millisecond })
	began := time.Now()
	r := lookAt(t, f).look(t.Context())
	require.ErrorIs(t, r.Err, context.DeadlineExceeded)
	require.True(t, r.Reached)
	require.Less(t, time.Since(began), 5*time.Second)
}

func tick(ctx context.Context) {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func TestASHA256RepositoryIsNamedAsWhatItIs(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	dir := filepath.Join(filepath.Dir(o.bare), "long.git")
	o.git("", "init", "-q", "--bare", "-b", "main", "--object-format=sha256", dir)
	tree := o.git(dir, "write-tree")
	o.git(dir, "update-ref", "refs/heads/main", o.git(dir, "commit-tree", "-m", "x", tree))
	for _, url := range []string{"file://" + dir, serve(t, o.httpBackend()) + "/long.git"} {
		r := lookAt(t, o.follow(&ledger{}, at(url))).look(t.Context())
		require.ErrorIs(t, r.Err, errSHA256, url)
	}
}

func TestForcePushesOverHTTPFetchOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	one := o.signed("one")
	for i := range 5 {
		o.commit(fmt.Sprint(i), "-S")
	}
	o.push()
	f := o.follow(a, at(serve(t, o.httpBackend())+"/remote.git"))
	w := lookAt(t, f)
	w.must()
	o.git(o.work, "reset", "-q", "--hard", string(one))
	o.signed("aside")
	require.Equal(t, ring.NonFastForward, w.must().Refusal.Code)
	packs, err := f.mirror.packsBySize()
	require.NoError(t, err)
	require.Len(t, packs, 2)
	index, err := f.mirror.index(packs[1].name)
	require.NoError(t, err)
	n, err := index.Count()
	require.NoError(t, err)
	require.EqualValues(t, 3, n, "a commit, its tree and its file")
}
