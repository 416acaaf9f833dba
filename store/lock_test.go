package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASecondDaemonIsRefused(t *testing.T) {
	dir, engine := filepath.Join(t.TempDir(), "state"), "unix://"+filepath.Join(t.TempDir(), "docker.sock")
	cmd, lines := spawn(t, "lock", dir, engine, "edge-1")
	require.True(t, lines.Scan())
	require.Equal(t, "locked", lines.Text())

	_, err := Lock(dir, engine, "edge-2")
	require.ErrorContains(t, err, fmt.Sprintf("another gitring (pid %d) holds this state directory", cmd.Process.Pid))

	other := filepath.Join(t.TempDir(), "other")
	_, err = Lock(other, engine, "edge-1")
	require.ErrorContains(t, err, fmt.Sprintf(`cannot start as host "edge-1" on %s: another process (pid %d, uid %d)`, engine, cmd.Process.Pid, os.Getuid()))

	release, err := Lock(other, engine, "edge-2")
	require.NoError(t, err, "another host name and state is another daemon; what was refused before holds nothing")
	release()

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	release, err = Lock(dir, engine, "edge-1")
	require.NoError(t, err, "the end of the process released both")
	release()
	release, err = Lock(dir, engine, "edge-1")
	require.NoError(t, err, "and so does release")
	release()
}

func TestTwoPathsToOneSocketAreOneEngine(t *testing.T) {
	run := t.TempDir()
	link := filepath.Join(t.TempDir(), "var-run")
	require.NoError(t, os.Symlink(run, link))
	release, err := Lock(filepath.Join(t.TempDir(), "a"), "unix://"+run+"/docker.sock", "edge-1")
	require.NoError(t, err)
	defer release()
	_, err = Lock(filepath.Join(t.TempDir(), "b"), "unix://"+link+"/docker.sock", "edge-1")
	require.ErrorContains(t, err, "already does", "also while the engine is down and the socket not there")
	require.NoError(t, os.WriteFile(run+"/docker.sock", nil, 0o600))
	_, err = Lock(filepath.Join(t.TempDir(), "c"), "unix://"+link+"/docker.sock", "edge-1")
	require.ErrorContains(t, err, "already does")
	_, err = Lock(filepath.Join(t.TempDir(), "d"), "tcp://127.0.0.1:1", "edge-1")
	require.NoError(t, err)
}

func TestLockMakesTheStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "var", "lib", "gitring")
	release, err := Lock(dir, "unix:///nowhere/"+t.Name(), "edge-1")
	require.NoError(t, err)
	defer release()
	fi, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), fi.Mode().Perm())
	_, err = Lock(filepath.Join(dir, "lock"), "x", "y")
	require.ErrorContains(t, err, "it is a file")
}
