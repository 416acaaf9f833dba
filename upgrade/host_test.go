package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/exit"
)

// tools are programs that stand before all others on PATH.
func tools(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, body := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

func TestWhereAnUpgradeIsNotForThisHostItSaysWhatToRun(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gitring")
	require.NoError(t, os.WriteFile(program, nil, 0o755))
	link := filepath.Join(t.TempDir(), "gitring")
	require.NoError(t, os.Symlink(program, link))
	show := fmt.Sprintf(`case "$1" in show) echo LoadState=loaded; echo ActiveState=active; echo SubState=running; echo MainPID=%d
echo User=gitring; echo SupplementaryGroups=docker adm; echo 'ExecStart={ path=%s ; argv[]=%s serve ; ignore_errors=no }';; esac`, os.Getpid(), link, link)
	none := "exit 1"
	place := func(inside bool) (Unit, *exit.Failure) {
		u, err := Place(t.Context(), Systemd{"gitring.service"}, func() bool { return inside })
		if err == nil {
			return u, nil
		}
		var f *exit.Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, exit.Conflict, f.Code)
		return u, f
	}

	tools(t, map[string]string{"systemctl": show, "dpkg": none, "rpm": none})
	u, f := place(true)
	require.Nil(t, f, "a host that is a container and has systemd is one")
	require.Equal(t, program, u.Program, "what is replaced is the file, not the link to it")
	require.Equal(t, "gitring", u.User)
	require.Equal(t, []string{"docker", "adm"}, u.Groups)
	require.Equal(t, os.Getpid(), u.PID)
	require.NotEmpty(t, u.Env)
	require.False(t, u.Failed)

	for _, name := range []string{program, link} {
		owns := `[ "$2" = ` + name + ` ]`
		tools(t, map[string]string{"systemctl": show, "dpkg": owns, "rpm": none})
		_, f = place(false)
		require.Contains(t, f.Says, name+" belongs to a package (deb)")
		require.Contains(t, f.Hint, "apt install")
		require.Contains(t, f.Hint, "gitring rehearse")
		tools(t, map[string]string{"systemctl": show, "dpkg": none, "rpm": owns})
		_, f = place(false)
		require.Contains(t, f.Says, name+" belongs to a package (rpm)")
	}

	for what, systemctl := range map[string]string{
		"no systemd":  `echo "System has not been booted with systemd" >&2; exit 1`,
		"no unit":     `echo LoadState=not-found`,
		"no main pid": `echo LoadState=loaded; echo MainPID=`,
		"no program":  `echo LoadState=loaded; echo MainPID=0; echo ExecStart=`,
	} {
		tools(t, map[string]string{"systemctl": systemctl, "dpkg": none, "rpm": none})
		_, f = place(false)
		require.Contains(t, f.Says, "no systemd runs gitring", what)
		require.Contains(t, f.Hint, "docs/how-to/upgrade.md", what)
		_, f = place(true)
		require.Contains(t, f.Says, "gitring runs in a container", what)
		require.Contains(t, f.Hint, "docker compose up -d", what)
	}
}

func TestAUnitThatEndedByItselfIsSeen(t *testing.T) {
	for state, failed := range map[string]bool{
		"active running": false, "activating start": false, "activating auto-restart": true, "failed failed": true, "inactive dead": true,
		"inactive dead 4711": false, "inactive dead 0": true, // a start is queued, and none is
	} {
		var active, sub, job string
		_, _ = fmt.Sscan(state, &active, &sub, &job)
		tools(t, map[string]string{"systemctl": "echo LoadState=loaded; echo MainPID=0; echo Job=" + job + "; echo ActiveState=" + active + "; echo SubState=" + sub + "; echo 'ExecStart={ path=/bin/true ; }'"})
		u, err := Systemd{"x"}.Unit(t.Context())
		require.NoError(t, err)
		require.Equal(t, failed, u.Failed, state)
	}
}

func TestAStopThatFailsStopsTheUpgrade(t *testing.T) {
	tools(t, map[string]string{"systemctl": `echo "$@" >> ` + filepath.Join(t.TempDir(), "log") + `; echo "no" >&2; exit 1`})
	require.ErrorContains(t, Systemd{"x"}.Stop(t.Context()), "systemctl stop: exit status 1: no")
	require.ErrorContains(t, Systemd{"x"}.Start(t.Context()), "systemctl start: exit status 1: no")
	t.Setenv("PATH", t.TempDir())
	_, err := Systemd{"x"}.Unit(t.Context())
	require.ErrorContains(t, err, "there is no systemctl")
}

func TestOneUpgradeAtATime(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gitring")
	release, err := Lock(program)
	require.NoError(t, err)
	_, err = Lock(program)
	require.ErrorContains(t, err, "another upgrade of it is under way")
	release()
	release, err = Lock(program)
	require.NoError(t, err)
	release()
}

// A daemon that could not be stopped keeps its program, and the upgrade says why.
func TestADaemonThatCannotBeStoppedKeepsItsProgram(t *testing.T) {
	t.Parallel()
	dir := newHost(t)
	u := upgraderOf(dir, 0, 0, func(s string) { t.Log(s) })
	u.Manager = stubborn{supervised{dir}}
	require.ErrorContains(t, upgradeTo(t, u, script(dir, "0.2.0", "lies")), "0.2.0 in place, and left 0.1.0: it does not stop")
	runs(t, dir, "0.1.0", script(dir, "0.1.0", ""))
}

type stubborn struct{ supervised }

func (stubborn) Stop(context.Context) error { return errors.New("it does not stop") }
