//go:build linux

package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const capChown = 0

// The test's own process is started again as the daemon of the unit: another user with one
// capability.
func TestNoProcessThatTheDaemonStartsMayGiveFilesAway(t *testing.T) {
	if os.Getenv("GITRING_TEST_AMBIENT") != "" {
		before, err := exec.Command("grep", "CapEff", "/proc/self/status").Output()
		require.NoError(t, err)
		require.NoError(t, keepCapabilities())
		after, err := exec.Command("grep", "CapEff", "/proc/self/status").Output()
		require.NoError(t, err)
		own, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		require.Contains(t, string(before), "0000000000000001")
		require.Contains(t, string(after), "0000000000000000")
		require.Contains(t, string(own), "CapEff:\t0000000000000001", "the daemon itself may")
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a process one capability")
	}
	program, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	copied, err := os.CreateTemp("/tmp", "gitring-ambient-")
	require.NoError(t, err)
	defer os.Remove(copied.Name()) //nolint:errcheck // of a test
	_, err = copied.Write(program)
	require.NoError(t, err)
	require.NoError(t, copied.Chmod(0o755))
	require.NoError(t, copied.Close())
	cmd := exec.Command(copied.Name(), "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env, cmd.Dir = append(os.Environ(), "GITRING_TEST_AMBIENT=1", "HOME=/tmp", "TMPDIR=/tmp"), "/tmp"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: []uintptr{capChown}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.True(t, strings.Contains(string(out), "--- PASS: "+t.Name()), "%s", out)
}
