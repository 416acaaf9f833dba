package daemon

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/store"
	"github.com/gitring/gitring/upgrade"
)

// patient is a host of which a daemon runs, with mounts of its own: the test below breaks it.
type patient struct {
	t   *testing.T // of the case
	all *testing.T
	dir string
	d   *Daemon
	ctx context.Context
	// What stands between the daemon and its engine.
	engine  *http.Server
	hangs   atomic.Pointer[chan struct{}] // closed when it goes on
	rewrite atomic.Pointer[func(info map[string]any)]
	// The web server of its second remote, and the listener's public name.
	skew   atomic.Int64
	health atomic.Int64 // the status that is answered, 0 for the listener's own
}

// ample is the room that the state of the patient has.
const ample = "mode=0700,size=4g,nr_inodes=200k"

const remoteName = "git.gitring.test"

func (p *patient) path(name string) string { return filepath.Join(p.dir, name) }

func (p *patient) write(name, text string, mode os.FileMode) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(p.path(name), []byte(text), mode))
	require.NoError(p.t, os.Chmod(p.path(name), mode))
}

func (p *patient) run(dir string, argv ...string) {
	p.t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%v: %s", argv, out)
}

// over mounts a file of the test over one of the system, for this process alone.
func (p *patient) over(file, text string) {
	p.t.Helper()
	name := strings.ReplaceAll(strings.Trim(file, "/"), "/", "-")
	p.write(name, text, 0o644)
	require.NoError(p.t, syscall.Mount(p.path(name), file, "", syscall.MS_BIND, ""))
}

func (p *patient) tmpfs(dir string, flags uintptr, data string) {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(dir, 0o700))
	require.NoError(p.t, syscall.Mount("tmpfs", dir, "tmpfs", flags, data))
	p.all.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// serveEngine puts a socket before the machine's engine.
func (p *patient) serveEngine() {
	p.t.Helper()
	l, err := net.Listen("unix", p.path("engine.sock"))
	require.NoError(p.t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", engineSocket)
		}},
		ModifyResponse: func(res *http.Response) error {
			if !strings.Contains(res.Header.Get("Content-Type"), "json") || !strings.HasSuffix(res.Request.URL.Path, "/info") {
				return nil
			}
			var answer map[string]any
			if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
				return err
			}
			// What other tests do on this engine meanwhile, and how old the machine is, is no part of this.
			answer["CgroupVersion"] = "2"
			answer["DefaultAddressPools"] = []any{map[string]any{"Base": "10.128.0.0/9", "Size": 24}}
			if change := p.rewrite.Load(); change != nil {
				(*change)(answer)
			}
			body, err := json.Marshal(answer)
			res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			res.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return err
		},
	}
	p.engine = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if on := p.hangs.Load(); on != nil {
			select {
			case <-*on:
			case <-r.Context().Done():
				return
			}
		}
		proxy.ServeHTTP(w, r)
	})}
	server := p.engine
	go func() { _ = server.Serve(l) }()
	p.all.Cleanup(func() { _ = server.Close() })
}

const engineSocket = "/var/run/docker.sock"

// serveRemote is a web server under the name of a remote, whose clock is by skew another one.
func (p *patient) serveRemote() (port string, roots *x509.CertPool) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(p.t, err)
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: remoteName}, DNSNames: []string{remoteName}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, &key.PublicKey, key)
	require.NoError(p.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(p.t, err)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Duration(p.skew.Load())).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusNotFound)
	}))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	srv.StartTLS()
	p.all.Cleanup(srv.Close)
	roots = x509.NewCertPool()
	roots.AddCert(cert)
	_, port, err = net.SplitHostPort(srv.Listener.Addr().String())
	require.NoError(p.t, err)
	return port, roots
}

