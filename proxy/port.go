package proxy

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gitring/gitring/ring"
)

// port is one port that this process listens on.
type port struct {
	f    *Front
	at   atomic.Pointer[ring.FrontPort]
	ntlm atomic.Bool // auto became tcp: see noticeNTLM
	tcp  *net.TCPListener
	http *handoff
	udp  *flows
	end  chan struct{}
	once sync.Once
	all  sync.WaitGroup
}

func (f *Front) openPort(at ring.FrontPort) (*port, error) {
	p := &port{f: f, end: make(chan struct{})}
	p.at.Store(&at)
	key, number := portKey(at), strconv.Itoa(at.Port)
	if at.Protocol() == "udp" {
		pc, err := f.inheritPacket(key, number)
		if err != nil {
			return nil, err
		}
		p.udp = newFlows(f, p, pc)
		p.all.Go(p.udp.read)
		return p, nil
	}
	var err error
	if p.tcp, err = f.inheritListener(key, number); err != nil {
		return nil, err
	}
	p.http = newHandoff(p.tcp.Addr())
	go p.serveHTTP()
	p.all.Go(p.accept)
	return p, nil
}

func (f *Front) inheritListener(key, number string) (*net.TCPListener, error) {
	file := f.Sockets[key]
	if file == nil {
		l, err := net.Listen("tcp", ":"+number)
		if err != nil {
			return nil, err
		}
		return l.(*net.TCPListener), nil
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	t, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.New("what was inherited is no tcp socket")
	}
	return t, nil
}

func (f *Front) inheritPacket(key, number string) (*net.UDPConn, error) {
	file := f.Sockets[key]
	if file == nil {
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		return net.ListenUDP("udp", &net.UDPAddr{Port: n})
	}
	pc, err := net.FilePacketConn(file)
	if err != nil {
		return nil, err
	}
	u, ok := pc.(*net.UDPConn)
	if !ok {
		return nil, errors.New("what was inherited is no udp socket")
	}
	return u, nil
}

// become has a port be carried otherwise, from the next connection on.
func (p *port) become(at ring.FrontPort) {
	if p.at.Load().Carry != at.Carry {
		p.ntlm.Store(false)
	}
	p.at.Store(&at)
}

// carry is how the port is carried now.
func (p *port) carry() string {
	if p.ntlm.Load() {
		return ring.CarryTCP
	}
	return p.at.Load().Carry
}

func (p *port) number() string { return strconv.Itoa(p.at.Load().Port) }

func (p *port) flowCount() int {
	if p.udp == nil {
		return 0
	}
	return p.udp.count()
}

// close stops accepting. What was accepted goes on.
func (p *port) close() {
	p.once.Do(func() {
		close(p.end)
		if p.tcp != nil {
			_ = p.tcp.Close()
		}
		if p.udp != nil {
			p.udp.stop()
		}
	})
	p.all.Wait()
}

// accept takes connections while there is room; more wait in the backlog.
func (p *port) accept() {
	f := p.f
	for {
		if !f.room(p.end) {
			return
		}
		c, err := p.tcp.AcceptTCP()
		if err != nil {
			f.conns.Add(-1)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				f.markFull()
				f.makeRoom()
			}
			if !pause(p.end, 20*time.Millisecond) {
				return
			}
			continue
		}
		client := &clientConn{TCPConn: c, f: f}
		switch p.carry() {
		case ring.CarryHTTP:
			go p.toHTTP(client, nil)
		case ring.CarryTCP:
			go p.carryTCP(client, nil)
		default:
			go p.detect(client)
		}
	}
}

// room waits until one more connection may come, and counts it.
func (f *Front) room(end <-chan struct{}) bool {
	for {
		if f.conns.Add(1) <= f.limit.Load() && f.cost() <= f.budget {
			return true
		}
		f.conns.Add(-1)
		f.markFull()
		if !f.makeRoom() && !pause(end, 5*time.Millisecond) {
			return false
		}
	}
}

func (f *Front) markFull() { f.fullAt.Store(time.Now().Unix()) }

// pause reports false when it ended early.
func pause(end <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-end:
		return false
	case <-t.C:
		return true
	}
}

// clientConn is a connection of a client; closing it makes room for another.
type clientConn struct {
	*net.TCPConn
	f    *Front
	once sync.Once
}

func (c *clientConn) Close() error {
	err := c.TCPConn.Close()
	c.once.Do(func() { c.f.conns.Add(-1) })
	return err
}

// reset closes with RST: nothing that was said arrives any more, and nobody takes it for an end.
func (c *clientConn) reset() {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// handoff is a listener whose connections are given to it.
type handoff struct {
	addr  net.Addr
	conns chan net.Conn
	end   chan struct{}
	once  sync.Once
}

func newHandoff(addr net.Addr) *handoff {
	return &handoff{addr: addr, conns: make(chan net.Conn), end: make(chan struct{})}
}

func (h *handoff) give(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.end:
		_ = c.Close()
	}
}

func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.end:
		return nil, net.ErrClosed
	}
}

func (h *handoff) Close() error {
	h.once.Do(func() { close(h.end) })
	return nil
}

func (h *handoff) Addr() net.Addr { return h.addr }
