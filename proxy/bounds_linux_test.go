package proxy

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A client that does not take its FIN for the end of it gets a reset, and not before 5 s.
func TestAtTheDeadlineTCPGetsAResetAfterFIN(t *testing.T) {
	b := newBench(t, ring.CarryTCP)
	hold := make(chan struct{})
	defer close(hold)
	b.raw("old", func(_ int, c net.Conn) {
		_, _ = io.WriteString(c, "hello")
		<-hold
	})
	b.says("new")
	b.route("old:active")
	c, err := net.Dial("tcp", b.addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.ReadFull(c, make([]byte, 5))
	require.NoError(t, err)
	began := time.Now()
	b.drainUntil("new", time.Now(), "old")
	_, err = io.ReadAll(c)
	require.NoError(t, err, "FIN first")
	raw, err := c.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	b.eventually("a reset", func() (reset bool) { // which a read after the end does not tell
		require.NoError(t, raw.Control(func(fd uintptr) {
			n, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
			reset = err == nil && (syscall.Errno(n) == syscall.ECONNRESET || syscall.Errno(n) == syscall.EPIPE)
		}))
		return reset
	})
	require.GreaterOrEqual(t, time.Since(began), resetAfter)
	b.eventually("drained", func() bool { return b.instance("old").InFlight == 0 })
	require.EqualValues(t, 1, b.f.cuts.Load())
}

// certificate is one that a test trusts as it is.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"app"}, NotAfter: time.Now().Add(time.Hour)}
	body, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{body}, PrivateKey: key}
}

// TLS passes through as it is: the instance has the key, and a connection that is kept alive
// lasts through a switch, until the deadline.
func TestTLSPassesThroughUntilTheDeadline(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	cert := certificate(t)
	for _, name := range []string{"old", "new"} {
		l := tls.NewListener(b.listen(name), &tls.Config{Certificates: []tls.Certificate{cert}})
		serveOn(t, l, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	}
	roots := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	require.NoError(t, err)
	roots.AddCert(leaf)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "app"}}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, Timeout: wait}
	ask := func() (who string, reused bool) {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, "https://"+b.addr()+"/", nil)
		require.NoError(t, err)
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
		res, err := c.Do(r.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return string(body), reused
	}
	b.route("old:active")
	who, _ := ask()
	require.Equal(t, "old", who)
	b.drainUntil("new", time.Now().Add(time.Hour), "old")
	for range 3 {
		who, reused := ask()
		require.Equal(t, "old", who, "its connection is kept")
		require.True(t, reused)
	}
	require.Equal(t, 1, b.instance("old").Streams)
	b.drainUntil("new", time.Now(), "old")
	b.eventually("drained", func() bool { return b.instance("old").InFlight == 0 })
	who, reused := ask()
	require.Equal(t, "new", who)
	require.False(t, reused)
	require.EqualValues(t, 1, b.f.cuts.Load())
}

// flowBench is a front of a udp port with an instance that sends back what it gets.
func flowBench(t *testing.T) (b *bench, dial func() net.Conn, echoed func(net.Conn, time.Duration) bool) {
	t.Helper()
	b = newBench(t, ring.CarryUDP)
	addr, err := net.ResolveUDPAddr("udp", b.name("one"))
	require.NoError(t, err)
	pc, err := net.ListenUDP("udp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = pc.Close() })
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := pc.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			_, _ = pc.WriteToUDPAddrPort(buf[:n], from)
		}
	}()
	b.route("one:active")
	dial = func() net.Conn {
		c, err := net.Dial("udp", b.addr())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	return b, dial, func(c net.Conn, patience time.Duration) bool {
		_, err := io.WriteString(c, "x")
		require.NoError(t, err)
		_ = c.SetReadDeadline(time.Now().Add(patience))
		_, err = c.Read(make([]byte, 100))
		return err == nil
	}
}

func (b *bench) flows() *flows { return b.f.portList()[0].udp }

