package e2e

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// needDocker is for the scripts, which talk to the engine through the command.
func needDocker(t *testing.T) {
	t.Helper()
	needEngine(t)
	if _, err := exec.LookPath("docker"); err != nil {
		if os.Getenv("GITRING_ENGINE_TESTS") == "1" {
			t.Fatal("the docker command is not on this machine, and GITRING_ENGINE_TESTS=1 promises an engine")
		}
		t.Skip("the docker command is not on this machine")
	}
}

// demo is a copy of the checkout's demo under a name of its own, so that it can
// run beside one that a developer is looking at.
type demo struct {
	t               *testing.T
	root, home      string
	host, app, name string // name is the image's
	port            string // of the host
}

func newDemo(t *testing.T) *demo {
	t.Helper()
	needDocker(t)
	root, err := os.MkdirTemp("", "e2e-demo-")
	require.NoError(t, err)
	n := hosts.Add(1)
	d := &demo{t: t, root: root, home: filepath.Join(root, "home"), host: hostName(n)}
	d.app = "hello" + strings.TrimPrefix(d.host, "e2e")
	d.name = "gitring-e2e-" + d.app + ":1"
	_, d.port, err = net.SplitHostPort(freePort(t))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, out := d.verb("down")
		if t.Failed() {
			t.Logf("down:\n%s", out)
		}
		if err := local.clear("gitring.host=" + d.host); err != nil {
			t.Errorf("cannot clean up: %v", err)
		}
		local.unload(d.name)
		_ = os.RemoveAll(root)
	})
	for _, dir := range []string{"scripts", "deploy-examples/demo"} {
		require.NoError(t, os.CopyFS(filepath.Join(root, dir), os.DirFS(filepath.Join("..", dir))))
	}
	for _, f := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join("..", f))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(root, f), b, 0o644))
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "bin"), 0o755))
	require.NoError(t, os.Symlink(binary, filepath.Join(root, "bin/gitring")))
	repo := filepath.Join(root, "deploy-examples/demo/repo")
	require.NoError(t, os.Rename(filepath.Join(repo, "hello"), filepath.Join(repo, d.app)))
	d.rename("scripts/demo.sh", "label=gitring.host=demo", "label=gitring.host="+d.host)
	d.rename("scripts/demo.sh", "label=gitring.app=hello", "label=gitring.app="+d.app)
	d.rename("scripts/demo.sh", "/repo/hello/", "/repo/"+d.app+"/")
	d.rename("scripts/demo.sh", "gitring-demo:1", d.name)
	d.rename("deploy-examples/demo/config.yaml", "host: demo\n", "host: "+d.host+"\n")
	d.rename("deploy-examples/demo/repo/"+d.app+"/compose.yaml", "gitring-demo:1", d.name)
	return d
}

// rename puts a name of the test's own into a file, which must hold the demo's.
func (d *demo) rename(file, from, to string) {
	d.t.Helper()
	path := filepath.Join(d.root, file)
	fi, err := os.Stat(path)
	require.NoError(d.t, err)
	b, err := os.ReadFile(path)
	require.NoError(d.t, err)
	require.Contains(d.t, string(b), from, "%s no longer says so", file)
	require.NoError(d.t, os.WriteFile(path, []byte(strings.ReplaceAll(string(b), from, to)), fi.Mode()))
}

// verb runs the script as make does.
func (d *demo) verb(verb string) (code int, out string) {
	cmd := exec.Command(filepath.Join(d.root, "scripts/demo.sh"), verb)
	cmd.Env = append(bareEnviron(), "GITRING_DEMO_DIR="+d.home, "GITRING_DEMO_PORT="+d.port, "HOME="+d.root, "GOCACHE="+goEnv("GOCACHE"), "GOMODCACHE="+goEnv("GOMODCACHE"))
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), string(b)
	}
	if err != nil {
		return -1, err.Error()
	}
	return 0, string(b)
}

func goEnv(name string) string {
	b, _ := exec.Command("go", "env", name).Output()
	return strings.TrimSpace(string(b))
}

