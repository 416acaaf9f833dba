package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ownEngine is a Docker Engine for one test, which may kill it.
type ownEngine struct {
	*engine
	t   *testing.T
	dir string
	// bridge is its default network. With none, dockerd would take docker0 away from
	// the machine's own engine.
	bridge string
	args   []string // more of dockerd's
	proc   *exec.Cmd
}

// newEngine starts a dockerd that shares nothing with the machine's own: not
// its folders, not its bridge, not its containerd's names, no firewall rules.
func newEngine(t *testing.T, args ...string) *ownEngine {
	t.Helper()
	needEngine(t) // the image's program is built with it
	if os.Geteuid() != 0 {
		t.Skip("an engine of its own needs root")
	}
	if _, err := exec.LookPath(dockerd()); err != nil {
		if os.Getenv("GITRING_ENGINE_TESTS") == "1" {
			t.Fatal("dockerd is not on this machine, and GITRING_ENGINE_TESTS=1 promises an engine")
		}
		t.Skip("dockerd is not on this machine")
	}
	dir, err := os.MkdirTemp("", "e2e-engine-")
	require.NoError(t, err)
	e := &ownEngine{engine: dial("unix://" + filepath.Join(dir, "sock")), t: t, dir: dir, args: args}
	e.bridge = "e2e" + dir[max(0, len(dir)-10):]
	e.link("add", e.bridge, "type", "bridge")
	t.Cleanup(e.gone)
	e.start()
	require.NoError(t, e.load(image))
	return e
}

// dockerd may stand outside of a user's PATH.
func dockerd() string {
	if path, err := exec.LookPath("dockerd"); err == nil {
		return path
	}
	return "/usr/sbin/dockerd"
}

