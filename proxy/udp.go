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
)

// flows are what a udp port carries: one for each address of a client.
type flows struct {
	f    *Front
	p    *port
	conn *net.UDPConn
	done atomic.Bool

	mu    sync.Mutex // guards what follows
	known map[netip.AddrPort]*flow
}

// flow is one client and the instance that it talks to.
type flow struct {
	back  *net.UDPConn
	claim *claim
	last  atomic.Int64 // when a datagram went either way, unix nanoseconds
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
		fl := u.flowOf(from)
		if fl == nil {
			continue
		}
		fl.last.Store(time.Now().UnixNano())
		if _, err := fl.back.Write(buf[:n]); err == nil {
			fl.claim.m.counts.bytesIn.Add(int64(n))
		}
	}
}

func (u *flows) flowOf(from netip.AddrPort) *flow {
	u.mu.Lock()
	defer u.mu.Unlock()
	if fl := u.known[from]; fl != nil {
		return fl
	}
	if len(u.known) >= maxFlows {
		return nil
	}
	fl := u.open(from)
	if fl != nil {
		u.known[from] = fl
		go u.answer(from, fl)
	}
	return fl
}

func (u *flows) open(from netip.AddrPort) *flow {
	c := &claim{stream: true, idle: true} // idle: it is not waited for
	if u.f.claim(context.Background(), wants{}, c) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), nameWait)
	defer cancel()
	addrs, err := u.f.names.resolve(ctx, c.m.name)
	if err != nil {
		u.f.release(c)
		return nil
	}
	back, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addrs[0], uint16(u.p.at.Load().Port))))
	if err != nil {
		u.f.release(c)
		return nil
	}
	u.f.mu.Lock()
	c.idle = false
	c.m.counts.requests.Add(1)
	u.f.mu.Unlock()
	fl := &flow{back: back, claim: c}
	fl.last.Store(time.Now().UnixNano())
	u.f.setCut(c, func() { go u.end(from, fl) }) // not here: the table of flows is held
	return fl
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
