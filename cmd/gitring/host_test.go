package main

import (
	"bytes"
	"context"
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
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// farHost is a host that ssh knows as edge-1: a real sshd on loopback, and gitring on the
// PATH of its shell.
type farHost struct {
	dir    string // short, for sockets
	port   string
	known  string // the known_hosts of the user's ssh
	config string // and its configuration
}

// newFarHost starts a real sshd, and has "ssh" be the user's own with a configuration that
// knows it.
func newFarHost(t *testing.T) *farHost {
	t.Helper()
	const server = "/usr/sbin/sshd"
	if os.Geteuid() != 0 {
		t.Skip("needs root: sshd logs root in")
	}
	for _, program := range []string{server, "/usr/bin/ssh", "/usr/bin/ssh-keygen"} {
		if _, err := os.Stat(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	dir, err := os.MkdirTemp("", "gr")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	f := &farHost{dir: dir, known: filepath.Join(dir, "known_hosts"), config: filepath.Join(dir, "ssh_config")}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, f.port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for _, name := range []string{"host", "user"} {
		out, err := exec.Command("/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", filepath.Join(dir, name)).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	key, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	require.NoError(t, err)
	f.write(t, f.known, fmt.Sprintf("[127.0.0.1]:%s %s", f.port, key))
	exe, err := os.Executable()
	require.NoError(t, err)
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	require.NoError(t, os.Symlink(exe, filepath.Join(bin, "gitring"))) // testscript.Main goes by the name
	f.write(t, filepath.Join(dir, "sshd_config"), fmt.Sprintf(`Port %s
ListenAddress 127.0.0.1
HostKey %s/host
PidFile none
AuthorizedKeysFile %s/user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
LogLevel ERROR
SetEnv PATH=%s:/usr/bin:/bin GITRING_SOCKET=%s HOME=%s
`, f.port, dir, dir, bin, f.socket(), dir))
	f.write(t, f.config, fmt.Sprintf("Host *\n HostName 127.0.0.1\n Port %s\n IdentityFile %s/user\n IdentitiesOnly yes\n UserKnownHostsFile %s\n GlobalKnownHostsFile /dev/null\n", f.port, dir, f.known))
	require.NoError(t, os.MkdirAll("/run/sshd", 0o755))
	cmd := exec.Command(server, "-D", "-e", "-f", filepath.Join(dir, "sshd_config"))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+f.port)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond, "sshd does not answer: %s", &log)
	own := filepath.Join(dir, "own")
	require.NoError(t, os.Mkdir(own, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(own, "ssh"), []byte("#!/bin/sh\nexec /usr/bin/ssh -F "+f.config+" \"$@\"\n"), 0o755))
	t.Setenv("PATH", own+":"+os.Getenv("PATH"))
	t.Setenv("GITRING_SOCKET", filepath.Join(dir, "nobody")) // of this host
	t.Setenv("GITRING_HOST", "")
	t.Setenv("HOME", dir)
	return f
}

func (f *farHost) write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func (f *farHost) socket() string { return filepath.Join(f.dir, "s") }

// serve answers every request on the far host's socket, and tells what was asked.
func (f *farHost) serve(t *testing.T, at string, answer func(w http.ResponseWriter, r *http.Request)) (asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	l, err := net.Listen("unix", at)
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		all = append(all, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		mu.Unlock()
		answer(w, r)
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := all
		all = nil
		return out
	}
}

// called is one call of the command line.
type called struct {
	code      int
	out, said string
}

func call(args ...string) called {
	var out, said strings.Builder
	code := run(context.Background(), args, strings.NewReader(""), &out, &said, func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) })
	return called{code, out.String(), said.String()}
}

func answers(code int, body string) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

const oneHost = `{"host":"edge-1","gitring":"0.1.0","sources":[{"name":"prod","branch":"main","checking":false,"sync":"Synced","reason":"yes","apps":[]}]}`

func TestEveryVerbThatAsksTheDaemonAsksOneOverSSH(t *testing.T) {
	f := newFarHost(t)
	asked := f.serve(t, f.socket(), answers(http.StatusConflict, `{"code":"Conflict","error":"not now","hint":"later"}`))
	var verbs []string
	for verb, line := range asking {
		if line != "" {
			verbs = append(verbs, verb)
		}
	}
	slices.Sort(verbs)
	for _, verb := range verbs {
		t.Run(verb, func(t *testing.T) {
			line := append(strings.Fields(asking[verb]), "--config", filepath.Join(f.dir, "none.yaml"))
			near := call(append(line, "--socket", f.socket())...)
			said := asked()
			require.NotEmpty(t, said)
			require.Equal(t, near, call(append(line, "--host", "ssh://edge-1")...))
			require.Equal(t, said, asked())
		})
	}
}

