package proxy

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"time"
)

// How a connection whose protocol is not said is told: docs/design/traffic.md.
const (
	detectSilence = 10 * time.Millisecond // then the instance is connected to as well
	detectPartly  = time.Second           // for the rest of what begins like a method
	headLimit     = 30 * time.Second      // for a whole head
	methodMost    = 32
)

type verdict int

const (
	unclear verdict = iota
	isHTTP
	isTCP
)

// judgeFirst tells a protocol by the first bytes of a client. Empty lines before, and blanks
// that are too many, are HTTP to lenient servers: they go where they are refused.
func judgeFirst(b []byte) verdict {
	b = bytes.TrimLeft(b, "\r\n")
	i := 0
	for i < len(b) && isToken(b[i]) {
		i++
	}
	switch {
	case i == len(b) && i <= methodMost:
		return unclear
	case i == 0 || i > methodMost || b[i] != ' ' && b[i] != '\t':
		return isTCP
	}
	rest := bytes.TrimLeft(b[i:], " \t")
	switch {
	case len(rest) == 0:
		return unclear
	case rest[0] == '/':
		return isHTTP
	case rest[0] != '*':
		return isTCP
	}
	// RTSP asks for * too.
	for _, next := range []string{"* HTTP/", "*\tHTTP/"} {
		if n := min(len(rest), len(next)); string(rest[:n]) == next[:n] {
			if n == len(next) {
				return isHTTP
			}
			return unclear
		}
	}
	return isTCP
}

func isToken(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0
}

// detect hands a connection on, once it is clear what it carries.
func (p *port) detect(client *clientConn) {
	var first []byte
	since := time.Now()
	buf := make([]byte, 512)
	for wait := detectSilence; ; wait = detectPartly {
		_ = client.SetReadDeadline(time.Now().Add(wait))
		n, err := client.Read(buf[len(first):])
		first = buf[:len(first)+n]
		v := judgeFirst(first)
		silent := errors.Is(err, os.ErrDeadlineExceeded)
		switch {
		case v == isTCP && len(first) > 0: // a ClientHello alone may fill the buffer
			_ = client.SetReadDeadline(time.Time{})
			p.carryTCP(client, first)
			return
		case v == isHTTP, len(first) == len(buf): // the latter: empty lines without end
			p.toHTTP(client, first)
			return
		case len(first) == 0 && silent:
			p.detectBoth(client, since)
			return
		case len(first) == 0 && err != nil: // it only looked whether the port is open
			_ = client.Close()
			return
		case silent && wait == detectPartly, err != nil && !silent:
			_ = client.SetReadDeadline(time.Time{})
			p.carryTCP(client, first)
			return
		}
	}
}

// headHeld is how much of a head is awaited here; the server reads on alone.
const headHeld = 4 << 10

// toHTTP hands a connection to the server once its first head is there: until then the server
// would keep two buffers and a large stack for it, and slow clients are many.
func (p *port) toHTTP(client *clientConn, first []byte) {
	f := p.f
	f.waiting.Add(1)
	f.idle.note(client, http.StateNew)
	first, ok := awaitHead(client, bytes.Clone(first))
	f.idle.gotHead(client)
	f.waiting.Add(-1)
	if !ok {
		_ = client.Close()
		return
	}
	_ = client.SetReadDeadline(time.Time{})
	p.http.give(newGuard(client, first))
}

// awaitHead reads until a head is whole, too long to be held, or wrong.
func awaitHead(client *clientConn, got []byte) ([]byte, bool) {
	_ = client.SetReadDeadline(time.Now().Add(client.f.limits.head))
	var head frames
	for read := 0; ; {
		n, err := head.feed(got[read:])
		read += n
		if err != nil || head.headEnded() || len(got) >= headHeld {
			return got, true
		}
		if len(got) == cap(got) {
			got = append(make([]byte, 0, min(headHeld, max(256, 2*len(got)))), got...)
		}
		n, err = client.Read(got[len(got):cap(got)])
		got = got[:len(got)+n]
		if n == 0 && err != nil {
			return nil, false
		}
	}
}

// heard is what somebody said, or how it ended.
type heard struct {
	said []byte
	err  error
}

// hear waits for the next words of a connection.
func hear(c *net.TCPConn) chan heard {
	out := make(chan heard, 1)
	go func() {
		b := make([]byte, 1024)
		n, err := c.Read(b)
		out <- heard{b[:n], err}
	}()
	return out
}

// interrupt ends the waiting of hear; what was said in that moment is not lost.
func interrupt(c *net.TCPConn, from chan heard) []byte {
	_ = c.SetReadDeadline(time.Unix(1, 0))
	h := <-from
	_ = c.SetReadDeadline(time.Time{})
	return h.said
}

// detectBoth connects to an instance as well; whoever speaks first decides. An instance that
// only closes decides nothing.
func (p *port) detectBoth(client *clientConn, since time.Time) {
	_ = client.SetReadDeadline(time.Time{})
	var first []byte
	var back *backTCP
	var fromBack chan heard
	asks := 0
	fromClient := hear(client.TCPConn)
	again := time.NewTimer(0) // connects, and once more where nobody was there
	defer again.Stop()
	late := time.NewTimer(time.Until(since.Add(p.f.limits.head)))
	defer late.Stop()
	for {
		select {
		case <-again.C:
			if back = p.openTCP(wants{}, true); back != nil {
				asks++
				fromBack = hear(back.conn)
			} else if asks == 0 {
				again.Reset(time.Second)
			}
		case h := <-fromBack:
			if len(h.said) > 0 {
				first = append(first, interrupt(client.TCPConn, fromClient)...)
				p.splice(client, back, first, h.said)
				return
			}
			moved := back.moved()
			back.drop()
			if back, fromBack = nil, nil; moved { // it drains: another one is asked
				asks = 0
				again.Reset(0)
			}
		case h := <-fromClient:
			first = append(first, h.said...)
			v := judgeFirst(first)
			switch {
			case v == isTCP:
				p.asTCP(client, back, fromBack, first)
				return
			case v == isHTTP || len(first) > 512:
				if back != nil {
					back.drop()
				}
				p.toHTTP(client, first)
				return
			case len(first) == 0:
				if back != nil {
					back.drop()
				}
				_ = client.Close()
				return
			case h.err != nil:
				p.asTCP(client, back, fromBack, first)
				return
			}
			fromClient = hear(client.TCPConn)
			late.Reset(detectPartly)
		case <-late.C:
			switch {
			case len(first) > 0:
				first = append(first, interrupt(client.TCPConn, fromClient)...)
				p.asTCP(client, back, fromBack, first)
				return
			case back == nil:
				_ = client.Close()
				return
			}
			late.Reset(p.f.limits.head) // both are silent: tcp may be
		}
	}
}

func (p *port) asTCP(client *clientConn, back *backTCP, fromBack chan heard, first []byte) {
	if back == nil {
		p.carryTCP(client, first)
		return
	}
	p.splice(client, back, first, interrupt(back.conn, fromBack))
}
