package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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
	script          string // in scripts
	host, app, name string // name is the image's
	port            string // of the host
}

func newDemo(t *testing.T) *demo {
	t.Helper()
	d := copyOfDemo(t, "demo.sh", func(host string) []string { return []string{host} })
	repo := filepath.Join(d.root, "deploy-examples/demo/repo")
	require.NoError(t, os.Rename(filepath.Join(repo, "hello"), filepath.Join(repo, d.app)))
	d.rename("scripts/demo.sh", "label=gitring.host=demo", "label=gitring.host="+d.host)
	d.rename("scripts/demo.sh", "label=gitring.app=hello", "label=gitring.app="+d.app)
	d.rename("scripts/demo.sh", "/repo/hello/", "/repo/"+d.app+"/")
	d.rename("scripts/demo.sh", "gitring-demo:1", d.name)
	d.rename("deploy-examples/demo/config.yaml", "host: demo\n", "host: "+d.host+"\n")
	d.rename("deploy-examples/demo/repo/"+d.app+"/compose.yaml", "gitring-demo:1", d.name)
	return d
}

// newFleetDemo is a copy of the demo with three hosts, under names of its own.
func newFleetDemo(t *testing.T) *demo {
	t.Helper()
	d := copyOfDemo(t, "demo-fleet.sh", func(host string) []string { return []string{host + "-canary-1", host + "-edge-1", host + "-edge-2"} })
	const repo = "deploy-examples/demo/fleet/repo/"
	for _, file := range []string{"scripts/demo-fleet.sh", repo + "gitring.yaml", repo + ".gitring/fleet.yaml"} {
		d.rename(file, "demo-canary-", d.host+"-canary-")
		d.rename(file, "demo-edge-", d.host+"-edge-")
	}
	d.rename("scripts/demo-fleet.sh", "${name#demo-}", "${name#"+d.host+"-}")
	d.rename("scripts/demo-fleet.sh", "app=hello-", "app="+d.app+"-")
	d.rename(repo+"gitring.yaml", "name: hello-", "name: "+d.app+"-")
	d.rename("scripts/demo-fleet.sh", "gitring-demo-fleet:1", d.name)
	d.rename(repo+"hello/compose.yaml", "gitring-demo-fleet:1", d.name)
	return d
}

