//go:build linux

package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// How long each port is asked: GITRING_NEW_CONNECTIONS=1m go test -v -run NewConnections ./proxy
const (
	newConnsEnv = "GITRING_NEW_CONNECTIONS"
	newConnsFew = 40 // of each client, where nobody says how long
	newClients  = 16 // each with a source address of its own in each round: a minute uses up the ports of one
)

// askAnew asks an address once, on a connection of its own from a source address of its round, and
// reads until the other side closes it.
func askAnew(addr string, round, n int) error {
	d := net.Dialer{Timeout: wait, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(10+round), byte(n+1))}}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(wait))
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: new.example\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	text, err := io.ReadAll(c)
	if err == nil && (!strings.HasPrefix(string(text), "HTTP/1.1 200 ") || !strings.HasSuffix(string(text), "hello")) {
		err = errors.New("answered otherwise")
	}
	return err
}

// Of many new connections none is refused, cut or answered wrongly, through the front or beside
// it. How many a second there are is told and held to nothing: a busy machine has fewer.
func TestNewConnectionsAreAllAnswered(t *testing.T) {
	length, _ := time.ParseDuration(os.Getenv(newConnsEnv))
	s := newHouse(t, ring.CarryAuto, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	s.table.Connections = 10_000
	var said problem
	require.Equal(t, 200, s.ask(http.MethodPut, "/v1/table", s.write(), &said), said.Says)
	_, number, err := net.SplitHostPort(s.addr())
	require.NoError(t, err)
	for round, way := range []struct{ name, addr string }{
		{"direct", net.JoinHostPort(instanceAddr, number)},
		{"front", s.addr()},
		{"direct", net.JoinHostPort(instanceAddr, number)},
		{"front", s.addr()},
	} {
		var good, bad atomic.Int64
		var all sync.WaitGroup
		begun := time.Now()
		for n := range newClients {
			all.Go(func() {
				for i := 0; length == 0 && i < newConnsFew || length > 0 && time.Since(begun) < length; i++ {
					if err := askAnew(way.addr, round, n); err != nil {
						bad.Add(1)
						t.Errorf("%s: %v", way.name, err)
						return
					}
					good.Add(1)
				}
			})
		}
		all.Wait()
		require.Zero(t, bad.Load(), way.name)
		t.Logf("%s: %d new connections, %.0f a second, 0 failed", way.name, good.Load(), float64(good.Load())/time.Since(begun).Seconds())
	}
}
