package api

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	xrate "golang.org/x/time/rate"
)

const (
	// connsBurst connections are taken at once, and then so many a second. A flood costs the rest of
	// the process that much and no more; what is not taken yet waits in the kernel's queue, where
	// everybody has the same place.
	connsBurst    = 256
	connsASecond  = 1000
	securedSecond = 500 // with TLS, whose handshake costs more than all that follows
)

// limitConns lets n connections be open at once, and takes perSecond. One more takes the place of the one
// that has waited longest without an answer, from the address that has most: whoever
// holds connections open keeps nobody else out, and a look at /healthz is answered.
func limitConns(l net.Listener, n, perSecond int) *limited {
	return &limited{Listener: l, most: n, pace: xrate.NewLimiter(xrate.Limit(perSecond), connsBurst), open: map[*limitedConn]time.Time{}}
}

type limited struct {
	net.Listener
	most int
	pace *xrate.Limiter // of new connections

	mu   sync.Mutex                 // guards what follows
	open map[*limitedConn]time.Time // since when each waits for an answer
}

func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	time.Sleep(l.pace.Reserve().Delay())
	mine := &limitedConn{Conn: c, from: whose(c.RemoteAddr().String()), of: l}
	l.mu.Lock()
	var late *limitedConn
	if len(l.open) >= l.most {
		late = l.longest()
		delete(l.open, late)
	}
	l.open[mine] = time.Now()
	l.mu.Unlock()
	if late != nil {
		_ = late.Conn.Close() // whoever reads it notices
	}
	return mine, nil
}

// longest is the connection whose place is taken. Called with the lock held, and never
// while none is open.
func (l *limited) longest() *limitedConn {
	of := map[netip.Addr]int{}
	for c := range l.open {
		of[c.from]++
	}
	var late *limitedConn
	for c, since := range l.open {
		switch {
		case late == nil, of[c.from] > of[late.from]:
			late = c
		case of[c.from] == of[late.from] && since.Before(l.open[late]):
			late = c
		}
	}
	return late
}

// heard is for http.Server: a connection that was answered waits anew.
func (l *limited) heard(c net.Conn, state http.ConnState) {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	mine, ok := c.(*limitedConn)
	if !ok || state != http.StateIdle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[mine]; open {
		l.open[mine] = time.Now()
	}
}

type limitedConn struct {
	net.Conn
	from netip.Addr
	of   *limited
}

func (c *limitedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
