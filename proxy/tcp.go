package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitring/gitring/ring"
)

// backTCP is a connection to an instance that is carried byte for byte.
type backTCP struct {
	f     *Front
	conn  *net.TCPConn
	claim *claim
}

// openTCP connects to an instance, another one where the first cannot be connected to. An
// idle one is not waited for and counts for nothing, until it is spliced.
func (p *port) openTCP(w wants, idle bool) *backTCP {
	f := p.f
	ctx, cancel := context.WithTimeout(context.Background(), dialBudget)
	defer cancel()
	for try := range dialTries {
		b := &backTCP{f: f, claim: &claim{idle: idle, stream: true}}
		if err := f.claim(context.Background(), w, b.claim); err != nil {
			return nil
		}
		if try > 0 {
			b.claim.m.counts.retries.Add(1)
		}
		conn, err := f.dial(ctx, b.claim.m, p.number(), dialBudget/dialTries)
		if err == nil {
			b.conn = conn
			b.setCut(func() { _ = conn.Close() })
			return b
		}
		f.release(b.claim)
		if w.tried == nil {
			w.tried = map[*member]bool{}
		}
		w.tried[b.claim.m] = true
	}
	return nil
}

// setCut says how it ends at a deadline; at once, where that has passed.
func (b *backTCP) setCut(cut func()) { b.f.setCut(b.claim, cut) }

func (f *Front) setCut(c *claim, cut func()) {
	f.mu.Lock()
	c.cut = cut
	m := c.m
	past := m.gone || m.at.State == ring.FrontDraining && (c.idle || !m.at.Until.IsZero() && !time.Now().Before(m.at.Until))
	past = past && !c.over
	if past {
		c.over = true
		if !c.idle {
			f.cuts.Add(1)
		}
	}
	f.mu.Unlock()
	if past {
		cut()
	}
}

// moved reports whether its instance gets nothing new any more.
func (b *backTCP) moved() bool {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	return b.claim.m.gone || b.claim.m.at.State != ring.FrontActive
}

func (b *backTCP) drop() {
	_ = b.conn.Close()
	b.f.release(b.claim)
}

// carryTCP carries a connection byte for byte; first is what was read already.
func (p *port) carryTCP(client *clientConn, first []byte) {
	back := p.openTCP(wants{}, false)
	if back == nil {
		client.reset()
		return
	}
	p.splice(client, back, first, nil)
}

// splice carries both ways until both have ended. first and said are what was read already,
// of the client and of the instance.
func (p *port) splice(client *clientConn, back *backTCP, first, said []byte) {
	f, c := p.f, back.claim
	defer f.release(c)
	counts := c.m.counts
	f.mu.Lock()
	if c.idle {
		c.idle = false
		counts.requests.Add(1)
	}
	f.mu.Unlock()
	back.setCut(func() {
		_ = client.CloseWrite()
		_ = back.conn.CloseWrite()
		time.AfterFunc(resetAfter, func() {
			client.reset()
			_ = back.conn.SetLinger(0)
			_ = back.conn.Close()
		})
	})
	var both sync.WaitGroup
	broken := func() {
		client.reset()
		_ = back.conn.SetLinger(0)
		_ = back.conn.Close()
	}
	both.Go(func() {
		if pump(back.conn, client.TCPConn, first, &counts.bytesIn) != nil {
			broken()
		}
	})
	if pump(client.TCPConn, back.conn, said, &counts.bytesOut) != nil {
		broken()
	}
	both.Wait()
	_ = client.Close()
	_ = back.conn.Close()
}

// pump copies one way, and passes the end of it on. It counts each MiB as it goes.
func pump(to, from *net.TCPConn, first []byte, n *atomic.Int64) error {
	if len(first) > 0 {
		if _, err := to.Write(first); err != nil {
			return err
		}
		n.Add(int64(len(first)))
	}
	for {
		k, err := io.CopyN(to, from, 1<<20)
		n.Add(k)
		if errors.Is(err, io.EOF) {
			_ = to.CloseWrite() // a half-closed connection is not broken
			return nil
		}
		if err != nil {
			return err
		}
	}
}