func TestAHostIsChosenByFlagVariableAndInventory(t *testing.T) {
	f := newFarHost(t)
	asked := f.serve(t, f.socket(), answers(http.StatusOK, oneHost))
	other := filepath.Join(f.dir, "other.sock")
	askedOther := f.serve(t, other, answers(http.StatusOK, oneHost))
	require.Zero(t, call("status", "--host", "ssh://root@edge-1:"+f.port).code)
	require.Equal(t, []string{"GET /v1/status "}, asked())
	require.Zero(t, call("status", "--host", "ssh://edge-1"+other).code, "the socket there is named by the path")
	require.Empty(t, asked())
	require.Equal(t, []string{"GET /v1/status "}, askedOther())

	t.Setenv("GITRING_HOST", "ssh://edge-1")
	require.Zero(t, call("status").code)
	require.Len(t, asked(), 1)
	require.Zero(t, call("status", "--socket", other).code, "a socket that is named here is of this host")
	require.Len(t, askedOther(), 1)
	t.Setenv("GITRING_HOST", "")

	got := call("status", "--host", "edge-9")
	require.Equal(t, called{4, "", "error: \"edge-9\" is no address, and there is no inventory of hosts\nhint: write ssh://name, or list the host in ~/.config/gitring/fleet.yaml\n"}, got)
	f.write(t, filepath.Join(f.dir, ".config/gitring/fleet.yaml"), "hosts: {edge-9: {at: 'ssh://root@edge-1"+other+"'}, edge-1: {}}")
	require.Zero(t, call("status", "--host", "edge-9").code)
	require.Len(t, askedOther(), 1)
	require.Zero(t, call("status", "--host", "edge-1").code)
	require.Len(t, asked(), 1)
	got = call("status", "--host", "edge-8")
	require.Equal(t, 4, got.code)
	require.Contains(t, got.said, `no host "edge-8" in `)

	require.Equal(t, 2, call("status", "--host", "ssh://edge-1", "--socket", other).code)
	for _, verb := range []string{"serve", "validate", "config check"} {
		got := call(append(strings.Fields(verb), "--host", "ssh://edge-1")...)
		require.Equal(t, 2, got.code, verb)
		require.Contains(t, got.said, "asks no daemon of another host")
	}
	require.Equal(t, 2, call("status", "--host", "ssh://-oProxyCommand=touch").code)
	t.Setenv("GITRING_HOST", "ssh://-oProxyCommand=touch")
	require.Equal(t, 2, call("status").code)
}

func TestWhatTheFarEndSaysIsToldWithExit3(t *testing.T) {
	f := newFarHost(t)
	got := call("status", "--host", "ssh://edge-1")
	require.Equal(t, 3, got.code)
	require.Equal(t, "error: cannot reach the daemon on ssh://edge-1: cannot reach the daemon on "+f.socket()+": no such file or directory\n"+
		"hint: is gitring serve running here? --socket names another socket\n", got.said)

	require.NoError(t, os.Remove(filepath.Join(f.dir, "bin", "gitring")))
	got = call("status", "--host", "ssh://edge-1")
	require.Equal(t, 3, got.code)
	require.Contains(t, got.said, "gitring: ")
	require.Contains(t, got.said, "not found")
	require.Contains(t, got.said, "hint: is gitring installed there")

	require.Equal(t, 3, call("version", "--host", "ssh://edge-1").code, "of a host that was named, not to know is an error")

	before, err := os.ReadFile(f.known)
	require.NoError(t, err)
	f.write(t, f.known, strings.Replace(string(before), "AAAAC3", "AAAAC4", 1))
	got = call("status", "--host", "ssh://edge-1")
	require.Equal(t, 3, got.code, got.said)
	require.Contains(t, got.said, "ssh edge-1 has to work first")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, closed, _ := net.SplitHostPort(l.Addr().String())
	got = call("status", "--host", "ssh://edge-1:"+closed)
	require.Equal(t, 3, got.code)
	require.Contains(t, got.said, "Connection refused")
}

func TestAFolderIsNotPlannedAsForAnEmptyHostWhereAnotherHostWasAsked(t *testing.T) {
	f := newFarHost(t)
	got := call("plan", t.TempDir(), "--host", "ssh://edge-1")
	require.Equal(t, 3, got.code)
	require.Empty(t, got.out)
	require.NotContains(t, got.said, "planned as for")
	_ = f
}

func TestAStreamOverSSHEndsWithTheCommandAndAtTheDaemon(t *testing.T) {
	f := newFarHost(t)
	gone := make(chan struct{})
	f.serve(t, f.socket(), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"seq":1,"at":"2026-11-21T12:00:00Z","kind":"daemon.started"}`+"\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	told := &endsAt{text: "daemon.started", end: cancel}
	require.Zero(t, run(ctx, []string{"events", "-f", "--host", "ssh://edge-1"}, strings.NewReader(""), told, io.Discard, time.Now))
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("the daemon still writes to nobody")
	}
}

// endsAt ends something when a text was written.
type endsAt struct {
	text string
	end  func()
}

func (e *endsAt) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(e.text)) {
		e.end()
	}
	return len(b), nil
}

func TestVerbsThatAskNobodyAreKnown(t *testing.T) {
	for verb, line := range asking {
		if line == "" && !strings.HasPrefix(verb, "fleet ") && !slices.Contains([]string{"vouch", "rollback", "version", "doctor"}, verb) { // these ask where somebody answers
			require.Contains(t, alone, verb)
		}
		if line != "" {
			require.NotContains(t, alone, verb)
		}
	}
}
