//go:build linux

package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// How many slow clients there are: GITRING_SLOW_CLIENTS=10000 go test -v -run SlowClients ./proxy
const (
	slowEnv    = "GITRING_SLOW_CLIENTS"
	slowFew    = 300
	slowMemory = 256 << 20 // for ten thousand
)

// resident is how much memory a process has, in bytes.
func resident(t testing.TB, pid int) int {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(t, err)
			return n << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// p99 asks so often, one after the other, over new connections.
func (s *house) p99(n int) time.Duration {
	s.t.Helper()
	c := &http.Client{Timeout: wait, Transport: &http.Transport{DisableKeepAlives: true}}
	var took []time.Duration
	for range n {
		begun := time.Now()
		res, err := c.Get(s.url("/quick"))
		require.NoError(s.t, err)
		require.NoError(s.t, res.Body.Close())
		require.Equal(s.t, 200, res.StatusCode)
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[n*99/100]
}

// dribble has each connection send a byte every ten seconds, until stop has returned.
func dribble(conns []net.Conn) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Second / time.Duration(len(conns)))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			case <-tick.C:
				_, _ = conns[i%len(conns)].Write([]byte("x"))
			}
		}
	}()
	return func() { close(end); <-ended }
}

// Slow clients cost little, and others hardly notice them. Times are told and held to nothing:
// a busy machine is slower at any moment.
func TestSlowClientsCostLittle(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv(slowEnv))
	long := n > 0
	if !long {
		n = slowFew
	}
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if int(limit.Max) < 2*n {
		t.Skipf("%d descriptors are too few for %d clients", limit.Max, n)
	}
	s := newHouse(t, ring.CarryAuto, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/body":
			_, _ = io.Copy(io.Discard, r.Body)
		case "/long":
			for block := make([]byte, 64<<10); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}
	})
	s.table.Connections = n + 1000
	var said problem
	require.Equal(t, 200, s.ask(http.MethodPut, "/v1/table", s.write(), &said), said.Says)
	pid := s.pids()[0]
	asks := 200
	if long {
		asks = 3000
	}
	s.p99(200)
	alone := s.p99(asks)
	empty := resident(t, pid)
	t.Logf("alone: p99 %s, %d MiB", alone, empty>>20)
	const (
		head   = "GET /x HTTP/1.1\r\nHost: slow.example\r\nUser-Agent: slow/1.0\r\nX-A: b"
		body   = "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nsome of it"
		reader = "GET /long HTTP/1.1\r\nHost: x\r\n\r\n"
	)
	for _, mix := range []struct {
		name string
		of   []string
	}{{"heads", []string{head}}, {"heads, bodies and readers", []string{head, head, body, reader}}} {
		var conns []net.Conn
		for i := range n {
			d := net.Dialer{Timeout: wait, Control: func(_, _ string, c syscall.RawConn) error {
				return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
			}}
			c, err := d.Dial("tcp", s.addr())
			require.NoError(t, err)
			conns = append(conns, c)
			_, err = io.WriteString(c, mix.of[i%len(mix.of)])
			require.NoError(t, err)
		}
		s.eventually("all are there, or made room for others", func() bool { return s.seen().Connections >= n || s.seen().Full })
		stop := dribble(conns)
		s.p99(200) // what their coming cost has passed
		beside := s.p99(asks)
		stop()
		most := resident(t, pid)
		t.Logf("%d %s: p99 %s (alone %s), %d MiB, %d bytes each", n, mix.name, beside, alone, most>>20, (most-empty)/n)
		if long {
			require.Less(t, most, slowMemory*n/10000, mix.name)
		} else {
			require.Less(t, most-empty, 128<<20, mix.name) // the race detector has its own share
		}
		for _, c := range conns {
			_ = c.Close()
		}
		s.eventually("all are gone", func() bool { return s.seen().Connections < 50 })
	}
}
