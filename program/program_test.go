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

func TestAnAnswerIsHowAProgramEnds(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   Said
	}{
		"yes":               {"echo fine; echo other >&2", Said{Out: "fine\n", Err: "other\n"}},
		"no":                {"echo bad >&2; exit 7", Said{Err: "bad\n", Exit: 7}},
		"it reads":          {"read x; echo $x", Said{Out: "question\n"}},
		"it has its folder": {"pwd", Said{Out: "/tmp\n"}},
		"it floods":         {"head -c 100000 /dev/zero | tr '\\0' y", Said{Out: strings.Repeat("y", 1000)}},
	} {
		t.Run(name, func(t *testing.T) {
			call := shell(c.script)
			call.In, call.Dir, call.Most = "question\n", "/tmp", 1000
			said, err := Answer(t.Context(), call)
			require.NoError(t, err)
			require.Equal(t, c.want, said)
		})
	}
}

func TestAProgramThatIsKilledGaveNoAnswer(t *testing.T) {
	said, err := Answer(t.Context(), shell("echo before; kill -9 $$"))
	require.ErrorContains(t, err, "ended with signal: killed")
	require.Equal(t, "before\n", said.Out)
	call := shell("echo before; sleep 1000")
	call.Within = 300 * time.Millisecond
	said, err = Answer(t.Context(), call)
	require.ErrorContains(t, err, "did not answer within 300ms")
	require.Zero(t, said.Exit)
	_, err = Answer(t.Context(), Call{})
	require.ErrorContains(t, err, "none is named")
}
