package program

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func shell(script string) Call {
	return Call{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Within: time.Minute, Most: 1 << 20}
}

func TestOutputIsWhatAProgramPrints(t *testing.T) {
	out, err := Output(t.Context(), shell("echo value; echo other >&2"))
	require.NoError(t, err)
	require.Equal(t, "value\n", string(out))
}

func TestAProgramThatMisbehavesIsBounded(t *testing.T) {
	const canary = "canary-7f3a"
	for name, c := range map[string]struct {
		call Call
		says string
	}{
		"it hangs":               {Call{Argv: []string{"/bin/sh", "-c", "echo " + canary + "; sleep 1000"}, Within: 200 * time.Millisecond, Most: 1 << 20}, "did not answer within 200ms"},
		"it floods":              {shell("yes " + canary), "printed more than 1 MiB"},
		"it fails":               {shell("echo " + canary + " >&2; exit 3"), "exit status 3"},
		"it fails with a value":  {shell("echo " + canary + "; exit 1"), "exit status 1"},
		"it leaves a child":      {shell("echo " + canary + "; sleep 1000 &"), "left a process that holds its output open"},
		"it is not there":        {Call{Argv: []string{"/nowhere/vault"}, Within: time.Minute, Most: 1}, "cannot start /nowhere/vault"},
		"it waits for its input": {shell("read x && echo " + canary + " || exit 7"), "exit status 7"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := Output(t.Context(), c.call)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), canary)
			require.Empty(t, out)
		})
	}
}

func TestWhatAProgramLeavesRunningEndsWithIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	_, err := Output(t.Context(), shell("sleep 1000 >/dev/null 2>&1 & echo $! > "+file))
	require.NoError(t, err)
	pid, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		return errors.Is(err, os.ErrNotExist) || strings.Contains(string(stat), ") Z ")
	}, time.Minute, 10*time.Millisecond)
}

func TestAProgramEndsWhenNobodyWaitsForIt(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Output(ctx, shell("sleep 1000"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
