package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARemoteThatIsAwayStopsNoHealing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(v, replicas(2))})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)
	settled(h)

	away := h.repo.bare + ".away"
	require.NoError(t, os.Rename(h.repo.bare, away))
	st := h.await("status says that the remote is away", func(st status) bool {
		return strings.Contains(st.Sources[0].Reason, "cannot look at file://"+h.repo.bare)
	})
	require.Equal(t, "Synced", st.Sources[0].Sync, "what was asked for runs, whether or not anybody can be asked now")
	code, out := h.run("sync", "--wait")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "cannot look at file://"+h.repo.bare)

	heals := func(what string) {
		t.Helper()
		gone := h.containers()[0]
		require.NoError(t, h.engine.remove(gone.ID))
		h.until(what, func() bool {
			cs := h.containers()
			return len(cs) == 2 && cs[0].ID != gone.ID && cs[0].State.Running && cs[0].version() == gone.version()
		})
		h.await(what, func(st status) bool { return st.service(app, "web").Ready == 2 })
	}
	heals("healed while the remote is away")

	// A host that boots without network starts the last good plan.
	h.kill()
	for _, c := range h.containers() {
		require.NoError(t, h.engine.remove(c.ID))
	}
	h.start()
	h.until("the last good plan runs", func() bool {
		cs := h.containers()
		return len(cs) == 2 && cs[0].State.Running && cs[1].State.Running
	})
	h.await("and is ready", func(st status) bool { return st.service(app, "web").Ready == 2 })
	heals("healed after a boot without network")

	require.NoError(t, os.Rename(away, h.repo.bare))
	h.deployed("Version 2", version("2"))
	require.Empty(t, h.status().Sources[0].Reason)
}

// --- smart HTTP ------------------------------------------------------------------

// gitHTTP serves a folder of repositories with git's own backend, to bot with
// the password only, or to anybody without one.
func gitHTTP(t *testing.T, root, password string) (url string, asked *atomic.Int64) {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	require.NoError(t, err)
	backend := &cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"},
		Stderr: io.Discard,
	}
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if user, pass, _ := r.BasicAuth(); password != "" && (user != "bot" || pass != password) {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// freePort is a loopback address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func (h *host) secret(name, text string) string {
	h.t.Helper()
	file := filepath.Join(h.dir, name)
	require.NoError(h.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// hook posts as GitHub does.
func hook(t *testing.T, at, secret, event string) int {
	t.Helper()
	body := []byte(`{"ref":"refs/heads/main"}`)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	r, err := http.NewRequest("POST", "http://"+at+"/v1/webhook/prod", bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("X-GitHub-Event", event)
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	return res.StatusCode
}

func TestASmartHTTPRemoteIsFollowedByWebhook(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	const password, secret = "a-token-that-nobody-may-see", "0123456789abcdef0123456789abcdef"
	url, asked := gitHTTP(t, h.dir, password)
	at := freePort(t)
	src := h.source()
	src["url"] = url + "/remote.git"
	src["auth"] = obj{"username": "bot", "password_file": h.secret("password", password+"\n")}
	src["webhook"] = obj{"forge": "github", "secret_file": h.secret("hook", secret+"\n")}
	h.config["listen"] = obj{"socket": h.socket, "http": at}
	h.config["poll"] = "24h" // so that what comes, came by the hook

	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(v)})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)

	second := h.repo.pushed("Version 2", version("2"))
	looks := asked.Load()
	require.Equal(t, http.StatusUnauthorized, hook(t, at, strings.Repeat("x", 32), "push"))
	require.Equal(t, http.StatusAccepted, hook(t, at, secret, "ping"))
	require.Equal(t, looks, asked.Load(), "neither is a reason to look")
	require.Equal(t, first, h.status().Sources[0].Commit)
	require.Equal(t, http.StatusAccepted, hook(t, at, secret, "push"))
	h.synced(second)
	require.Equal(t, "2", h.one("web").env("VERSION"))

	// Everything else that knocks at the hook's door.
	for path, want := range map[string]int{"/healthz": 200, "/": 404, "/v1/status": 404, "/v1/webhook/other": 404, "/v1/webhook/prod": 405} {
		res, err := http.Get("http://" + at + path)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, want, res.StatusCode, path)
	}
	noSecret(t, h, password, secret)
}

// noSecret holds everything that the daemon wrote to what it may say (I12).
func noSecret(t *testing.T, h *host, secrets ...string) {
	t.Helper()
	_, events := h.run("events", "-o", "json")
	_, st := h.run("status", "-o", "json")
	texts := map[string]string{"the log": h.tail(1 << 20), "events": events, "status": st}
	require.NoError(t, filepath.WalkDir(filepath.Join(h.dir, "state"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			texts[path] = string(b)
			return err
		}
		return err
	}))
	for where, text := range texts {
		for i, s := range secrets {
			require.False(t, strings.Contains(text, s), "secret %d stands in %s", i+1, where)
		}
	}
}

// --- ssh ----------------------------------------------------------------------------

// sshd runs a real server on a loopback port, which lets one key in. The settings are
// lines of its configuration.
func (h *host) sshd(settings ...string) (url, key, known string) {
	h.t.Helper()
	const server = "/usr/sbin/sshd"
	if os.Geteuid() != 0 {
		h.t.Skip("needs root: sshd logs root in")
	}
	if _, err := os.Stat(server); err != nil {
		h.t.Skip("needs " + server + " (openssh-server)")
	}
	at := freePort(h.t)
	host, port, _ := net.SplitHostPort(at)
	dir := filepath.Join(h.dir, "ssh")
	require.NoError(h.t, os.Mkdir(dir, 0o700))
	line := newKey(h.t, dir+"/host")
	newKey(h.t, dir+"/deploy")
	require.NoError(h.t, os.WriteFile(dir+"/known_hosts", fmt.Appendf(nil, "[%s]:%s %s", host, port, line), 0o600))
	require.NoError(h.t, os.WriteFile(dir+"/config", fmt.Appendf(nil, `Port %s
ListenAddress %s
HostKey %s/host
PidFile none
AuthorizedKeysFile %s/deploy.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
LogLevel ERROR
MaxStartups 1000
LoginGraceTime 600
%s`, port, host, dir, dir, strings.Join(settings, "\n")), 0o600))
	require.NoError(h.t, os.MkdirAll("/run/sshd", 0o755))
	cmd := exec.Command(server, "-D", "-e", "-f", dir+"/config")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(h.t, cmd.Start())
	h.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	h.until("sshd answers", func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "ssh://root@" + at + h.repo.bare, dir + "/deploy", dir + "/known_hosts"
}

func TestAnSSHRemoteIsFollowed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	url, key, known := h.sshd()
	h.source()["url"] = url
	h.source()["auth"] = obj{"ssh_key_file": key, "known_hosts_file": known}
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(v)})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)
	h.deployed("Version 2", version("2"))
	require.Equal(t, "2", h.one("web").env("VERSION"))
}