// copyOfDemo has what a script of a demo needs. What it makes on the engine is removed at the
// end: all of some hosts, and the image.
func copyOfDemo(t *testing.T, script string, made func(host string) []string) *demo {
	t.Helper()
	needDocker(t)
	root, err := os.MkdirTemp("", "e2e-demo-")
	require.NoError(t, err)
	n := hosts.Add(1)
	d := &demo{t: t, root: root, script: script, home: filepath.Join(root, "home"), host: hostName(n)}
	d.app = "hello" + strings.TrimPrefix(d.host, "e2e")
	d.name = "gitring-e2e-" + d.app + ":1"
	_, d.port, err = net.SplitHostPort(freePort(t))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, out := d.verb("down")
		if t.Failed() {
			t.Logf("down:\n%s", out)
		}
		for _, host := range made(d.host) {
			if err := local.clear("gitring.host=" + host); err != nil {
				t.Errorf("cannot clean up: %v", err)
			}
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
	cmd := exec.Command(filepath.Join(d.root, "scripts", d.script), verb)
	cmd.Env = append(bareEnviron(), "GITRING_DEMO_DIR="+d.home, "GITRING_DEMO_FLEET_DIR="+d.home, "GITRING_DEMO_PORT="+d.port, "HOME="+d.root, "GOCACHE="+goEnv("GOCACHE"), "GOMODCACHE="+goEnv("GOMODCACHE"))
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

// settled are its containers when there are n: what was taken away goes after its outcome is known.
func (d *demo) settled(n int) []identity {
	d.t.Helper()
	over := time.Now().Add(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		cs, err := local.containers("gitring.host=" + d.host)
		require.NoError(d.t, err)
		if len(cs) == n {
			return identities(cs)
		}
		require.True(d.t, time.Now().Before(over), "%d containers, and %d were to be left", len(cs), n)
		<-tick.C
	}
}

// told is the fingerprint that the demo's app tells of its secret.
func (d *demo) told() string {
	d.t.Helper()
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://127.0.0.1:" + d.port + "/")
	require.NoError(d.t, err)
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	require.NoError(d.t, err)
	found := regexp.MustCompile(`^hello from version \d+, secret's fingerprint ([0-9a-f]{6})\n$`).FindSubmatch(page)
	require.NotNil(d.t, found, "%s", page)
	return string(found[1])
}

// hides expects that the secret whose fingerprint is told lies in its own file of the demo's folder, and
// neither in another one nor in what a verb said or the engine keeps.
func (d *demo) hides(fingerprint, said string) {
	d.t.Helper()
	var all [][]byte
	require.NoError(d.t, filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // the daemon still works in it
			return nil
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		all = append(all, b)
		return err
	}))
	var secret []byte
	for _, b := range all {
		mac := hmac.New(sha256.New, b)
		mac.Write([]byte("gitring demo"))
		if len(b) == 48 && strings.HasPrefix(hex.EncodeToString(mac.Sum(nil)), fingerprint) {
			secret = b
		}
	}
	require.NotNil(d.t, secret, "no file of the demo has the secret that the app tells the fingerprint of")
	in := 0
	for _, b := range all {
		if bytes.Contains(b, secret) {
			in++
		}
	}
	require.Equal(d.t, 1, in, "files of the demo have the secret")
	require.NotContains(d.t, said, string(secret))
	cs, err := local.containers("gitring.host=" + d.host)
	require.NoError(d.t, err)
	for _, c := range cs {
		var raw json.RawMessage
		require.NoError(d.t, local.call("GET", "/containers/"+c.ID+"/json", nil, nil, &raw))
		require.NotContains(d.t, string(raw), string(secret))
	}
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
	d.does("up", `commit [0-9a-f]{7} is live`, `Synced`, `http://127\.0\.0\.1:\d+/  hello from version 1, secret's fingerprint [0-9a-f]{6}\n`, `make demo-push`)
	first := d.settled(4) // two instances, their front, and one without the secret
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
	require.ElementsMatch(t, first, d.settled(4))

	d.does("push", `[1-9]\d* requests while it was replaced, 0 lost`, `hello from version 2`, `\(exit status 0\)`)
	second := d.settled(4)
	require.NotSubset(t, first, second)

	old := d.told()
	out := d.does("secret", `token\.enc`, `[1-9]\d* requests while it was replaced, 0 lost`, `\(exit status 0\)`, `hello from version 2`,
		`it runs with the new secret: the fingerprint was `+old+`\n`, `hello/other has no secret, and runs on in the same container as before`)
	fresh := d.told()
	require.NotEqual(t, old, fresh)
	d.hides(fresh, out)
	third := d.settled(4)
	common := 0
	for _, c := range second {
		if slices.Contains(third, c) {
			common++
		}
	}
	require.Equal(t, 2, common, "the front and the service without the secret stay, and nothing else")
	second = third

	out = d.does("unsigned", `\(exit status 7\)`, `Unsigned`, `hello from version 2`, `the refusal is gone`)
	require.NotContains(t, out, "hello from version 3")
	require.ElementsMatch(t, second, d.settled(4))

	d.does("broken", `\(exit status 6\)`, `Restored`, `not ready within`, `hello from version 2`, `the old instances were not touched`)
	require.ElementsMatch(t, second, d.settled(4))
	d.does("broken", `the last commit is broken already`)
	d.reverts("push", "unsigned", "canary")

	d.does("revert", `\(exit status 0\)`, `nothing was created or restarted`, `hello from version 2, secret's fingerprint `+fresh+`\n`)
	require.ElementsMatch(t, second, d.settled(4))

	d.does("canary", `canary .* 20%`, `stable +[1-9]\d* `, `canary +[1-9]\d* `, `\(exit status 6\)`, `[1-9]\d* to version 3, which failed [1-9]\d*; 0 lost`,
		`canary at 20 %: \d+\.\d % of \d+ answers failed, 0\.0 % of \d+ of the stable version`, `hello from version 2`, `same containers as before`, `make demo-revert`)
	require.ElementsMatch(t, second, d.settled(4))
	d.reverts("push", "unsigned", "broken", "canary")
	d.does("revert", `\(exit status 0\)`, `nothing was created or restarted`, `hello from version 2`)
	require.ElementsMatch(t, second, d.settled(4))

	d.does("down", `the demo is gone`)
	_, err = http.Get(after)
	require.Error(t, err, "the dashboard outlived the demo")
	d.settled(0)
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
