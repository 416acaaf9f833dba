package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of udp: docs/design/traffic.md.
const (
	flowIdle = 60 * time.Second
	maxFlows = 10000
	datagram = 65535
	heldMost = 64      // datagrams of one flow, while it is opened
	heldSize = 4 << 20 // bytes of all of them
)

// flows are what a udp port carries: one for each address of a client.
type flows struct {
	f    *Front
	p    *port
	conn *net.UDPConn
	done atomic.Bool

	mu    sync.Mutex // guards what follows, and what flows hold
	known map[netip.AddrPort]*flow
	held  int // bytes, see flow
}

// flow is one client and the instance that it talks to.
type flow struct {
	back  *net.UDPConn
	claim *claim
	last  atomic.Int64 // when a datagram went either way, unix nanoseconds

	opened bool     // guarded by flows.mu, as is what follows
	held   [][]byte // came before it was opened: DNS takes its time, and others do not wait for it
}

func newFlows(f *Front, p *port, conn *net.UDPConn) *flows {
	return &flows{f: f, p: p, conn: conn, known: map[netip.AddrPort]*flow{}}
}

func (u *flows) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.known)
}

// stop ends reading; flows go on until they are idle.
func (u *flows) stop() {
	u.done.Store(true)
	_ = u.conn.SetReadDeadline(time.Unix(1, 0))
}

// read gives each datagram to its flow. Those that have no instance are dropped.
func (u *flows) read() {
	buf := make([]byte, datagram)
	for {
		n, from, err := u.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			if u.done.Load() || errors.Is(err, net.ErrClosed) {
				return
			}
			if !pause(u.p.end, 5*time.Millisecond) { // an error of the network below
				return
			}
			continue
		}
		fl := u.flowOf(from, buf[:n])
		if fl == nil {
			continue
		}
		fl.send(buf[:n])
	}
}

func (fl *flow) send(b []byte) {
	fl.last.Store(time.Now().UnixNano())
	if n, err := fl.back.Write(b); err == nil {
		fl.claim.m.counts.bytesIn.Add(int64(n))
	}
}

// flowOf is the flow of a client, nil where the datagram is held until that is opened, or
// dropped.
func (u *flows) flowOf(from netip.AddrPort, b []byte) *flow {
	u.mu.Lock()
	defer u.mu.Unlock()
	fl := u.known[from]
	switch {
	case fl != nil && fl.opened:
		return fl
	case fl == nil && len(u.known) >= maxFlows:
		return nil
	case fl == nil:
		fl = &flow{}
		u.known[from] = fl
		go u.begin(from, fl)
	}
	if len(fl.held) < heldMost && u.held+len(b) <= heldSize {
		fl.held = append(fl.held, append([]byte(nil), b...))
		u.held += len(b)
	}
	return nil
}

// begin opens a flow, sends on what came meanwhile, and carries what is answered.
func (u *flows) begin(from netip.AddrPort, fl *flow) {
	ok := u.open(from, fl)
	u.mu.Lock()
	for _, b := range fl.held {
		u.held -= len(b)
		if ok {
			fl.send(b)
		}
	}
	fl.held, fl.opened = nil, ok
	if !ok && u.known[from] == fl {
		delete(u.known, from)
	}
	u.mu.Unlock()
	if ok {
		u.answer(from, fl)
	}
}

// open finds an instance for a flow and connects to it. It takes the time that DNS takes.
func (u *flows) open(from netip.AddrPort, fl *flow) bool {
	c := &claim{stream: true, idle: true} // idle: it is not waited for
	if u.f.claim(context.Background(), wants{}, c) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), nameWait)
	defer cancel()
	addrs, err := u.f.names.resolve(ctx, c.m.name)
	if err != nil {
		u.f.release(c)
		return false
	}
	back, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addrs[0], uint16(u.p.at.Load().Port))))
	if err != nil {
		u.f.release(c)
		return false
	}
	u.f.mu.Lock()
	c.idle = false
	c.m.counts.requests.Add(1)
	u.f.mu.Unlock()
	fl.back, fl.claim = back, c
	fl.last.Store(time.Now().UnixNano())
	u.f.setCut(c, func() { go u.end(from, fl) }) // not here: the front's lock is held
	return true
}

// end closes a flow: the next datagram of its client makes a new one.
func (u *flows) end(from netip.AddrPort, fl *flow) {
	u.mu.Lock()
	if u.known[from] == fl {
		delete(u.known, from)
	}
	u.mu.Unlock()
	_ = fl.back.Close()
	u.f.release(fl.claim)
}

// answer carries what an instance says, until the flow is idle.
func (u *flows) answer(from netip.AddrPort, fl *flow) {
	defer u.end(from, fl)
	for {
		_ = fl.back.SetReadDeadline(time.Unix(0, fl.last.Load()).Add(flowIdle))
		err := readDatagram(fl.back, func(b []byte) {
			fl.last.Store(time.Now().UnixNano())
			fl.claim.m.counts.bytesOut.Add(int64(len(b)))
			_, _ = u.conn.WriteToUDPAddrPort(b, from)
		})
		if err != nil && !(errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, fl.last.Load())) < flowIdle) {
			return
		}
	}
}

// datagrams are lent only while one is carried: ten thousand idle flows need no memory for it.
var datagrams = sync.Pool{New: func() any { b := make([]byte, datagram); return &b }}