// commit makes a signed commit and pushes it.
func (p *patient) commit(subject string) {
	p.t.Helper()
	p.run(p.path("work"), "git", "-c", "user.name=a", "-c", "user.email=alice@example.org", "-c", "gpg.format=ssh",
		"-c", "user.signingkey="+p.path("key"), "commit", "-q", "--allow-empty", "-S", "-m", subject)
	p.run(p.path("work"), "git", "push", "-q", "origin", "HEAD:main")
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	dir, err := os.MkdirTemp("", "g") // short: a unix socket's path has at most 107 bytes
	require.NoError(t, err)
	p := &patient{t: t, all: t, dir: dir}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p.over("/etc/hosts", "127.0.0.1 localhost "+remoteName+"\n")
	p.over("/etc/resolv.conf", "nameserver 127.0.0.99\noptions timeout:1 attempts:1\n")
	p.over("/etc/group", "root:x:0:\ndocker:x:99:gitring\n")
	p.serveEngine()
	port, roots := p.serveRemote()
	was := noFollow.Transport
	noFollow.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	t.Cleanup(func() { noFollow.Transport = was })
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(int(p.health.Load())) }))
	t.Cleanup(web.Close)
	p.health.Store(http.StatusOK)

	p.run(dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", p.path("key"))
	public, err := os.ReadFile(p.path("key.pub"))
	require.NoError(t, err)
	p.write("allowed_signers", "alice@example.org "+string(public), 0o600)
	p.run(dir, "git", "init", "-q", "--bare", "-b", "main", "repo.git")
	p.run(dir, "git", "init", "-q", "-b", "main", "work")
	p.run(p.path("work"), "git", "remote", "add", "origin", p.path("repo.git"))
	p.commit("First")
	p.write("age.key", testAgeKey+"\n", 0o600)
	p.tmpfs(p.path("secrets"), 0, "mode=0700")
	p.write("tokens", "", 0o600)
	p.token("ann", time.Now().AddDate(0, 0, 30).Format(time.DateOnly))
	unitLinks = []string{p.path("unit")}
	p.write("unit", "", 0o644)
	address := freeAddress(t)
	p.write("c.yaml", fmt.Sprintf(`host: doctor-broken
state: state
data_root: data
engine: {url: "unix://%[1]s/engine.sock"}
listen: {socket: run/s, http: "127.0.0.1:0", url: %[2]q, api: {address: %[3]q}}
api: {tokens: tokens}
secrets: {keys: [{age_file: age.key}], dir: %[1]s/secrets, at_rest: memory}
sources:
  - {name: prod, url: "file://%[1]s/repo.git", poll: 5s, trust: {mode: strict, allowed_signers: allowed_signers}}
  - {name: away, url: "https://%[4]s:%[5]s/repo.git", trust: {mode: disabled}}
`, dir, web.URL, address, remoteName, port), 0o600)
	cfg, err := config.Load(p.path("c.yaml"))
	require.NoError(t, err)
	// A disk of its own, so that it can be filled. It is one in memory, and that is told throughout.
	p.tmpfs(cfg.State, 0, ample)
	require.NoError(t, os.MkdirAll(filepath.Join(cfg.State, "front"), 0o700))
	release, err := store.Lock(cfg.State, cfg.Engine.URL, cfg.Host)
	require.NoError(t, err)
	t.Cleanup(release)
	p.d, err = New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	p.ctx = ctx
	ended := make(chan error, 1)
	go func() { ended <- p.d.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		p.d.Close()
	})
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// token writes one into the file of tokens.
func (p *patient) token(name, until string) {
	p.t.Helper()
	scopes, err := api.ParseScopes("read")
	require.NoError(p.t, err)
	_, line := api.NewToken(name, scopes, until)
	p.write("tokens", line.Line()+"\n", 0o600)
}

// report is each check of now, by what it is about and its name.
func (p *patient) report() map[string]doctor.Check {
	p.t.Helper()
	p.d.reports.mu.Lock()
	p.d.reports.last = doctor.Report{}
	p.d.reports.mu.Unlock()
	r, err := p.d.doctor(p.ctx)
	require.NoError(p.t, err)
	out := map[string]doctor.Check{}
	for _, c := range r.Checks {
		out[c.About+": "+c.Name] = c
	}
	return out
}

// differ are the checks whose result is another one.
func differ(a, b map[string]doctor.Check) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name].Result != b[name].Result {
			names = append(names, name)
		}
	}
	return names
}

// become looks until one check has another result than before, and no other has, but for
// those that cannot be made meanwhile: they are skipped, or not there. "" is no check at all.
func (p *patient) become(before map[string]doctor.Check, check string, is doctor.Result, with ...string) map[string]doctor.Check {
	p.t.Helper()
	var now map[string]doctor.Check
	var others []string
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		now, others = p.report(), nil
		for _, name := range differ(before, now) {
			blind := now[name].Result == doctor.Skip || now[name].Result == ""
			if name != check && !(blind && slices.ContainsFunc(with, func(w string) bool { return strings.HasPrefix(name, w) })) {
				others = append(others, fmt.Sprintf("%s: %s: %s", name, now[name].Result, now[name].Says))
			}
		}
		if len(others) == 0 && (check == "" || now[check].Result == is) {
			return now
		}
	}
	require.Empty(p.t, others, "no other check")
	require.Equal(p.t, is, now[check].Result, "%s: %s", check, now[check].Says)
	return nil
}