// A flow ends when neither side said anything for 60 s, and not before. The next datagram of
// its client makes a new one.
func TestAFlowThatIsIdleEnds(t *testing.T) {
	b, dial, echoed := flowBench(t)
	c := dial()
	require.True(t, echoed(c, wait))
	require.Equal(t, 1, b.flows().count())
	from := netip.MustParseAddrPort(c.LocalAddr().String())
	u := b.flows()
	the := func() *flow { u.mu.Lock(); defer u.mu.Unlock(); return u.known[from] }
	first := the()
	require.NotNil(t, first)
	// Its reader wakes as if its time were over, and looks at when something was said last.
	first.last.Store(time.Now().Add(-flowIdle / 2).UnixNano())
	require.NoError(t, first.back.SetReadDeadline(time.Unix(1, 0)))
	require.True(t, echoed(c, wait))
	require.Same(t, first, the(), "half of the time was left")
	first.last.Store(time.Now().Add(-flowIdle).UnixNano())
	require.NoError(t, first.back.SetReadDeadline(time.Unix(1, 0)))
	b.eventually("it ends", func() bool { return the() == nil && b.instance("one").InFlight == 0 })
	require.True(t, echoed(c, wait))
	require.NotSame(t, first, the())
	require.EqualValues(t, 2, b.instance("one").Counts.Requests)
}

// One more flow than may be is dropped; those that are there go on, and one that ends makes room.
func TestNoMoreFlowsThanMayBe(t *testing.T) {
	b, dial, echoed := flowBench(t)
	first := dial()
	require.True(t, echoed(first, wait))
	u := b.flows()
	u.mu.Lock()
	for i := len(u.known); i < maxFlows; i++ {
		u.known[netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 1)] = &flow{}
	}
	u.mu.Unlock()
	second := dial()
	require.False(t, echoed(second, time.Second/4))
	require.Equal(t, maxFlows, u.count())
	require.True(t, echoed(first, wait))
	u.mu.Lock()
	for at := range u.known {
		if at.Addr() != netip.MustParseAddr("127.0.0.1") {
			delete(u.known, at)
		}
	}
	u.mu.Unlock()
	require.True(t, echoed(second, wait))
}

// A datagram in a gap is dropped: it does not wait as requests do.
func TestDatagramsAreDroppedInAGap(t *testing.T) {
	b, dial, echoed := flowBench(t)
	b.table.Queue, b.table.QueueUntil = wait, time.Now().Add(wait)
	b.route()
	c := dial()
	u := b.flows()
	require.Nil(t, u.flowOf(netip.MustParseAddrPort(c.LocalAddr().String()), []byte("dropped")))
	b.eventually("it was given up", func() bool { return u.count() == 0 })
	require.Zero(t, b.f.seen().Queued)
	b.table.QueueUntil = time.Time{}
	b.route("one:active")
	require.True(t, echoed(c, wait))
	_ = c.SetReadDeadline(time.Now().Add(time.Second / 4))
	n, err := c.Read(make([]byte, 100))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "%d bytes more", n)
}

// Plain connections wait in a gap as requests do.
func TestConnectionsWaitInAGap(t *testing.T) {
	b := newBench(t, ring.CarryTCP)
	b.raw("new", func(_ int, c net.Conn) { _, _ = io.Copy(c, c) })
	b.table.Queue, b.table.QueueUntil = wait, time.Now().Add(wait)
	b.route()
	var conns []net.Conn
	for i := range 10 {
		c, err := net.Dial("tcp", b.addr())
		require.NoError(t, err)
		defer c.Close()
		_, err = fmt.Fprint(c, i)
		require.NoError(t, err)
		conns = append(conns, c)
	}
	b.eventually("all wait", func() bool { return b.f.seen().Queued == 10 })
	b.table.QueueUntil = time.Time{}
	b.route("new:active")
	for i, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(wait))
		buf := make([]byte, 1)
		_, err := io.ReadFull(c, buf)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), string(buf))
	}
}

// The front closes its idle connections to an instance by itself, and one that has an answer
// on its way is not idle.
func TestIdleConnectionsToAnInstanceAreClosedSoon(t *testing.T) {
	require.LessOrEqual(t, idleSafe, 4*time.Second)
	require.LessOrEqual(t, idleOnce, 500*time.Millisecond)
	b := newBench(t, ring.CarryAuto)
	closed := make(chan string, 10)
	b.raw("one", func(_ int, c net.Conn) {
		r := bufio.NewReader(c)
		method := ""
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				if method != "" {
					closed <- method
				}
				return
			}
			method = req.Method
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(c, okAnswer)
		}
	})
	b.route("one:active")
	status, _ := b.get(b.client(true), "/")
	require.Equal(t, 200, status)
	res, err := b.client(true).Post(b.url("/"), "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.MethodPost, <-closed, "it idles for half a second")
	require.Equal(t, http.MethodGet, <-closed, "it idles for four")
}

