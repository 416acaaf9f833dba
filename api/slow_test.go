package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// pipes is a listener whose connections have no buffer: who reads nothing holds up who writes.
type pipes struct {
	came  chan net.Conn
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.came:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9481} }

func (p *pipes) Close() error {
	select {
	case <-p.ended:
	default:
		close(p.ended)
	}
	return nil
}

type far struct{ net.Conn }

func (far) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 40000} }

// In a bubble of time: an answer of half a megabyte would take such a reader six days.
func TestAReaderOfAByteASecondIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWebDoor(t)
		token := w.token("ann", "read")
		w.d.set(func(st *ring.Status) {
			for i := range 1000 {
				st.Sources[0].Apps = append(st.Sources[0].Apps, ring.AppStatus{Name: fmt.Sprintf("app-%d", i), Reason: fmt.Sprintf("%0500d", i)})
			}
		})
		near, end := w.pipe()
		_, err := near.Write([]byte("GET /v1/status HTTP/1.1\r\nHost: edge-1.example.org\r\nAuthorization: Bearer " + token + "\r\n\r\n"))
		require.NoError(t, err)
		began, read, one := time.Now(), 0, make([]byte, 1)
		for {
			time.Sleep(time.Second)
			if _, err = near.Read(one); err != nil {
				break
			}
			read++
			require.Less(t, time.Since(began), 10*time.Minute, "it reads on")
		}
		require.Positive(t, read, "the answer began")
		require.Less(t, time.Since(began), 2*time.Minute)
		end()
	})
}

// pipe is a connection to the door, in a bubble of time, and what ends the door.
func (w *webDoor) pipe() (near net.Conn, end func()) {
	l := &pipes{make(chan net.Conn), make(chan struct{})}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, l) }()
	near, there := net.Pipe()
	l.came <- far{there}
	return near, func() {
		cancel()
		_ = near.Close()
		require.NoError(w.t, <-ended)
	}
}

// Who sends headers without an end is cut off: after 10 s, and after 16 KiB and what the
// server reads ahead.
func TestHeadersAreBoundedInSizeAndTime(t *testing.T) {
	const hello = "GET /v1/version HTTP/1.1\r\nHost: edge-1.example.org\r\n"
	synctest.Test(t, func(t *testing.T) {
		w := newWebDoor(t)
		near, end := w.pipe()
		_, err := near.Write([]byte(hello + "X-Slow: "))
		require.NoError(t, err)
		began := time.Now()
		go func() { _, _ = io.Copy(io.Discard, near) }() // it may say why
		for err == nil && time.Since(began) < time.Hour {
			time.Sleep(time.Second)
			_, err = near.Write([]byte("a"))
		}
		require.Error(t, err)
		require.LessOrEqual(t, time.Since(began), 11*time.Second)
		end()
	})
	w := newWebDoor(t)
	address, token := strings.TrimPrefix(w.serve(), "http://"), w.token("ann", "read")
	for size, want := range map[int]int{12 << 10: http.StatusOK, 24 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		_, _ = io.WriteString(c, hello+"Authorization: Bearer "+token+"\r\nX-Long: "+strings.Repeat("a", size)+"\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, size)
		require.Equal(t, want, res.StatusCode, size)
		require.NoError(t, res.Body.Close())
		_ = c.Close()
	}
}

// opens asks for a stream on a pipe, and gives its lines.
func (w *webDoor) opens(near net.Conn, target, token string) *bufio.Reader {
	_, err := near.Write([]byte("GET " + target + " HTTP/1.1\r\nHost: edge-1.example.org\r\nAuthorization: Bearer " + token + "\r\n\r\n"))
	require.NoError(w.t, err)
	r := bufio.NewReader(near)
	res, err := http.ReadResponse(r, nil)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, res.StatusCode)
	return bufio.NewReader(res.Body)
}

// A stream on which nothing happens says every 15 s that it is there.
func TestAStreamSaysThatItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWebDoor(t)
		near, end := w.pipe()
		lines := w.opens(near, "/v1/stream", w.token("ann", "read"))
		began, comments := time.Now(), 0
		for comments < 20 {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			if strings.HasPrefix(line, ":") {
				comments++
				require.Equal(t, time.Duration(comments)*15*time.Second, time.Since(began).Round(time.Second))
			}
		}
		end()
	})
}

// Who reads nothing of a stream for 30 s has it no more.
func TestASlowReaderOfAStreamIsDropped(t *testing.T) {
	for stops, dropped := range map[time.Duration]bool{25 * time.Second: false, 50 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWebDoor(t)
			token := w.token("ann", "read")
			near, end := w.pipe()
			lines := w.opens(near, "/v1/stream", token)
			for line := ""; !strings.HasPrefix(line, "data:"); {
				var err error
				line, err = lines.ReadString('\n')
				require.NoError(t, err)
			}
			time.Sleep(stops) // a comment waits since the 15th second
			began := time.Now()
			var err error
			for err == nil && time.Since(began) < time.Minute {
				_, err = lines.ReadString('\n')
			}
			require.Equal(t, dropped, err != nil, stops)
			end()
		})
	}
}

// A stream of one app has the lines of no other, and what the status is by now.
func TestAStreamOfOneAppHasItsLinesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWebDoor(t)
		near, end := w.pipe()
		lines := w.opens(near, "/v1/stream?app=web", w.token("ann", "read"))
		for i, app := range []string{"web", "other", "", "web"} {
			w.d.append(ring.Event{Seq: int64(i + 1), App: app, Kind: "commit.accepted"})
		}
		w.d.set(func(st *ring.Status) { st.Sources[0].Sync = ring.SyncDegraded })
		var got []string
		for statuses := 0; statuses < 2; {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				got = append(got, strings.TrimSpace(id))
			}
			if line == "event: status\n" {
				statuses++
			}
		}
		require.Equal(t, []string{"0.00000000", "1.00000010", "4.00000040"}, got)
		end()
	})
}