// TestWhatIsBrokenForRealIsFoundAndNothingElseWithIt breaks a host on which a daemon runs, one
// thing after another, and mends it again. In each case the one check finds it, all others say
// what they said before, and afterwards so does that one.
func TestWhatIsBrokenForRealIsFoundAndNothingElseWithIt(t *testing.T) {
	const child = "GITRING_TEST_BROKEN"
	if os.Getenv(child) == "" {
		if os.Geteuid() != 0 {
			t.Skip("mounts of its own need root")
		}
		if c, err := net.Dial("unix", engineSocket); err != nil {
			if os.Getenv("GITRING_ENGINE_TESTS") == "1" {
				require.NoError(t, err, "no engine answers, and GITRING_ENGINE_TESTS=1 promises one")
			}
			t.Skipf("no engine answers at %s", engineSocket)
		} else {
			_ = c.Close()
		}
		t.Parallel()
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
		cmd.Env = append(os.Environ(), child+"=1", "DOCKER_HOST=")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		if err != nil && strings.Contains(err.Error(), "operation not permitted") {
			t.Skip("this machine lets nobody have mounts of his own")
		}
		require.NoError(t, err, "%s", out)
		t.Logf("%s", out)
		return
	}
	p := newPatient(t)
	cfg := p.d.cfg
	info := func(change func(a map[string]any)) func() {
		return func() {
			p.rewrite.Store(&change)
		}
	}
	asWas := func() { p.rewrite.Store(nil) }
	remount := func(data string) {
		t.Helper()
		require.NoError(t, syscall.Mount("tmpfs", cfg.State, "tmpfs", syscall.MS_REMOUNT, data))
	}
	of := func() (s syscall.Statfs_t) {
		t.Helper()
		require.NoError(t, syscall.Statfs(cfg.State, &s))
		return s
	}
	room := func(mib int64) string {
		s := of()
		return fmt.Sprintf("size=%dk", int64(s.Blocks-s.Bfree)*s.Bsize>>10+mib<<10) //nolint:gosec // a size
	}
	inodes := func(n uint64) string {
		s := of()
		return fmt.Sprintf("nr_inodes=%d", s.Files-s.Ffree+n)
	}
	type broken struct {
		name string
		breaks,
		mends func()
		check string
		is    doctor.Result
		says  string
		with  []string // beginnings of checks that cannot be made meanwhile
	}
	const only = "GITRING_TEST_BROKEN_ONLY" // a part of the name of one case
	cases := []broken{
		{"a state that others may read", func() { must(t, os.Chmod(cfg.State, 0o750)) }, func() { must(t, os.Chmod(cfg.State, 0o700)) }, "state: owner and mode", doctor.Fail, "0750", nil},
		{"a disk that is nearly full", func() { remount(room(200)) }, func() { remount(ample) }, "state: room", doctor.Warn, "MiB are free", nil},
		{"few inodes", func() { remount(inodes(5000)) }, func() { remount(ample) }, "state: inodes", doctor.Warn, "are left", nil},
		{"no inodes", func() { remount(inodes(10)) }, func() { remount(ample) }, "state: inodes", doctor.Fail, "are left", nil},
		{"a disk that is full", func() { remount(room(3)) }, func() { remount(ample) }, "state: room", doctor.Fail, "MiB are free", nil},
		{"a folder of fronts where nothing may run", func() { p.tmpfs(cfg.State+"/front", syscall.MS_NOEXEC, "mode=0700") }, func() { must(t, syscall.Unmount(cfg.State+"/front", 0)) }, "state: fronts can run", doctor.Warn, "noexec", nil},
		{"a backup of last month", func() {
			body, _ := json.Marshal(map[string]any{"at": time.Now().AddDate(0, 0, -40)})
			must(t, os.WriteFile(cfg.State+"/backup.json", body, 0o600))
		}, func() { must(t, os.Remove(cfg.State+"/backup.json")) }, "state: backup", doctor.Warn, "40 days old", nil},
		{"a trial that does not end", func() {
			must(t, upgrade.BeginTrial(cfg.State, upgrade.Trial{To: "9.9.9"}))
			old := time.Now().Add(-24 * time.Hour)
			all, _ := filepath.Glob(cfg.State + "/*trial*")
			require.Len(t, all, 1)
			must(t, os.Chtimes(all[0], old, old))
		}, func() {
			all, _ := filepath.Glob(cfg.State + "/*trial*")
			must(t, os.Remove(all[0]))
		}, "state: upgrade", doctor.Warn, "9.9.9", nil},
		{"a configuration that was changed", func() { p.exchange("c.yaml", "poll: 5s", "poll: 6s") }, func() { p.exchange("c.yaml", "poll: 6s", "poll: 5s") }, "state: configuration", doctor.Warn, "changed", nil},
		{"a key file that is gone", func() { must(t, os.Rename(p.path("age.key"), p.path("gone"))) }, func() { must(t, os.Rename(p.path("gone"), p.path("age.key"))) }, "secrets: key files", doctor.Fail, "is not there", nil},
		{"a key file that others may read", func() { must(t, os.Chmod(p.path("age.key"), 0o644)) }, func() { must(t, os.Chmod(p.path("age.key"), 0o600)) }, "secrets: key files", doctor.Fail, "others may read", nil},
		{"no unit that places files at boot", func() { must(t, os.Remove(p.path("unit"))) }, func() { p.write("unit", "", 0o644) }, "secrets: reboot", doctor.Warn, "after a reboot without gitring", nil},
		{"a swap", func() { p.over("/proc/swaps", "Filename Type Size Used Priority\n/dev/sdz2 partition 1 0 -2\n") }, func() { must(t, syscall.Unmount("/proc/swaps", 0)) }, "secrets: swap", doctor.Warn, "secrets", nil},
		{"signers that others may write", func() { must(t, os.Chmod(p.path("allowed_signers"), 0o666)) }, func() { must(t, os.Chmod(p.path("allowed_signers"), 0o600)) }, "trust: prod: files", doctor.Fail, "allowed_signers", nil},
		{"a clock that is 40 s off", func() { p.skew.Store(int64(40 * time.Second)) }, func() { p.skew.Store(0) }, "clock: against " + remoteName + p.port(), doctor.Warn, "s apart", nil},
		{"a clock that is wrong", func() { p.skew.Store(-int64(6 * time.Minute)) }, func() { p.skew.Store(0) }, "clock: against " + remoteName + p.port(), doctor.Fail, "apart", nil},
		{"a name that nobody knows", func() { p.write("etc-hosts", "127.0.0.1 localhost\n", 0o644) }, func() { p.write("etc-hosts", "127.0.0.1 localhost "+remoteName+"\n", 0o644) }, "source: away: name", doctor.Fail, remoteName, []string{"clock: against " + remoteName + p.port()}},
		{"a public name that answers with an error", func() { p.health.Store(502) }, func() { p.health.Store(200) }, "doors: listen.url", doctor.Warn, "502", nil},
		{"a token that ends soon", func() { p.token("ann", time.Now().AddDate(0, 0, 3).Format(time.DateOnly)) }, p.goodToken, "doors: tokens", doctor.Warn, "ann", nil},
		{"a token that never ends", func() { p.token("bot", "never") }, p.goodToken, "doors: tokens", doctor.Warn, "never expire: bot", nil},
		{"a file of tokens that others may write", func() { must(t, os.Chmod(p.path("tokens"), 0o666)) }, p.goodToken, "doors: tokens", doctor.Fail, "tokens", nil},
		{"a line of tokens that is none", func() { p.append("tokens", "nonsense\n") }, p.goodToken, "doors: tokens", doctor.Fail, "line 2", nil},
		{"no file of tokens", func() { must(t, os.Remove(p.path("tokens"))) }, p.goodToken, "doors: tokens", doctor.Fail, "tokens", nil},
		{"somebody in the group of the engine", func() { p.write("etc-group", "docker:x:99:gitring,eve\n", 0o644) }, func() { p.write("etc-group", "docker:x:99:gitring\n", 0o644) }, "people: docker", doctor.Warn, "eve", nil},
		{"a branch that is gone", func() { p.run(p.path("repo.git"), "git", "update-ref", "-d", "refs/heads/main") }, func() { p.run(p.path("work"), "git", "push", "-q", "origin", "HEAD:main") }, "source: prod: branch", doctor.Fail, "main is not there", nil},
		{"a journal that was changed", func() { p.journal("at = at + 1") }, func() { p.journal("at = at - 1") }, "state: journal", doctor.Fail, "line 1", nil},
		{"cgroup v1", info(func(a map[string]any) { a["CgroupVersion"] = "1" }), asWas, "engine: cgroup", doctor.Warn, "version 1", nil},
		{"an engine without root", info(func(a map[string]any) { a["SecurityOptions"] = []string{"name=rootless"} }), asWas, "engine: root", doctor.Warn, "rootless", nil},
		{"a log driver that cannot be read", info(func(a map[string]any) { a["LoggingDriver"] = "syslog" }), asWas, "engine: logs", doctor.Warn, "syslog", nil},
		{"a storage driver of old", info(func(a map[string]any) { a["Driver"] = "devicemapper" }), asWas, "engine: storage", doctor.Warn, "devicemapper", nil},
		{"an engine that tells little", info(func(a map[string]any) { delete(a, "LoggingDriver") }), asWas, "engine: logs", doctor.Skip, "does not tell", nil},
		{"an engine that hangs", func() { p.hangs.Store(new(make(chan struct{}))) }, func() { close(*p.hangs.Swap(nil)) }, "engine: answers", doctor.Fail, "no answer within 5s", []string{"engine: ", "reboot: ", "apps: beside"}},
		{"an engine that was stopped", func() { must(t, p.engine.Close()) }, p.serveEngine, "engine: answers", doctor.Fail, "engine", []string{"engine: ", "reboot: ", "apps: beside"}},
		{"an engine's socket that is another file", func() { must(t, p.engine.Close()); p.write("engine.sock", "", 0o600) }, func() { must(t, os.Remove(p.path("engine.sock"))); p.serveEngine() }, "engine: answers", doctor.Fail, "engine", []string{"engine: ", "reboot: ", "apps: beside"}},
	}
	// It is calm once it has looked at both remotes and believes one.
	calm := time.Now().Add(time.Minute)
	before := p.report()
	for before["trust: prod: beginning"].Result == doctor.Skip || before["source: prod: branch"].Result != doctor.OK || before["apps: host"].Result != doctor.OK {
		require.True(t, time.Now().Before(calm), "%v", before)
		time.Sleep(200 * time.Millisecond)
		before = p.report()
	}
	require.Contains(t, before["state: file system"].Says, "in memory: a reboot empties it")
	for name, c := range before {
		t.Logf("%s: %s: %s", name, c.Result, c.Says)
	}
	cases = slices.DeleteFunc(cases, func(c broken) bool { return !strings.Contains(c.name, os.Getenv(only)) })
	found := 0
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p.t = t
			defer func() { p.t = t }()
			c.breaks()
			var now map[string]doctor.Check
			func() {
				defer c.mends()
				now = p.become(before, c.check, c.is, c.with...)
			}()
			require.Contains(t, now[c.check].Says, c.says)
			require.Equal(t, c.is != doctor.Skip, now[c.check].Hint != "", "what is wrong has a hint")
			p.become(before, "", "")
			found++
		})
		p.t = t
	}
	require.Len(t, cases, found)
	t.Logf("%d were found", len(cases))
}

