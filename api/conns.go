package api

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// limitConns lets n connections be open at once. One more takes the place of the one
// that has waited longest without an answer, from the address that has most: whoever
// holds connections open keeps nobody else out, and a look at /healthz is answered.
func limitConns(l net.Listener, n int) *limited {
	return &limited{Listener: l, most: n, open: map[*limitedConn]time.Time{}}
}

type limited struct {
	net.Listener
	most int

	mu   sync.Mutex                 // guards what follows
	open map[*limitedConn]time.Time // since when each waits for an answer
}

func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
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
