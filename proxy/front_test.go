package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// bench is a front of a test: it listens on 127.0.0.1, its instances on 127.0.1.x at the same
// port, and DNS is a map.
type bench struct {
	t     *testing.T
	f     *Front
	port  int
	carry string
	gen   int64
	table ring.FrontTable

	mu    sync.Mutex
	dns   map[string]string             // name -> address
	mute  atomic.Bool                   // DNS is silent
	stuck atomic.Pointer[chan struct{}] // DNS answers once it is closed
	own   ownNet
	next  int
	ended chan struct{}
	stop  context.CancelFunc
}

func newBench(t *testing.T, carry string) *bench { return newBenchWith(t, carry, limits{}) }

func newBenchWith(t *testing.T, carry string, l limits) *bench {
	t.Helper()
	b := &bench{t: t, carry: carry, dns: map[string]string{}, ended: make(chan struct{})}
	b.own = ownNet{subnets: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
	dir := shortDir(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "run"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "table"), 0o700))
	sockets := map[string]*os.File{}
	if carry == ring.CarryUDP {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		require.NoError(t, err)
		b.port = c.LocalAddr().(*net.UDPAddr).Port
		sockets[fmt.Sprintf("udp:%d", b.port)], err = c.File()
		require.NoError(t, err)
		require.NoError(t, c.Close())
	} else {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		b.port = l.Addr().(*net.TCPAddr).Port
		sockets[fmt.Sprintf("tcp:%d", b.port)], err = l.(*net.TCPListener).File()
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	b.f = New(Options{
		TableDir: filepath.Join(dir, "table"), RunDir: filepath.Join(dir, "run"), Sockets: sockets, Lookup: b.lookup, limits: l,
		own: func() ownNet { b.mu.Lock(); defer b.mu.Unlock(); return b.own }, Log: log.New(t.Output(), "", 0),
	})
	ctx, stop := context.WithCancel(t.Context())
	b.stop = stop
	ready := make(chan struct{})
	go func() {
		defer close(b.ended)
		if err := b.f.Run(ctx, func() { close(ready) }); err != nil {
			t.Error(err)
		}
	}()
	<-ready
	t.Cleanup(func() {
		stop()
		<-b.ended
		for _, s := range sockets {
			_ = s.Close()
		}
	})
	b.table = ring.FrontTable{Service: "app/web", Ports: []ring.FrontPort{{Port: b.port, Carry: carry}}, Forwarded: true, Trusted: []string{"networks"}, Connections: 10000}
	return b
}

func (b *bench) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if c := b.stuck.Load(); c != nil {
		<-*c
	}
	if b.mute.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.dns[name]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr(a)}, nil
}

// name gives an instance an address, where nobody listens yet.
func (b *bench) name(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	b.dns[name] = fmt.Sprintf("127.0.1.%d", b.next)
	return net.JoinHostPort(b.dns[name], fmt.Sprint(b.port))
}

// listen is the listener of an instance.
func (b *bench) listen(name string) net.Listener {
	b.t.Helper()
	l, err := net.Listen("tcp", b.name(name))
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = l.Close() })
	return l
}

// serve runs an instance that speaks HTTP/1.1 and h2c.
func (b *bench) serve(name string, h http.HandlerFunc) *http.Server {
	b.t.Helper()
	return serveOn(b.t, b.listen(name), h)
}

// says is an instance that answers with its name.
func (b *bench) says(names ...string) {
	for _, name := range names {
		b.serve(name, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, name)
		})
	}
}

// route brings a table into force whose instances are "name:state" or "name:state:set".
func (b *bench) route(instances ...string) {
	b.t.Helper()
	b.table.Instances = nil
	for _, text := range instances {
		parts := strings.Split(text, ":")
		in := ring.FrontInstance{Name: parts[0], State: ring.FrontState(parts[1]), Version: "v-" + parts[0]}
		if len(parts) > 2 {
			in.Set = parts[2]
		}
		b.table.Instances = append(b.table.Instances, in)
	}
	b.send(b.table)
}

func (b *bench) send(t ring.FrontTable) {
	b.t.Helper()
	b.gen++
	t.Generation = b.gen
	body, err := json.Marshal(t)
	require.NoError(b.t, err)
	var said problem
	status, err := askSocket(b.t.Context(), filepath.Join(b.f.RunDir, ring.FrontSocket), wait, http.MethodPut, "/v1/table", body, &said)
	require.NoError(b.t, err)
	require.Equal(b.t, http.StatusOK, status, said.Says)
}

func (b *bench) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", b.port, path) }

func (b *bench) addr() string { return fmt.Sprintf("127.0.0.1:%d", b.port) }

// client is one that keeps nothing alive, unless it should.
func (b *bench) client(keep bool) *http.Client {
	t := &http.Transport{DisableKeepAlives: !keep}
	b.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: wait}
}