func (e *ownEngine) start() {
	e.t.Helper()
	log, err := os.OpenFile(filepath.Join(e.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(e.t, err)
	defer log.Close()
	name := filepath.Base(e.dir)
	cmd := exec.Command(dockerd(), append([]string{
		"--host", e.url, "--data-root", e.dir + "/data", "--exec-root", e.dir + "/exec", "--pidfile", e.dir + "/pid",
		"--containerd-namespace", name, "--containerd-plugins-namespace", name + "-plugins",
		"--storage-driver", "vfs", "--bridge", e.bridge, "--iptables=false", "--ip6tables=false", "--shutdown-timeout", "3",
	}, e.args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = bareEnviron()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	require.NoError(e.t, cmd.Start())
	e.proc = cmd
	over := time.Now().Add(patience)
	for e.ping() != nil {
		require.True(e.t, time.Now().Before(over), "the engine does not answer: %s", e.tail())
		<-time.After(50 * time.Millisecond)
	}
}

// link changes the machine's network interfaces.
func (e *ownEngine) link(words ...string) {
	e.t.Helper()
	out, err := exec.Command("ip", append([]string{"link"}, words...)...).CombinedOutput()
	require.NoError(e.t, err, "ip link %v: %s", words, out)
}

// end ends dockerd, and with it what it runs: by SIGTERM at once, by SIGKILL
// when it starts again.
func (e *ownEngine) end(sig syscall.Signal) {
	e.t.Helper()
	pidFile := filepath.Join(e.dir, "exec/containerd/containerd.pid")
	pid, _ := os.ReadFile(pidFile)
	require.NoError(e.t, e.proc.Process.Signal(sig))
	_ = e.proc.Wait()
	e.proc = nil
	// Its containerd dies with it, a moment later. A dockerd that starts before
	// that, or before somebody buried it, takes it for alive and waits in vain.
	over := time.Now().Add(patience)
	for alive(strings.TrimSpace(string(pid))) && time.Now().Before(over) {
		<-time.After(10 * time.Millisecond)
	}
	_ = os.Remove(pidFile)
}

// alive reports whether a process is neither gone nor waiting to be buried.
func alive(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	_, after, _ := strings.Cut(string(b), ") ")
	return pid != "" && err == nil && !strings.HasPrefix(after, "Z")
}

func (e *ownEngine) tail() string {
	b, _ := os.ReadFile(filepath.Join(e.dir, "log"))
	return string(b[max(0, len(b)-4000):])
}

// gone leaves nothing of the engine on the machine.
func (e *ownEngine) gone() {
	if e.proc == nil {
		e.start() // what a killed engine left mounted and running, only an engine takes away
	}
	if e.t.Failed() {
		e.t.Logf("the engine's last lines:\n%s", e.tail())
	}
	e.end(syscall.SIGTERM)
	e.link("delete", e.bridge)
	for _, pid := range processesWith("-namespace", filepath.Base(e.dir)) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // what an engine forgets that was killed while it started something
	}
	for _, m := range mountsBelow(e.dir) {
		_ = syscall.Unmount(m, syscall.MNT_DETACH)
	}
	if err := os.RemoveAll(e.dir); err != nil {
		e.t.Errorf("cannot remove the engine: %v", err)
	}
}

// processesWith are those with two neighbouring arguments.
func processesWith(key, value string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		if !strings.Contains(string(b), "\x00"+key+"\x00"+value+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(f, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func mountsBelow(dir string) (out []string) {
	b, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], dir+"/") {
			out = append(out, f[1])
		}
	}
	return out
}

func TestAnEngineThatRestartsInTheMiddleOfARolloutConverges(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	h := hostOn(t, e.engine)
	app := h.app("web")
	patient := rollout(obj{"failure_threshold": 5})
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{
			"web": web(v, replicas(2), patient), "db": db("1", "pg"),
		}, obj{"volumes": obj{"pg": obj{}}})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)
	settled(h)
	database := h.one("db").ID

	// The host reboots, and gitring never comes back (I19).
	h.kill()
	before := ids(h.containers())
	e.end(syscall.SIGTERM)
	e.start()
	h.events = e.listen(t, h.name)
	h.until("everything that was ready runs again, without us", func() bool {
		cs := h.containers()
		for _, c := range cs {
			if !c.State.Running {
				return false
			}
			if code, _ := h.ask(c, "/healthz"); code != 200 {
				return false
			}
		}
		return len(cs) == 3
	})
	require.Equal(t, before, ids(h.containers()))

	// And when it does come back after all, there is nothing to do.
	mark := h.events.mark()
	h.start()
	h.synced(first)
	code, out := h.run("sync", "--wait")
	require.Equal(t, 0, code, out)
	require.Empty(t, h.events.after(mark, "create", "start", "kill", "die", "destroy"))

	converged := func(v, sha string) {
		t.Helper()
		h.synced(sha)
		cs := h.containers("web")
		require.Len(t, cs, 2, "no duplicate, no orphan")
		for _, c := range cs {
			require.Equal(t, v, c.env("VERSION"))
			code, body := h.ask(c, "/")
			require.Equal(t, 200, code, body)
		}
		require.Equal(t, database, h.one("db").ID)
		onlyOne(t, h.journal(h.one("db")))
		nets, err := e.networks("gitring.host=" + h.name)
		require.NoError(t, err)
		require.Equal(t, []string{app + "_default"}, nets)
	}

	for i, tt := range []struct {
		name   string
		moment string // of the rollout
		sig    syscall.Signal
	}{
		{"it is killed while the first new instance starts", "start", syscall.SIGKILL},
		{"it is restarted while the first old instance stops", "kill", syscall.SIGTERM},
	} {
		mark := h.events.mark()
		v := string(rune('2' + i))
		sha := h.repo.pushed(tt.name, version(v))
		h.events.first(t, mark, func(ev engineEvent) bool { return ev.Action == tt.moment && ev.service() == "web" })
		e.end(tt.sig)
		h.await(tt.name+": status says that the engine is away", func(st status) bool { return st.Engine != "" })
		e.start()
		h.events = e.listen(t, h.name)
		converged(v, sha)
	}
}