// A connection of a client that is kept alive goes on over switches, and each request of it
// goes to whoever is active then.
func TestAKeptConnectionOutlivesSwitches(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one", "two")
	b.route("one:active")
	c, err := net.Dial("tcp", b.addr())
	require.NoError(t, err)
	defer c.Close()
	r := bufio.NewReader(c)
	for i := range 20 {
		now, was := []string{"one", "two"}[i%2], []string{"two", "one"}[i%2]
		b.drainUntil(now, time.Now().Add(time.Hour), was)
		b.eventually("drained", func() bool { return b.instance(was).InFlight == 0 })
		b.route(now + ":active")
		_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
		require.NoError(t, err)
		res, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, now, string(body))
		require.False(t, res.Close, "request %d: %s %v", i, res.Status, res.Header)
	}
}

// An answer can be with its client, and its end not yet heard of, when it is cut. Its
// connection is closed then: the next request of it would get 502.
func TestACutAnswerLeavesNoConnectionToTheNextRequest(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	asked, answer := make(chan struct{}), make(chan struct{})
	b.serve("one", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			close(asked)
			<-answer
		}
		_, _ = io.WriteString(w, "ok")
	})
	b.route("one:active")
	c, err := net.Dial("tcp", b.addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "GET /first HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	<-asked
	b.f.stalling.mu.Lock() // holds the end of the call up
	close(answer)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err, "the answer is whole")
	b.f.mu.Lock()
	cuts := b.f.cutsOf(b.f.members["one"])
	b.f.mu.Unlock()
	require.Len(t, cuts, 1)
	cuts[0]()
	b.f.stalling.mu.Unlock()
	_, _ = io.WriteString(c, "GET /second HTTP/1.1\r\nHost: x\r\n\r\n")
	_ = c.SetReadDeadline(time.Now().Add(wait))
	left, err := io.ReadAll(r)
	require.Empty(t, left, "it is closed, and nobody is answered for its instance")
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

// At most four instances are tried, however many there are.
func TestAtMostFourInstancesAreTried(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		b := newBench(t, ring.CarryAuto)
		var names []string
		for i := range 6 {
			names = append(names, fmt.Sprintf("closed%d:active", i))
			b.name(fmt.Sprintf("closed%d", i))
		}
		b.route(names...)
		// Probes count as well: what they found is taken off.
		sum := func() (tries, retries int64) {
			for _, in := range b.f.seen().Instances {
				tries, retries = tries+in.Counts.Requests, retries+in.Counts.Retries
			}
			return tries, retries
		}
		r, err := http.NewRequest(method, b.url("/"), nil)
		require.NoError(t, err)
		res, err := b.client(false).Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, 503, res.StatusCode)
		tries, retries := sum()
		require.EqualValues(t, []int64{dialTries, dialTries - 1}, []int64{tries, retries})
	}
}

// hangs gives an instance an address where connections neither open nor fail: the kernel takes
// no more of them until somebody accepts the first ones, which nobody does.
func (b *bench) hangs(name string) {
	at := b.name(name)
	host, _, err := net.SplitHostPort(at)
	require.NoError(b.t, err)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(b.t, syscall.Bind(fd, &syscall.SockaddrInet4{Port: b.port, Addr: netip.MustParseAddr(host).As4()}))
	require.NoError(b.t, syscall.Listen(fd, 0))
	for range 20 {
		c, err := net.DialTimeout("tcp", at, 100*time.Millisecond)
		if err != nil {
			return
		}
		b.t.Cleanup(func() { _ = c.Close() })
	}
	b.t.Fatal("the kernel takes connections that nobody accepts")
}

