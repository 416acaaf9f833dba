package fleet

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sshIs puts a program in the place of ssh.
func sshIs(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestAConnectionBeginsAfterTheGreeting(t *testing.T) {
	sshIs(t, `echo "Welcome to edge-1"; echo; echo "gitring dial-stdio"; exec cat`)
	c, err := Dial(t.Context(), Address{Host: "edge-1"})
	require.NoError(t, err)
	_, err = c.Write([]byte("hello\n"))
	require.NoError(t, err)
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", line)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
}

func TestWhatSSHSaysIsTold(t *testing.T) {
	for _, tt := range []struct{ name, script, says, hint string }{
		{"an unknown host", "echo 'ssh: Could not resolve hostname edge-1: Name or service not known' >&2; exit 255", "ssh: Could not resolve hostname edge-1: Name or service not known", "ssh ann@edge-1 has to work first"},
		{"no gitring there", "echo 'sh: 1: gitring: not found' >&2; exit 127", "sh: 1: gitring: not found", "is gitring installed there, and on the PATH of a shell without a login?"},
		{"the socket says no", "printf 'error: cannot reach the daemon on /run/g.sock: permission denied\\nhint: ask as root or as a member of the socket'\"'\"'s group\\n' >&2; exit 3", "cannot reach the daemon on /run/g.sock: permission denied", "ask as root or as a member of the socket's group"},
		{"nothing at all", "exit 1", "the connection ended before gitring answered there (exit 1)", ""},
		{"a warning and no more", "echo \"Warning: Permanently added 'x'\" >&2; exit 2", "the connection ended before gitring answered there (exit 2)", ""},
		{"a shell without an end", "yes | head -c 100000", "its login shell prints too much", ""},
		{"control characters", `printf 'no \033[31mentry\033[0m\n' >&2; exit 255`, "no [31mentry[0m", "ssh ann@edge-1 has to work first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sshIs(t, tt.script)
			_, err := Dial(t.Context(), Address{User: "ann", Host: "edge-1", Socket: "/run/g.sock"})
			var said *SSHError
			require.ErrorAs(t, err, &said)
			require.Equal(t, tt.says, said.Says)
			require.Equal(t, tt.hint, said.Hint)
		})
	}
}

func TestNoSSHIsTold(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Dial(t.Context(), Address{Host: "edge-1"})
	require.ErrorContains(t, err, "cannot run ssh: ")
}

func TestAHostThatNeverAnswersIsGivenUp(t *testing.T) {
	sshIs(t, `echo "debug: waiting" >&2; exec sleep 600`)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := Dial(ctx, Address{Host: "edge-1"})
	require.Error(t, err)
	require.Less(t, time.Since(began), time.Minute)
}

func TestAProcessThatStaysIsEnded(t *testing.T) {
	sshIs(t, `echo "gitring dial-stdio"; trap '' TERM; exec sleep 600`)
	c, err := Dial(t.Context(), Address{Host: "edge-1"})
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, c.Close())
	require.Less(t, time.Since(began), time.Minute)
}

func TestEachAsksAllAndKeepsTheOrder(t *testing.T) {
	var hosts []Host
	for range 3 * AtOnce {
		hosts = append(hosts, Host{Name: string(rune('a' + len(hosts)))})
	}
	slots := make(chan struct{}, AtOnce)
	got := Each(t.Context(), hosts, func(_ context.Context, h Host) string {
		select {
		case slots <- struct{}{}:
		default:
			t.Errorf("more than %d are asked at once", AtOnce)
			return ""
		}
		defer func() { <-slots }()
		return h.Name
	})
	for i, h := range hosts {
		require.Equal(t, h.Name, got[i])
	}
}
