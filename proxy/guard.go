package proxy

import (
	"errors"
	"sync"
)

// guard stands between a connection and the server's parser. It lets through only what every
// parser reads alike, and has the rest answered with 400: bare line ends, folded lines, two
// lengths, blanks where none may be. So nothing is forwarded that two could read in two ways.
//
// It follows the frames of what it lets through. That agrees with the server's parser,
// because all that it lets through can be read in one way only.
type guard struct {
	*clientConn

	mu      sync.Mutex // guards what follows; the server reads ahead in a goroutine of its own
	frames  frames
	rest    []byte // was read, and not given on yet
	held    []byte // was given on while it was open whether this is HTTP still
	pending bool   // the request asks for another protocol; the answer decides
	raw     bool   // it is no HTTP/1 any more
	broken  error
}

// errFraming is why a request was not read any further.
var errFraming = errors.New("cannot read the request: its framing is not plain")

func newGuard(c *clientConn, first []byte) *guard { return &guard{clientConn: c, rest: first} }

func (g *guard) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	g.mu.Lock()
	if g.broken != nil {
		defer g.mu.Unlock()
		return 0, g.broken
	}
	if g.pending && !g.raw {
		p = p[:1] // the server only looks whether the client is there
	}
	if len(g.rest) > 0 {
		n := copy(p, g.rest)
		if g.rest = g.rest[n:]; len(g.rest) == 0 {
			g.rest = nil
		}
		defer g.mu.Unlock()
		return g.pass(p[:n])
	}
	g.mu.Unlock()
	n, err := g.clientConn.Read(p)
	if n == 0 {
		return n, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pass(p[:n]) // an error comes again at the next read
}

// pass lets through what it can of p, which was just read; with mu held.
func (g *guard) pass(p []byte) (int, error) {
	switch {
	case g.raw:
		return len(p), nil
	case g.pending:
		g.held = append(g.held, p...)
		return len(p), nil
	}
	n, err := g.frames.feed(p)
	switch {
	case err != nil:
		g.broken = err
		if n == 0 {
			return 0, err
		}
	case g.frames.http2:
		g.raw, n = true, len(p)
	case g.frames.upgrade:
		g.frames.upgrade, g.pending = false, true
	}
	if n < len(p) && err == nil {
		g.rest = append([]byte(nil), p[n:]...)
	}
	return n, nil
}

// asked reports whether the request that is carried may become another protocol.
func (g *guard) asked() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pending
}

// becomeRaw is called when the connection became another protocol.
func (g *guard) becomeRaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.raw, g.pending, g.held = true, false, nil
}

// stayHTTP is called when an answer has ended and the connection is HTTP still.
func (g *guard) stayHTTP() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.pending {
		return
	}
	g.pending = false
	if _, err := g.frames.feed(g.held); err != nil {
		g.broken = err
	}
	g.held = nil
}

// isBroken reports whether the client sent what is not read any further.
func (g *guard) isBroken() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken != nil
}