// Connections that hang are given up after 5 s in all, each after a share of it: a request is
// not held for longer, whatever its method, and one that can be answered elsewhere is.
func TestConnectionsThatHangHoldARequestForFiveSeconds(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	var names []string
	for i := range 6 {
		name := fmt.Sprintf("hangs%d", i)
		b.hangs(name)
		names = append(names, name+":active")
	}
	b.route(names...)
	type ended struct {
		status int
		took   time.Duration
		err    error
	}
	ends := make(chan ended, 2)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		go func() {
			began := time.Now()
			r, err := http.NewRequest(method, b.url("/"), strings.NewReader("x"))
			if err != nil {
				ends <- ended{err: err}
				return
			}
			res, err := b.client(false).Do(r)
			if err != nil {
				ends <- ended{err: err}
				return
			}
			ends <- ended{res.StatusCode, time.Since(began), res.Body.Close()}
		}()
	}
	for range 2 {
		e := <-ends
		require.NoError(t, e.err)
		require.Equal(t, 503, e.status)
		require.Greater(t, e.took, 3*time.Second, "others were tried")
		require.Less(t, e.took, wait)
	}
	b.says("lives")
	b.route("hangs0:active", "lives:active")
	for range 4 {
		status, who := b.get(b.client(false), "/")
		require.Equal(t, 200, status)
		require.Equal(t, "lives", who)
	}
}

// Whoever closes without a word decides nothing: the client may be about to speak HTTP.
func TestAnInstanceThatOnlyClosesDecidesNothing(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	closed := make(chan struct{}, 10)
	b.raw("one", func(n int, c net.Conn) {
		if n <= 2 { // the probe, and the connection that a silent client is given
			_ = c.Close()
			closed <- struct{}{}
			return
		}
		var count atomic.Int64
		requests(c, &count, func(int64) string { return okAnswer })
	})
	b.route("one:active")
	c, err := net.Dial("tcp", b.addr())
	require.NoError(t, err)
	defer c.Close()
	<-closed
	<-closed
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	_ = c.SetReadDeadline(time.Now().Add(wait))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, 200, res.StatusCode)
	require.Zero(t, b.instance("one").Streams, "it is carried as HTTP")
}

// Negotiate ties a user to a connection as NTLM does.
func TestNegotiateMakesAPortTCP(t *testing.T) {
	for _, header := range []string{"WWW-Authenticate: Negotiate", "www-authenticate: negotiate YII="} {
		b := newBench(t, ring.CarryAuto)
		b.raw("one", func(_ int, c net.Conn) {
			var count atomic.Int64
			requests(c, &count, func(int64) string { return "HTTP/1.1 401 No\r\n" + header + "\r\nContent-Length: 0\r\n\r\n" })
		})
		b.route("one:active")
		res, err := b.client(true).Get(b.url("/"))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.True(t, res.Close, "%s: %v", header, res.Header)
		require.Equal(t, ring.CarryTCP, b.f.seen().Ports[0].Carry, header)
	}
}

// What comes before an answer passes, each at once: the answer is not there yet.
func TestEarlyHintsPass(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	seen := make(chan struct{})
	b.serve("one", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		<-seen
		w.WriteHeader(http.StatusOK)
	})
	b.route("one:active")
	var hints []string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, " ", h.Get("Link")))
		close(seen)
		return nil
	}}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, b.url("/"), nil)
	require.NoError(t, err)
	res, err := b.client(false).Do(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, []string{"103 </a.css>; rel=preload"}, hints)
}

// Bodies have no limit of length either way, and none of them is kept in memory: both ways
// go at once, further than any buffer.
func TestBodiesHaveNoLimit(t *testing.T) {
	const size = 96 << 20
	b := newBench(t, ring.CarryAuto)
	b.serve("one", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	})
	b.route("one:active")
	r, err := http.NewRequest(http.MethodPost, b.url("/"), io.LimitReader(zeros{}, size))
	require.NoError(t, err)
	res, err := b.client(false).Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	require.EqualValues(t, size, n)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A name is asked for once a second, however many connections there are.
