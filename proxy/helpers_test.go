package proxy

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What tests of one front and tests of its processes have in common.

// wait bounds what a test waits for, on however busy a machine.
const wait = 60 * time.Second

// shortDir is a folder whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "f")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// serveOn answers on a listener, by HTTP/1.1 and h2c, until the test is over or the server is
// closed.
func serveOn(t *testing.T, l net.Listener, h http.HandlerFunc) *http.Server {
	t.Helper()
	s := &http.Server{Handler: h, Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// serveAt is serveOn at a tcp address.
func serveAt(t *testing.T, addr string, h http.HandlerFunc) *http.Server {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	return serveOn(t, l, h)
}

// answered is an instance that says nothing more than 200.
func answered(http.ResponseWriter, *http.Request) {}

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
