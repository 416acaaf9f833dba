package gitsync

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// spared is a follower whose processes come from a spare, which runs until the
// test ends.
func spared(t *testing.T, o *origin, a *ledger) (*Follower, *Spare) {
	s := NewSpare(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.Nil(t, s.take(), "nothing is left behind")
	})
	return o.apart(a, func(c *Config) { c.Spare = s }), s
}

// standing is the process that stands ready, once there is one.
func standing(t *testing.T, s *Spare) (pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.proc != nil {
			pid = s.proc.cmd.Process.Pid
		}
		return pid != 0
	}, 10*time.Second, time.Millisecond)
	return pid
}

func TestALookTakesTheProcessThatStandsReady(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.signed("one")
	f, s := spared(t, o, &ledger{})
	w := lookAt(t, f)
	require.Equal(t, sha, w.must().Commit.SHA, "the first look starts its own")
	require.Nil(t, s.take(), "and nobody starts another meanwhile")
	f.child.rest()

	ready := standing(t, s)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", ready))
	require.NoError(t, err)
	require.Equal(t, "GODEBUG=netdns=go", strings.Trim(string(environ), "\x00"), "it knows nothing of any source")

	next := o.signed("two")
	require.Equal(t, next, w.must().Commit.SHA)
	require.Equal(t, ready, f.child.proc.cmd.Process.Pid)
	f.child.rest()
	require.NotEqual(t, ready, standing(t, s), "one that was used is never used for another source")
}

func TestAProcessThatDiedWhileItWaitedIsNoFault(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.signed("one")
	f, s := spared(t, o, &ledger{})
	s.want()
	require.NoError(t, syscall.Kill(standing(t, s), syscall.SIGKILL))
	require.Equal(t, sha, lookAt(t, f).must().Commit.SHA)
}

func TestALookFailsWhereNoProcessCanBeStarted(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.signed("one")
	f, s := spared(t, o, &ledger{})
	s.want()
	require.NoError(t, syscall.Kill(standing(t, s), syscall.SIGKILL))
	f.child.program = script(t, "exit 3")
	r := lookAt(t, f).look(t.Context())
	require.ErrorContains(t, r.Err, "ended by itself (exit status 3)")
}
