package main

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/exit"
)

// gnupg gives a script a key ring of its own, in a folder whose name is short
// enough for the agent's socket. The agent ends with the script.
func gnupg(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: gnupg")
	}
	dir, err := os.MkdirTemp("", "ring-gpg-")
	ts.Check(err)
	ts.Defer(func() {
		_ = exec.Command("gpgconf", "--homedir", dir, "--kill", "gpg-agent").Run()
		_ = os.RemoveAll(dir)
	})
	ts.Setenv("GNUPGHOME", dir)
}

// TestInitChangesNothingOnTheEngine holds init to looking: the engine is asked
// which Compose projects run, and gets no other kind of request.
func TestInitChangesNothingOnTheEngine(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("no ssh-keygen")
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(dir, "none"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GITRING_CONFIG", "")
	do := func(name string, args ...string) {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "infra", "web"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "infra", "db"), 0o755))
	for _, app := range []string{"web", "db"} {
		file := filepath.Join(dir, "infra", app, "compose.yaml")
		require.NoError(t, os.WriteFile(file, []byte("services: {s: {image: nginx:1.27}}\n"), 0o644))
	}
	do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key")
	do("git", "init", "-q", "-b", "main", "infra")
	for _, kv := range [][2]string{{"user.name", "alice"}, {"user.email", "alice@example.org"}, {"gpg.format", "ssh"}, {"user.signingkey", dir + "/key.pub"}} {
		do("git", "-C", "infra", "config", kv[0], kv[1])
	}
	do("git", "-C", "infra", "add", ".")
	do("git", "-C", "infra", "commit", "-q", "-S", "-m", "One")

	asked := engineOfCompose(t, filepath.Join(dir, "e"))
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{
		"init", "--repo", filepath.Join(dir, "infra"), "--out", filepath.Join(dir, "out"), "--yes", "--engine", "unix://" + filepath.Join(dir, "e"),
	}, strings.NewReader(""), &out, &errs, time.Now)
	require.Equal(t, exit.OK, code, "%s%s", &out, &errs)
	require.Contains(t, out.String(), "web refused ForeignProject web/compose.yaml: a Compose project web runs here that gitring did not start (web-s-1)")
	require.Contains(t, out.String(), "hint: gitring adopt web --reason '…' takes it over as it runs; or run docker compose down in /opt/web, never with -v: the volumes stay")
	require.Contains(t, out.String(), "hand the running apps over")
	require.Regexp(t, `(?m)^  db/s +create `, out.String())
	require.NotRegexp(t, `(?m)^  web/s `, out.String(), "what runs under Compose is not created a second time")
	for _, r := range asked() {
		method, _, _ := strings.Cut(r, " ")
		require.Contains(t, []string{http.MethodGet, http.MethodHead}, method, r)
	}
}

// engineOfCompose is an engine on which Compose runs the project web. It tells
// what it was asked.
func engineOfCompose(t *testing.T, socket string) func() []string {
	var mu sync.Mutex
	var asked []string
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.Path)
		mu.Unlock()
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			_, _ = w.Write([]byte(`[{"Id":"0123456789abcdef","Names":["/web-s-1"],"State":"running","Labels":{` +
				`"com.docker.compose.project":"web","com.docker.compose.service":"s","com.docker.compose.project.working_dir":"/opt/web"}}]`))
		case strings.HasSuffix(r.URL.Path, "/volumes"):
			_, _ = w.Write([]byte(`{"Volumes":[]}`))
		case strings.HasSuffix(r.URL.Path, "/version"):
			_, _ = w.Write([]byte(`{"Version":"20.10.24","ApiVersion":"1.41"}`))
		case strings.HasSuffix(r.URL.Path, "/_ping"):
			_, _ = w.Write([]byte("OK"))
		default:
			_, _ = w.Write([]byte("[]"))
		}
	})}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		served.Wait()
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		require.NotEmpty(t, asked)
		return asked
	}
}

// On a terminal a person hears what is missing in gitring's words, not in Git's besides.
func TestInitShowsNothingOfGitsOwnWords(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("no ssh-keygen")
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(dir, "none"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GITRING_CONFIG", "")
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(dir, "no-engine"))
	v, code := seenOn(t, 160, 60, t.Context(), time.Now, "init", "--repo", dir)
	require.Equal(t, exit.NotFound, code, v.String())
	require.Contains(t, v.String(), "error: cannot open repository: ")
	require.NotContains(t, v.String(), "fatal:")

	infra := filepath.Join(dir, "infra") // without a remote
	for _, cmd := range [][]string{
		{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", dir + "/key"},
		{"git", "init", "-q", "-b", "main", infra},
		{"git", "-C", infra, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "One"},
	} {
		out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	v, code = seenOn(t, 160, 60, t.Context(), time.Now, "init", "--repo", infra, "--out", filepath.Join(dir, "out"), "--key", dir+"/key.pub", "--yes")
	require.Equal(t, exit.OK, code, v.String())
	require.Contains(t, v.String(), "wrote")
	require.NotContains(t, v.String(), "No such remote")
	require.NotContains(t, v.String(), "error:")
}
