package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// patience bounds every wait. It says nothing about how long things take: a
// busy machine is slow, and only a thing that never comes is a failure.
const patience = 4 * time.Minute

var hosts atomic.Int64

// host is one machine as gitring sees it: a name, a folder, an engine, a
// repository and a daemon.
type host struct {
	t       *testing.T
	name    string
	dir     string
	socket  string
	engine  *engine
	repo    *repo
	events  *eventLog
	config  obj      // of the daemon; change it before start
	loose   []string // volumes that no label tells to be its own
	ports   []string // of the host, as they were handed out
	program string   // of the daemon and of those who ask it; "" is binary
	etc     string   // the folder of the configuration; "" is dir

	mu      sync.Mutex // guards what follows
	subnets map[string]string
	daemon  *exec.Cmd // nil while none runs
	ended   chan struct{}
}

// newHost makes everything but the daemon. All of it is gone when the test ends,
// however it ends.
func newHost(t *testing.T) *host {
	t.Helper()
	needEngine(t)
	return hostOn(t, local)
}

func hostOn(t *testing.T, e *engine) *host {
	t.Helper()
	// Not t.TempDir: a socket's path has room for about 100 bytes.
	dir, err := os.MkdirTemp("", "e2e-")
	require.NoError(t, err)
	h := &host{
		t: t, name: hostName(hosts.Add(1)), dir: dir, socket: filepath.Join(dir, "s"), engine: e,
		subnets: map[string]string{},
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Cleanup(func() {
		if err := e.clear("gitring.host=" + h.name); err != nil {
			t.Errorf("cannot clean up: %v", err)
		}
		for _, name := range h.loose {
			if err := e.call("DELETE", "/volumes/"+name, nil, nil, nil); err != nil {
				t.Errorf("cannot remove volume %s: %v", name, err)
			}
		}
	})
	h.repo = newRepo(t, dir)
	h.config = obj{
		"host": h.name, "state": filepath.Join(dir, "state"), "data_root": filepath.Join(dir, "data"),
		"engine": obj{"kind": "docker", "url": e.url},
		"listen": obj{"socket": h.socket, "http": ""},
		"poll":   "1s",
		"sources": []any{obj{
			"name": "prod", "url": "file://" + h.repo.bare, "branch": "main", "path": ".",
			"trust": obj{"mode": "strict", "allowed_signers": h.repo.signers},
		}},
	}
	h.events = e.listen(t, h.name)
	t.Cleanup(func() {
		h.kill()
		if t.Failed() {
			h.tellTrouble()
		}
	})
	return h
}

// source is the one source of the configuration.
func (h *host) source() obj { return h.config["sources"].([]any)[0].(obj) }

// app is a name that no other test has.
func (h *host) app(name string) string { return name + strings.TrimPrefix(h.name, "e2e") }

// looseVolume makes a volume as docker volume create does: nothing says whose it is. It
// is removed once the host's containers are.
func (h *host) looseVolume(name string) {
	h.t.Helper()
	require.NoError(h.t, h.engine.call("POST", "/volumes/create", nil, strings.NewReader(`{"Name":"`+name+`"}`), nil))
	h.loose = append(h.loose, name)
}

// --- the daemon ---------------------------------------------------------------

func (h *host) configFile() string { return filepath.Join(cmp.Or(h.etc, h.dir), "config.yaml") }

func (h *host) command(args ...string) *exec.Cmd {
	cmd := exec.Command(cmp.Or(h.program, binary), args...)
	cmd.Dir = h.repo.work
	cmd.Env = append(bareEnviron(), "HOME="+h.dir, "GITRING_SOCKET="+h.socket)
	return cmd
}

func (h *host) writeConfig() {
	h.t.Helper()
	b, err := yaml.Marshal(h.config)
	require.NoError(h.t, err)
	require.NoError(h.t, os.MkdirAll(h.dir, 0o755))
	require.NoError(h.t, os.WriteFile(h.configFile(), b, 0o600))
}

// launch starts serve and returns at once.
func (h *host) launch() {
	h.t.Helper()
	h.writeConfig()
	log, err := os.OpenFile(filepath.Join(h.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(h.t, err)
	defer log.Close()
	cmd := h.command("serve", "--config", h.configFile())
	cmd.Stderr, cmd.Stdout = log, log
	// A test process that is killed takes its daemons along.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(h.t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.daemon, h.ended = cmd, ended
}

// start starts the daemon and returns when it answers.
func (h *host) start() {
	h.t.Helper()
	h.launch()
	h.until("the daemon answers", func() bool {
		_, err := h.look()
		if err != nil && h.gone() {
			require.FailNow(h.t, "the daemon ended", "%s", h.tail(20))
		}
		return err == nil
	})
}

// gone reports whether the daemon ended by itself.
func (h *host) gone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

// kill is kill -9; it returns when the daemon is no more.
func (h *host) kill() { h.end(syscall.SIGKILL) }

// stop is what systemd does. It returns how the daemon ended.
func (h *host) stop() error {
	h.t.Helper()
	cmd := h.end(syscall.SIGTERM)
	if cmd.ProcessState.Success() {
		return nil
	}
	return errors.New(cmd.ProcessState.String())
}

func (h *host) end(sig syscall.Signal) *exec.Cmd {
	h.mu.Lock()
	cmd, ended := h.daemon, h.ended
	h.daemon = nil
	h.mu.Unlock()
	if cmd == nil {
		return nil
	}
	_ = cmd.Process.Signal(sig)
	select {
	case <-ended:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		h.t.Errorf("the daemon did not end by signal %s", sig)
		<-ended
	}
	return cmd
}

func (h *host) tail(n int) string {
	b, err := os.ReadFile(filepath.Join(h.dir, "log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// tellTrouble shows what helps to see why a test failed.
func (h *host) tellTrouble() {
	h.t.Logf("the last lines of the daemon of %s:\n%s", h.name, h.tail(80))
	cs, err := h.engine.containers("gitring.host=" + h.name)
	h.t.Logf("its containers (%v):", err)
	for _, c := range cs {
		h.t.Logf("  %s %s slot %s, %s since %s, exit %d, VERSION=%s %s", c.ID[:12], c.Name, c.slot(), c.State.Status,
			c.State.StartedAt.Format("15:04:05.000"), c.State.ExitCode, c.env("VERSION"), c.State.Error)
	}
	evs := h.events.after(0, "create", "start", "kill", "die", "stop", "destroy", "update", "oom")
	for _, e := range evs[max(0, len(evs)-60):] {
		h.t.Logf("  %s %-8s %.12s %s", e.at().UTC().Format("15:04:05.000"), e.Action, e.Actor.ID, e.Actor.Attributes["name"])
	}
}

// --- what the daemon says ------------------------------------------------------

// status is the part of "status -o json" that the tests ask for.
type status struct {
	Host    string
	Engine  string
	Cluster *struct {
		Acts        string `json:"acts"`
		Name, State string
		Nodes       []struct {
			Name, State string
			Tasks       int
		}
	}
	Store   string
	Config  string
	API     string
	Sources []struct {
		Name, Tip, Commit, Trusted, Signer, Sync, Reason, Forge string

		Refusal *refusal
		Next    *struct{ Commit, Reason string }
		Apps    []appStatus

		Conditions []struct{ Type, Reason string }
	}
	Overrides []struct{ Kind, Target, Actor string }
}

type refusal struct {
	Code, Commit, App, File, Says, Hint string
	Line                                int
}

type appStatus struct {
	Name, Health, Commit, Reason string
	Refusal                      *refusal
	Services                     []serviceStatus
}

type serviceStatus struct {
	Name, Kind, Phase, Version, Commit, Reason, Code, Health string

	LastGood               string `json:"last_good"`
	Wanted, Ready, Updated int
	Rollout                *struct{ Phase, Version, Commit, Reason string }
	Instances              []struct {
		ID, Name, State, Version, Commit, Reason, Node string
		Slot, Restarts                                 int
		Adopted                                        bool
	}
	Conditions []struct{ Type, Reason string }
}

// app is the state of an app; the zero value when it is not listed.
func (s status) app(name string) appStatus {
	for _, src := range s.Sources {
		for _, a := range src.Apps {
			if a.Name == name {
				return a
			}
		}
	}
	return appStatus{}
}

// service is the state of a service; the zero value when it is not listed.
func (s status) service(app, name string) serviceStatus {
	for _, sv := range s.app(app).Services {
		if sv.Name == name {
			return sv
		}
	}
	return serviceStatus{}
}

// look asks the daemon's socket once.
func (h *host) look() (status, error) {
	var d net.Dialer
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", h.socket) },
	}}
	var st status
	res, err := c.Get("http://gitring/v1/status")
	if err != nil {
		return st, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return st, err
	}
	if res.StatusCode != http.StatusOK {
		return st, fmt.Errorf("status: %s: %s", res.Status, b)
	}
	return st, json.Unmarshal(b, &st)
}

// status is the daemon's truth now.
func (h *host) status() status {
	h.t.Helper()
	st, err := h.look()
	require.NoError(h.t, err)
	return st
}

// until polls until ok; the only way in which these tests wait.
func (h *host) until(what string, ok func() bool) {
	h.t.Helper()
	over := time.Now().Add(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(over) {
			st, err := h.look()
			b, _ := json.MarshalIndent(st, "", " ")
			require.FailNow(h.t, "this never came: "+what, "%v %s", err, b)
		}
		<-tick.C
	}
}

// await polls until the status is as wanted, and returns it.
func (h *host) await(what string, ok func(status) bool) (st status) {
	h.t.Helper()
	h.until(what, func() bool {
		var err error
		st, err = h.look()
		return err == nil && len(st.Sources) > 0 && ok(st)
	})
	return st
}

// synced waits until a commit is live, whole.
func (h *host) synced(sha string) status {
	h.t.Helper()
	return h.await("commit "+sha+" is live", func(st status) bool {
		return st.Sources[0].Commit == sha && st.Sources[0].Sync == "Synced"
	})
}

// deployed pushes and waits until it is live.
func (h *host) deployed(subject string, fs files) (sha string) {
	h.t.Helper()
	sha = h.repo.pushed(subject, fs)
	h.synced(sha)
	return sha
}

// run runs a client verb and returns its exit code and output.
func (h *host) run(args ...string) (code int, out string) {
	h.t.Helper()
	b, err := h.command(args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(h.t, err)
	}
	if exit != nil {
		return exit.ExitCode(), string(b)
	}
	return 0, string(b)
}

// --- what the engine says --------------------------------------------------------

// containers are all of this host, a service's by slot; no service is all.
func (h *host) containers(services ...string) []*container {
	h.t.Helper()
	cs, err := h.engine.containers("gitring.host=" + h.name)
	require.NoError(h.t, err)
	if len(services) > 0 {
		cs = slices.DeleteFunc(cs, func(c *container) bool { return !slices.Contains(services, c.service()) })
	}
	slices.SortFunc(cs, func(a, b *container) int {
		return strings.Compare(a.service()+a.slot()+a.ID, b.service()+b.slot()+b.ID)
	})
	return cs
}

// identity is what a container keeps while nobody touches it.
type identity struct {
	ID        string
	StartedAt time.Time
	Restarts  int
}

func identities(cs []*container) []identity {
	var out []identity
	for _, c := range cs {
		out = append(out, identity{c.ID, c.State.StartedAt, c.RestartCount})
	}
	return out
}

func ids(cs []*container) []string {
	var out []string
	for _, c := range cs {
		out = append(out, c.ID)
	}
	return out
}

// ask requests a path of an instance, from the host.
func (h *host) ask(c *container, path string) (code int, body string) {
	h.t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + c.address() + ":8080" + path)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(h.t, err)
	return res.StatusCode, string(b)
}

// tell posts to an instance, whatever comes of it.
func (h *host) tell(c *container, path string) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	if res, err := client.Post("http://"+c.address()+":8080"+path, "", nil); err == nil {
		_ = res.Body.Close()
	}
}

// one is the only container of a service.
func (h *host) one(service string) *container {
	h.t.Helper()
	cs := h.containers(service)
	require.Len(h.t, cs, 1)
	return cs[0]
}
