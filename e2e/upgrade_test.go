package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// systemctlScript plays systemd for one unit of one test: it starts a program, starts it again
// when it ends, and stops it.
const systemctlScript = `#!/bin/sh
D='%s'
case "$1" in
show)
	active=inactive sub=dead pid=0
	if [ -e "$D/wanted" ]; then
		active=active sub=running pid=$(cat "$D/pid" 2>/dev/null)
		if [ -z "$pid" ]; then active=activating sub=start pid=0; elif [ "$pid" = 0 ]; then active=activating sub=auto-restart; fi
	fi
	echo "LoadState=loaded"; echo "ActiveState=$active"; echo "SubState=$sub"; echo "MainPID=$pid"; echo "User="; echo "SupplementaryGroups="
	echo "ExecStart={ path=%s ; argv[]=%s serve ; ignore_errors=no }" ;;
start) [ -e "$D/wanted" ] || { rm -f "$D/pid"; touch "$D/wanted" "$D/running"; setsid "$D/supervise" >/dev/null 2>&1 </dev/null & } ;;
stop)
	rm -f "$D/wanted"
	pid=$(cat "$D/pid" 2>/dev/null)
	[ "${pid:-0}" = 0 ] || kill "$pid"
	while [ -e "$D/running" ]; do sleep 0.1; done ;;
esac
`

const superviseScript = `#!/bin/sh
D='%s'
while [ -e "$D/wanted" ]; do
	'%s' serve --config '%s' >>"$D/log" 2>&1 &
	echo $! >"$D/pid.new"; mv "$D/pid.new" "$D/pid"
	wait $!
	echo 0 >"$D/pid.new"; mv "$D/pid.new" "$D/pid"
	[ ! -e "$D/wanted" ] || sleep 0.2
done
rm -f "$D/running"
`

// unit is a host whose daemon is started by systemctl, as it stands first on PATH.
type unit struct {
	*host
	dir, installed, key string
}

func newUnit(h *host, program string) *unit {
	h.t.Helper()
	dir := filepath.Join(h.dir, "unit")
	u := &unit{host: h, dir: dir, installed: filepath.Join(dir, "bin", "gitring")}
	require.NoError(h.t, os.MkdirAll(filepath.Dir(u.installed), 0o755))
	body, err := os.ReadFile(program)
	require.NoError(h.t, err)
	require.NoError(h.t, os.WriteFile(u.installed, body, 0o755))
	for name, text := range map[string]string{
		"bin/systemctl": fmt.Sprintf(systemctlScript, dir, u.installed, u.installed),
		"supervise":     fmt.Sprintf(superviseScript, dir, u.installed, h.configFile()),
	} {
		require.NoError(h.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	h.t.Cleanup(func() {
		if _, err := u.types("systemctl", "stop"); err != nil {
			h.t.Errorf("cannot stop the daemon: %v", err)
		}
		if h.t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			h.t.Logf("the daemon said:\n%s", log[max(0, len(log)-4000):])
		}
	})
	return u
}

// types runs a program with systemctl on its PATH.
func (u *unit) types(name string, args ...string) (string, error) {
	path := filepath.Join(u.dir, "bin") + ":" + os.Getenv("PATH")
	if name == "systemctl" {
		name = filepath.Join(u.dir, "bin", name)
	}
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Env = append(bareEnviron(), "PATH="+path, "HOME="+u.host.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// upgrade is what root types, with how it ended.
func (u *unit) upgrade(args ...string) (code int, out string) {
	u.t.Helper()
	out, err := u.types(u.installed, append([]string{"upgrade"}, args...)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), out
	}
	require.NoError(u.t, err, out)
	return 0, out
}

// release is a file of a program, signed.
func (u *unit) release(name string, program []byte) string {
	u.t.Helper()
	file := filepath.Join(u.dir, name)
	require.NoError(u.t, os.WriteFile(file, program, 0o644))
	_ = os.Remove(file + ".sig")
	out, err := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-f", u.key, "-n", "gitring-release", file).CombinedOutput()
	require.NoError(u.t, err, string(out))
	return file
}

// daemonIs waits until the daemon of a release answers, on trial or not.
func (u *unit) daemonIs(release string) {
	u.t.Helper()
	u.until("gitring "+release+" answers", func() bool {
		_, out := u.run("status", "-o", "json")
		return strings.Contains(out, `"gitring":"`+release+`"`) || strings.Contains(out, `"gitring": "`+release+`"`)
	})
}

// The whole of an upgrade on an engine: three releases that are wrong are put back, a good one
// stays (with GITRING_E2E_LONG one that changes the form of the database), and no container notices any of it.
func TestAnUpgradeTouchesNoContainer(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can upgrade")
	}
	key := filepath.Join(h.dir, "release-key")
	public := strings.Join(strings.Fields(newKey(t, key))[:2], " ")
	before := filepath.Join(h.dir, "before")
	require.NoError(t, goBuild(before, "github.com/gitring/gitring/cmd/gitring",
		"-X github.com/gitring/gitring/ring.Release=0.0.9", "-X 'github.com/gitring/gitring/upgrade.Keys="+public+"'"))
	u := newUnit(h, before)
	u.key = key
	h.writeConfig()

	app := h.app("web")
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1", replicas(2)), "db": db("1", "./pg")})})
	_, err := u.types("systemctl", "start")
	require.NoError(t, err)
	u.daemonIs("0.0.9")
	h.synced(first)
	settled(h)
	mark, were := h.events.mark(), identities(h.containers())
	untouched := func(release string) {
		t.Helper()
		u.daemonIs(release)
		require.Equal(t, were, identities(h.containers()))
		require.Empty(t, h.events.after(mark, mutations...))
	}

	next, to := binary, "0.1.0"
	if os.Getenv("GITRING_E2E_LONG") != "" { // to compile one whose database has another form takes minutes
		next, to = nextRelease(t, h.dir), "9.9.9"
	}
	code, out := h.run("rehearse", "--config", h.configFile())
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "would change nothing")

	for wrong, sabotage := range map[string]string{
		"it ended":                     `[ "$1" != serve ] || exit 3`,
		"gitring 0.0.9, and not " + to: `[ "$1" != serve ] || exec '` + before + `' "$@"`,
		"does not start here":          `[ "$1" != rehearse ] || { echo "error: does not start here" >&2; exit 1; }`,
	} {
		file := u.release("wrong", []byte("#!/bin/sh\n"+sabotage+"\nexec '"+next+"' \"$@\"\n"))
		code, out := u.upgrade(file, "--probation", "2s")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, wrong)
		untouched("0.0.9")
	}
	file := u.release("good", must(os.ReadFile(next)))
	require.NoError(t, os.WriteFile(file+".sig", must(os.ReadFile(filepath.Join(u.dir, "wrong.sig"))), 0o644))
	code, out = u.upgrade(file)
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "over something else")

	file = u.release("good", must(os.ReadFile(next)))
	code, out = u.upgrade(file, "--check")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "gitring "+to+" would change nothing that 0.0.9 would not")
	untouched("0.0.9")
	code, out = u.upgrade(file, "--probation", "2s")
	require.Equal(t, 0, code, out)
	untouched(to)
	require.FileExists(t, u.installed+".prev")
	require.FileExists(t, filepath.Join(h.dir, "state", "gitring.db.prev"))
	code, out = h.run("history")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "Version 1", "what was known before is still known")
	h.deployed("Version 2", files{app + "/compose.yaml": h.compose(app, obj{"web": web("2", replicas(2)), "db": db("1", "./pg")})})
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
