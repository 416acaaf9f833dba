package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What systemd of Type=notify gets is one datagram, when the first look is done.
func TestSystemdIsToldWhenTheFirstLookIsDone(t *testing.T) {
	dir, err := os.MkdirTemp("", "gr") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, at := range []string{filepath.Join(dir, "notify"), "@gitring-test-" + filepath.Base(dir)} {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
		require.NoError(t, err)
		t.Setenv("NOTIFY_SOCKET", at)
		require.Equal(t, at, notifySocket())
		require.Empty(t, os.Getenv("NOTIFY_SOCKET"), "no child speaks for the daemon")

		never, cancel := context.WithCancel(t.Context())
		cancel()
		tellReady(never, at, make(chan struct{}), slog.New(slog.DiscardHandler))
		ready := make(chan struct{})
		close(ready)
		tellReady(t.Context(), at, ready, slog.New(slog.DiscardHandler))
		buf := make([]byte, 64)
		n, err := l.Read(buf)
		require.NoError(t, err)
		require.Equal(t, "READY=1", string(buf[:n]), "and nothing before it")
		require.NoError(t, l.Close())
	}
	require.NoError(t, sdNotify(t.Context(), "", "READY=1"), "nobody waits where it is no service")
	require.Error(t, sdNotify(t.Context(), filepath.Join(dir, "gone"), "READY=1"))
}
