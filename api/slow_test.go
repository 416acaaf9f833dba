package api

import (
	"context"
	"fmt"
	"net"
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
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx, l) }()
		near, there := net.Pipe()
		l.came <- far{there}
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
		cancel()
		require.NoError(t, <-ended)
	})
}