func (b *bench) get(c *http.Client, path string) (int, string) {
	b.t.Helper()
	res, err := c.Get(b.url(path))
	require.NoError(b.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	return res.StatusCode, string(body)
}

func (b *bench) instance(name string) ring.FrontInstanceSeen {
	s := b.f.seen()
	i := slices.IndexFunc(s.Instances, func(in ring.FrontInstanceSeen) bool { return in.Name == name })
	if i < 0 {
		return ring.FrontInstanceSeen{}
	}
	return s.Instances[i]
}

// eventually polls: it counts on nothing but that it comes in the end.
func (b *bench) eventually(what string, is func() bool) {
	b.t.Helper()
	require.Eventually(b.t, is, wait, 5*time.Millisecond, what)
}

func TestARequestGoesToAnActiveInstance(t *testing.T) {
	b := newBench(t, ring.CarryHTTP) // auto has a choice of its own for clients that take 10 ms to speak
	b.says("one", "two", "warm")
	b.route("one:active", "two:active", "warm:warm")
	got := map[string]int{}
	for range 100 {
		status, body := b.get(b.client(false), "/")
		require.Equal(t, 200, status)
		got[body]++
	}
	require.Equal(t, map[string]int{"one": 50, "two": 50}, got)
	require.True(t, b.instance("warm").Reached)
	require.Zero(t, b.instance("warm").Counts.Requests)
	require.EqualValues(t, 50, b.instance("one").Counts.Answers2xx)
}

func TestNothingActiveIs503AndAReset(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("warm")
	b.name("closed")
	for _, instances := range [][]string{{}, {"warm:warm"}, {"closed:active"}, {"nowhere:active"}} {
		b.route(instances...)
		res, err := b.client(false).Get(b.url("/"))
		require.NoError(t, err)
		require.Equal(t, 503, res.StatusCode, instances)
		require.Equal(t, "1", res.Header.Get("Retry-After"))
		require.NoError(t, res.Body.Close())
		c, err := net.Dial("tcp", b.addr())
		require.NoError(t, err)
		_, err = c.Write([]byte{0x16, 3, 1, 0})
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		require.ErrorContains(t, err, "reset", instances)
		require.NoError(t, c.Close())
	}
}

// After a boot no instance answers at first. The first one that does gets requests at once,
// though all were passed over for longer and longer: a round of requests tries them all.
func TestTheFirstInstanceThatAnswersGetsRequestsAtOnce(t *testing.T) {
	b := newBench(t, ring.CarryHTTP)
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	at := map[string]string{}
	var table []string
	for _, n := range names {
		at[n] = b.name(n)
		table = append(table, n+":active")
	}
	b.route(table...)
	c := b.client(false)
	for range 30 {
		status, _ := b.get(c, "/")
		require.Equal(t, 503, status)
	}
	for _, first := range []string{"d", "a", "g"} {
		s := serveAt(t, at[first], answered)
		answered := 0
		for range len(names) {
			if status, _ := b.get(c, "/"); status == 200 {
				answered++
			}
		}
		require.Positive(t, answered, "%s answers", first)
		for range 20 { // from then on the others are passed over
			status, _ := b.get(c, "/")
			require.Equal(t, 200, status, "%s answers", first)
		}
		require.NoError(t, s.Close())
		status, _ := b.get(c, "/")
		require.Equal(t, 503, status)
	}
}

func TestASwitchUnderLoadLosesNothing(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one", "two", "three")
	b.route("one:active")
	ctx, stop := context.WithCancel(t.Context())
	var done atomic.Int64
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for i := range 8 {
		c := b.client(i%2 == 0)
		all.Go(func() {
			for ctx.Err() == nil {
				var res *http.Response
				var err error
				if i%4 < 2 {
					res, err = c.Get(b.url("/x"))
				} else {
					res, err = c.Post(b.url("/x"), "text/plain", strings.NewReader(strings.Repeat("x", 3000)))
				}
				if err != nil {
					t.Errorf("lost: %v", err)
					return
				}
				if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 {
					t.Errorf("lost: %d %v", res.StatusCode, err)
				}
				_ = res.Body.Close()
				done.Add(1)
			}
		})
	}
	names := []string{"one", "two", "three"}
	for i := range 60 {
		was, now := names[i%3], names[(i+1)%3]
		b.route(now+":active", was+":active")
		b.route(now+":active", was+":draining")
		b.eventually("drained", func() bool { return b.instance(was).InFlight == 0 })
		b.route(now + ":active")
		before := done.Load()
		b.eventually("load goes on", func() bool { return done.Load() > before+8 || t.Failed() })
	}
	stop()
	all.Wait()
	require.Zero(t, b.f.cuts.Load())
}