// does runs a verb that must succeed and say all of these.
func (d *demo) does(verb string, says ...string) string {
	d.t.Helper()
	code, out := d.verb(verb)
	require.Equal(d.t, 0, code, "demo %s:\n%s", verb, out)
	for _, s := range says {
		require.Regexp(d.t, regexp.MustCompile(s), out, "demo %s", verb)
	}
	return out
}

// reverts runs verbs that must say to take the last commit back first.
func (d *demo) reverts(verbs ...string) {
	d.t.Helper()
	for _, verb := range verbs {
		code, out := d.verb(verb)
		require.Equal(d.t, 1, code, "demo %s:\n%s", verb, out)
		require.Contains(d.t, out, "hint: make demo-revert", "demo %s", verb)
	}
}

func (d *demo) running() []identity {
	d.t.Helper()
	cs, err := local.containers("gitring.host=" + d.host)
	require.NoError(d.t, err)
	return identities(cs)
}

// dashboardOf is the address that a verb says.
func dashboardOf(t *testing.T, out string) string {
	t.Helper()
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/open\?code=[\w-]{43}`).FindString(out)
	require.NotEmpty(t, address, out)
	return address
}

// opened is what a browser that never was there is shown.
func opened(t *testing.T, address string) (int, string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	res, err := (&http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}).Get(address)
	require.NoError(t, err)
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(said)
}

func TestTheDemoTellsItsWholeStory(t *testing.T) {
	t.Parallel()
	d := newDemo(t)
	d.does("up", `commit [0-9a-f]{7} is live`, `Synced`, `http://127\.0\.0\.1:\d+/  hello from version 1`, `make demo-push`)
	first := d.running()
	require.Len(t, first, 3, "two instances and their front")
	before := dashboardOf(t, d.does("up", `the demo is running already`))
	after := dashboardOf(t, d.does("ui"))
	require.NotEqual(t, before, after)
	_, err := http.Get(before)
	require.Error(t, err, "two dashboards run")
	code, page := opened(t, after)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, page, d.app)
	code, _ = opened(t, after)
	require.Equal(t, http.StatusUnauthorized, code, "the address works once")
	require.ElementsMatch(t, first, d.running())

	d.does("push", `[1-9]\d* requests while it was replaced, 0 lost`, `hello from version 2`, `\(exit status 0\)`)
	second := d.running()
	require.Len(t, second, 3)
	require.NotSubset(t, first, second)

	out := d.does("unsigned", `\(exit status 7\)`, `Unsigned`, `hello from version 2`, `the refusal is gone`)
	require.NotContains(t, out, "hello from version 3")
	require.ElementsMatch(t, second, d.running())

	d.does("broken", `\(exit status 6\)`, `Restored`, `not ready within`, `hello from version 2`, `the old instances were not touched`)
	require.ElementsMatch(t, second, d.running())
	d.does("broken", `the last commit is broken already`)
	d.reverts("push", "unsigned", "canary")

	d.does("revert", `\(exit status 0\)`, `nothing was created or restarted`, `hello from version 2`)
	require.ElementsMatch(t, second, d.running())

	d.does("canary", `canary .* 20%`, `stable +[1-9]\d* `, `canary +[1-9]\d* `, `\(exit status 6\)`, `[1-9]\d* to version 3, which failed [1-9]\d*; 0 lost`,
		`canary at 20 %: \d+\.\d % of \d+ answers failed, 0\.0 % of \d+ of the stable version`, `hello from version 2`, `same containers as before`, `make demo-revert`)
	require.ElementsMatch(t, second, d.running())
	d.reverts("push", "unsigned", "broken", "canary")
	d.does("revert", `\(exit status 0\)`, `nothing was created or restarted`, `hello from version 2`)
	require.ElementsMatch(t, second, d.running())

	d.does("down", `the demo is gone`)
	_, err = http.Get(after)
	require.Error(t, err, "the dashboard outlived the demo")
	require.Empty(t, d.running())
	nets, err := local.networks("gitring.host=" + d.host)
	require.NoError(t, err)
	require.Empty(t, nets)
	require.ErrorIs(t, local.call("GET", "/images/"+d.name+"/json", nil, nil, nil), errGone)
	require.NoDirExists(t, d.home)
	d.does("down", `the demo is gone`)
	code, out = d.verb("push")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "hint: make demo")
}