func must(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

func (p *patient) goodToken() { p.token("ann", time.Now().AddDate(0, 0, 30).Format(time.DateOnly)) }

func (p *patient) port() string {
	u, err := url.Parse(p.d.cfg.Sources[1].URL)
	require.NoError(p.t, err)
	return ":" + u.Port()
}

func (p *patient) append(name, text string) {
	p.t.Helper()
	body, err := os.ReadFile(p.path(name))
	require.NoError(p.t, err)
	p.write(name, string(body)+text, 0o600)
}

func (p *patient) exchange(name, from, to string) {
	p.t.Helper()
	body, err := os.ReadFile(p.path(name))
	require.NoError(p.t, err)
	require.Contains(p.t, string(body), from)
	p.write(name, strings.Replace(string(body), from, to, 1), 0o600)
}

// journal changes its first line, as whoever may write the database can.
func (p *patient) journal(set string) {
	p.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.d.cfg.State, "gitring.db"))
	require.NoError(p.t, err)
	defer db.Close() //nolint:errcheck // what it was for is done
	for _, said := range []string{"DROP TRIGGER IF EXISTS journal_stays", "UPDATE journal SET " + set + " WHERE seq = 1"} {
		_, err = db.Exec(said)
		require.NoError(p.t, err)
	}
}