func TestAnAnswerOfDNSIsKeptForASecond(t *testing.T) {
	asked := 0
	answers := []netip.Addr{netip.MustParseAddr("127.0.1.1")}
	n := newNames(func(context.Context, string) ([]netip.Addr, error) { asked++; return answers, nil }, func() ownNet {
		return ownNet{subnets: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	})
	for range 100 {
		got, err := n.resolve(t.Context(), "one")
		require.NoError(t, err)
		require.Equal(t, answers, got)
	}
	require.LessOrEqual(t, asked, 1+int(wait/nameFresh), "on a machine that stands still for a while")
	asked = 0
	n.mu.Lock()
	n.known["one"].at = n.known["one"].at.Add(-nameFresh)
	n.mu.Unlock()
	answers = []netip.Addr{netip.MustParseAddr("127.0.1.2")}
	got, err := n.resolve(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, answers, got)
	require.Equal(t, 1, asked)
	require.Equal(t, time.Second, nameFresh)
}

// After a boot the engine knows no name at first, or does not answer yet. The name that comes is
// found within a second.
func TestANameThatComesIsFoundWithinASecond(t *testing.T) {
	nobody := func(context.Context) error { return &net.DNSError{IsNotFound: true} }
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, before := range map[string]func(context.Context) error{"nobody has it": nobody, "DNS is silent": silent} {
		for _, after := range []time.Duration{0, 10 * time.Millisecond, 690 * time.Millisecond, 990 * time.Millisecond, 5400 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s for %s", name, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					n := newNames(func(ctx context.Context, _ string) ([]netip.Addr, error) {
						if time.Since(began) < after {
							return nil, before(ctx)
						}
						return []netip.Addr{netip.MustParseAddr("127.0.1.1")}, nil
					}, func() ownNet { return ownNet{subnets: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}} })
					for {
						if _, err := n.resolve(t.Context(), "one"); err == nil {
							break
						}
						time.Sleep(time.Millisecond)
					}
					require.LessOrEqual(t, time.Since(began)-after, time.Second)
				})
			})
		}
	}
}

// A client has 30 s for a head and 75 s between two requests. The test has less of both.
func TestClientsHaveTheirTimeForAHeadAndBetweenRequests(t *testing.T) {
	require.Equal(t, limits{30 * time.Second, 75 * time.Second}, New(Options{}).limits)
	b := newBenchWith(t, ring.CarryAuto, limits{head: time.Second / 2, idle: time.Second})
	b.says("one")
	b.route("one:active")
	const whole = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, tt := range []struct {
		name, first, then string
		least             time.Duration
	}{
		{"half of a head", "GET / HTTP/1.1\r\nHost: x\r\n", "", time.Second / 2},
		{"half of a second head", whole, "GET / HTTP/1.1\r\n", time.Second / 2},
		{"nothing after a request", whole, "", time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := net.Dial("tcp", b.addr())
			require.NoError(t, err)
			defer c.Close()
			began := time.Now()
			_, err = io.WriteString(c, tt.first)
			require.NoError(t, err)
			r := bufio.NewReader(c)
			_ = c.SetReadDeadline(time.Now().Add(wait))
			if tt.first == whole {
				res, err := http.ReadResponse(r, nil)
				require.NoError(t, err)
				_, _ = io.Copy(io.Discard, res.Body)
				began = time.Now()
				_, err = io.WriteString(c, tt.then)
				require.NoError(t, err)
			}
			_, err = io.ReadAll(r)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			var late net.Error
			require.False(t, errors.As(err, &late) && late.Timeout(), "it was closed by the front")
			require.GreaterOrEqual(t, time.Since(began), tt.least-time.Second/20)
		})
	}
	b.eventually("nobody holds a connection any more", func() bool { return b.f.conns.Load() <= 1 })
}

// A proxy that another one has replaced answers what comes on its kept connections, and has
// their clients connect anew: by Connection: close, and by GOAWAY where it is HTTP/2.
func TestAReplacedProxyLetsItsClientsGo(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one")
	b.route("one:active")
	for _, s := range b.f.Sockets { // this test has the port to itself, so that nobody accepts after
		defer s.Close()
	}
	one, two := b.client(true), h2cClient(t)
	for _, c := range []*http.Client{one, two} {
		status, who := b.get(c, "/")
		require.Equal(t, []any{200, "one"}, []any{status, who})
	}
	b.f.retire()
	for _, c := range []*http.Client{one, two} {
		res, err := c.Get(b.url("/"))
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, "one", string(body))
		require.Equal(t, res.ProtoMajor == 1, res.Close)
	}
	b.eventually("no client holds a connection", func() bool { return b.f.conns.Load() == 0 })
	for _, c := range []*http.Client{one, two} {
		res, err := c.Get(b.url("/"))
		if err == nil {
			_ = res.Body.Close()
		}
		require.ErrorContains(t, err, "refused", "it takes no new connection")
	}
}
