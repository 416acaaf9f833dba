package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestHeadsAreBounded(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one")
	b.route("one:active")
	send := func(size int) string {
		c, err := net.Dial("tcp", b.addr())
		require.NoError(t, err)
		defer c.Close()
		go func() {
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n")
			for range size / 1000 {
				_, _ = io.WriteString(c, "X-Y: "+strings.Repeat("z", 993)+"\r\n")
			}
			_, _ = io.WriteString(c, "\r\n")
		}()
		_ = c.SetReadDeadline(time.Now().Add(wait))
		got, _ := io.ReadAll(c)
		line, _, _ := bytes.Cut(got, []byte("\r\n"))
		return string(line)
	}
	require.Equal(t, "HTTP/1.1 200 OK", send(250_000))
	got := send(300_000)
	require.Contains(t, []string{"HTTP/1.1 431 Request Header Fields Too Large", ""}, got, "or reset before it could be read")
	require.EqualValues(t, 1, b.instance("one").Counts.Requests)
}

// A client that sends its body, or reads its answer, no more is cut; one that waits for an
// answer is not.
func TestClientsThatDoNotMoveAreCut(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	hold := make(chan struct{})
	defer close(hold)
	b.serve("one", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/body":
			_, _ = io.Copy(io.Discard, r.Body)
		case "/long":
			block := make([]byte, 1<<20)
			for {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		default:
			<-hold
		}
	})
	b.route("one:active")
	open := func(head string) net.Conn {
		c, err := net.Dial("tcp", b.addr())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = io.WriteString(c, head)
		require.NoError(t, err)
		return c
	}
	body := open("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
	long := open("GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
	_ = open("GET /waits HTTP/1.1\r\nHost: x\r\n\r\n")
	waiting := func() (reads, writes int) {
		b.f.stalling.mu.Lock()
		defer b.f.stalling.mu.Unlock()
		for c := range b.f.stalling.calls {
			if c.reading.Load() != 0 {
				reads++
			}
			if c.writing.Load() != 0 && time.Since(time.Unix(0, c.writing.Load())) > 300*time.Millisecond {
				writes++
			}
		}
		return reads, writes
	}
	b.eventually("one waits for a body, one for a reader", func() bool { r, w := waiting(); return r == 1 && w == 1 })
	b.f.endStalled(time.Now().Add(stallLimit-2*time.Second), stallLimit)
	require.Equal(t, 3, b.instance("one").InFlight, "not yet")
	b.f.endStalled(time.Now().Add(stallLimit), stallLimit)
	got, _ := io.ReadAll(body)
	require.Contains(t, string(got), "408 Request Timeout")
	b.eventually("both are cut, and the third waits", func() bool { return b.instance("one").InFlight == 1 })
	require.Zero(t, b.instance("one").Counts.NoAnswer, "that is no fault of the instance")
	_ = long
}

func TestNoMoreConnectionsThanMayBe(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one")
	b.table.Connections = 4
	b.route("one:active")
	ask := func() {
		t.Helper()
		c, err := net.Dial("tcp", b.addr())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		buf := make([]byte, 4096)
		_ = c.SetReadDeadline(time.Now().Add(wait))
		n, err := c.Read(buf)
		require.NoError(t, err)
		require.Contains(t, string(buf[:n]), "200 OK")
	}
	for range 10 { // idle ones make room
		ask()
	}
	require.LessOrEqual(t, b.f.conns.Load(), int64(4))
	b.eventually("it tells that it is full", func() bool { return b.f.seen().Full })
}
