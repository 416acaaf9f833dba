package api

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is a user that is not root, not the daemon's and in no group of ours.
const nobody = 65534

func TestPeerIsWhoConnects(t *testing.T) {
	a, b := unixPair(t)
	p, err := peerOf(a)
	require.NoError(t, err)
	require.Equal(t, Peer{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), PID: int32(os.Getpid())}, p)
	_ = b

	c, s := net.Pipe()
	defer c.Close()
	defer s.Close()
	_, err = peerOf(s)
	require.Error(t, err)
}

func unixPair(t *testing.T) (server, client net.Conn) {
	t.Helper()
	path := socketPath(t)
	l, err := ListenSocket(path)
	require.NoError(t, err)
	defer l.Close()
	client, err = net.Dial("unix", path)
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	return server, client
}

// The kernel's word, end to end: a connection that another user opened.
func TestAnotherUserIsToldApart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be someone else")
	}
	path := socketPath(t)
	l, err := ListenSocket(path)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(parent(parent(path)), 0o755))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	d := newDaemon()
	s := newSocket(t, d)
	go func() { done <- s.Run(ctx, l) }()
	defer func() { cancel(); require.NoError(t, <-done) }()

	_, err = dialAs(nobody, path)
	require.ErrorIs(t, err, os.ErrPermission, "the mode keeps strangers out")

	require.NoError(t, os.Chmod(path, 0o666))
	ask := func(method, target string) (int, string) {
		c, err := dialAs(nobody, path)
		require.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, method+" "+target+" HTTP/1.1\r\nHost: gitring\r\nContent-Length: 0\r\n\r\n")
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(body)
	}
	code, _ := ask("GET", "/v1/status")
	require.Equal(t, 200, code)
	for _, target := range []string{"/v1/sync", "/v1/approve", "/v1/trust/accept"} {
		d.takeCalled()
		code, body := ask("POST", target)
		require.Equal(t, 403, code, target)
		require.Contains(t, body, "may not do this")
		require.Empty(t, d.takeCalled())
	}
}

func parent(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return path
}

// dialAs connects with another user's credentials: those of one thread, which
// ends with its goroutine.
func dialAs(uid int, path string) (net.Conn, error) {
	type result struct {
		c   net.Conn
		err error
	}
	out := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is thrown away
		for _, call := range []uintptr{syscall.SYS_SETRESGID, syscall.SYS_SETRESUID} {
			if _, _, errno := syscall.RawSyscall(call, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
				out <- result{nil, errno}
				return
			}
		}
		c, err := net.Dial("unix", path)
		out <- result{c, err}
	}()
	r := <-out
	return r.c, r.err
}

func TestIsAdmin(t *testing.T) {
	require.False(t, isAdmin(Peer{UID: 4_000_000_000, GID: 4_000_000_000}), "nobody knows this one")
}

func TestActor(t *testing.T) {
	require.Equal(t, "alice", Peer{UID: 1000, Name: "alice"}.Actor())
	require.Equal(t, "uid 1000", Peer{UID: 1000}.Actor())
}
