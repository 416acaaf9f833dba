package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Who is believed about whom it speaks for. The front stands at 10.0.1.5 in 10.0.1.0/24.
func TestOnlyTrustedProxiesSpeakForOthers(t *testing.T) {
	here := ownNet{subnets: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}, addrs: []netip.Addr{netip.MustParseAddr("10.0.1.5")}}
	for _, c := range []struct {
		name, client      string
		trusted, gateways []string
		loopback, want    bool
	}{
		{name: "a container beside it", client: "10.0.1.9", trusted: []string{"networks"}, want: true},
		{name: "one in another form", client: "::ffff:10.0.1.9", trusted: []string{"networks"}, want: true},
		{name: "itself", client: "10.0.1.5", trusted: []string{"networks"}},
		{name: "somebody far away", client: "203.0.113.7", trusted: []string{"networks"}},
		{name: "the gateway, who may be anybody", client: "10.0.1.1", trusted: []string{"networks"}, gateways: []string{"10.0.1.1"}},
		{name: "a gateway at another address", client: "10.0.1.77", trusted: []string{"networks"}, gateways: []string{"10.0.1.77"}},
		{name: "the first address, where no gateway is named", client: "10.0.1.1", trusted: []string{"networks"}},
		{name: "the first address, beside a gateway that is named", client: "10.0.1.1", trusted: []string{"networks"}, gateways: []string{"10.0.1.77"}, want: true},
		{name: "the first address, where the gateway of another network is named", client: "10.0.1.1", trusted: []string{"networks"}, gateways: []string{"10.0.2.77"}},
		{name: "the gateway of a port on loopback alone", client: "10.0.1.1", trusted: []string{"networks"}, gateways: []string{"10.0.1.1"}, loopback: true, want: true},
		{name: "the gateway, as the host says", client: "10.0.1.1", trusted: []string{"gateway"}, gateways: []string{"10.0.1.1"}, want: true},
		{name: "a neighbour, where only the gateway is trusted", client: "10.0.1.9", trusted: []string{"gateway"}, gateways: []string{"10.0.1.1"}},
		{name: "a range", client: "203.0.113.7", trusted: []string{"203.0.113.0/24"}, want: true},
		{name: "an address", client: "203.0.113.7", trusted: []string{"203.0.113.7"}, want: true},
		{name: "beside an address", client: "203.0.113.8", trusted: []string{"203.0.113.7"}},
		{name: "nobody is trusted", client: "10.0.1.9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, err := trustOf(ring.FrontTable{Trusted: c.trusted, Gateways: c.gateways})
			require.NoError(t, err)
			require.Equal(t, c.want, tr.believes(netip.MustParseAddr(c.client), ring.FrontPort{Loopback: c.loopback}, here))
		})
	}
}

// A gateway can have any address of its network: the front finds it where it goes out.
func TestGatewaysAreReadFromRoutes(t *testing.T) {
	dir := t.TempDir()
	v4, v6 := filepath.Join(dir, "route"), filepath.Join(dir, "ipv6_route")
	require.NoError(t, os.WriteFile(v4, []byte("Iface\tDestination\tGateway \tFlags\neth0\t00000000\tFE05A8C0\t0003\neth0\t0005A8C0\t00000000\t0001\n"), 0o600))
	require.NoError(t, os.WriteFile(v6, []byte(
		"00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd0000000000000000000000000000fe 00000400 00000001 00000000 00000003     eth0\n"+
			"fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n"), 0o600))
	require.Equal(t, map[netip.Addr]bool{netip.MustParseAddr("192.168.5.254"): true}, routeGateways(v4, 2, 4))
	require.Equal(t, map[netip.Addr]bool{netip.MustParseAddr("fd00::fe"): true}, routeGateways(v6, 4, 16))
	require.Empty(t, routeGateways(filepath.Join(dir, "none"), 2, 4))
	require.Empty(t, routeGateways(filepath.Join(dir, "none"), 4, 16))
}

// spoofed is what a client says of others, in every way that servers listen to.
var spoofed = http.Header{
	"X-Forwarded-For": {"1.2.3.4", "5.6.7.8"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"evil"}, "X-Forwarded-Port": {"443"},
	"X-Forwarded-Prefix": {"/admin"}, "Forwarded": {"for=1.2.3.4"}, "X-Real-Ip": {"1.2.3.4"}, "X_forwarded_for": {"1.2.3.4"}, "X-Forwarded_for": {"1.2.3.4"},
}

func TestSpoofedForwardsAreReplaced(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	got := make(chan http.Header, 1)
	b.serve("one", func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
	ask := func() http.Header {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, b.url("/"), nil)
		require.NoError(t, err)
		r.Header = spoofed.Clone()
		r.Header.Set("Connection", "X-Forwarded-For") // nor by having it taken out on the way
		r.Host = "app.example"
		res, err := b.client(false).Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		out := http.Header{}
		for name, v := range <-got {
			if speaks := strings.ReplaceAll(strings.ToLower(name), "_", "-"); strings.Contains(speaks, "forwarded") || strings.Contains(speaks, "real-ip") {
				out[name] = v
			}
		}
		return out
	}
	replaced := http.Header{"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {"app.example"}}
	kept := spoofed.Clone()
	kept["X-Forwarded-For"] = []string{"1.2.3.4, 5.6.7.8, 127.0.0.1"}

	b.table.Trusted = []string{"networks"}
	b.route("one:active") // the client has the front's own address
	require.Equal(t, replaced, ask())

	b.mu.Lock()
	b.own.addrs = nil
	b.mu.Unlock()
	b.table.Gateways = []string{"127.0.0.1"} // by way of the gateway
	b.eventually("it is read again", func() bool { return len(b.f.names.place().addrs) == 0 })
	b.route("one:active")
	require.Equal(t, replaced, ask())

	b.table.Ports[0].Loopback = true
	b.route("one:active")
	require.Equal(t, kept, ask())

	b.table.Ports[0].Loopback, b.table.Forwarded = false, false
	b.route("one:active")
	require.Empty(t, ask(), "an app that refuses them gets none")
	b.table.Trusted = []string{"127.0.0.0/8"}
	b.route("one:active")
	require.Equal(t, spoofed, ask(), "of a trusted one, as it is")
}

// What the instance sees and says is neither completed nor mended.
func TestNothingElseOfARequestIsTouched(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	seen := make(chan string, 1)
	b.raw("one", func(_ int, c net.Conn) {
		buf := make([]byte, 4096)
		n, _ := c.Read(buf)
		if n == 0 {
			return // only a look whether the port is open
		}
		seen <- string(buf[:n])
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 6\r\n\r\n<html>")
	})
	b.route("one:active")
	for _, target := range []string{
		"/", "//a//b/../c/./d", "/a%2Fb%2f?x=a;b&c=%zz&&=", "/a?", "/?a=b?c=d#"[:9], "/a|b^c`d{e}f\"g", "/\xc3\xbc", "/a;b=c,d:e@f!$&'()*+", "/%7Euser/~user",
	} {
		c, err := net.Dial("tcp", b.addr())
		require.NoError(t, err)
		_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: App.Example:8080\r\nConnection: close\r\n\r\n", target)
		require.NoError(t, err)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX: y\r\nConnection: close\r\n\r\n<html>", string(got), "no Date and no type is added")
		head := <-seen
		require.True(t, strings.HasPrefix(head, "GET "+target+" HTTP/1.1\r\nHost: App.Example:8080\r\n"), "%q became %q", target, head)
		require.NotContains(t, head, "User-Agent")
		require.NotContains(t, head, "Accept-Encoding")
	}
}

func TestNTLMMakesAPortTCP(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	conns := b.raw("one", func(n int, c net.Conn) {
		var count atomic.Int64
		requests(c, &count, func(int64) string {
			return fmt.Sprintf("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nWWW-Authenticate: NTLM\r\nX-Conn: %d\r\nContent-Length: 0\r\n\r\n", n)
		})
	})
	b.route("one:active")
	c := b.client(true)
	res, err := c.Get(b.url("/"))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 401, res.StatusCode)
	require.True(t, res.Close, "the client's connection is not kept")
	require.Equal(t, ring.CarryTCP, b.f.seen().Ports[0].Carry)
	before := conns.Load()
	res, err = c.Get(b.url("/"))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, before+1, conns.Load())
	require.Equal(t, 1, b.streams("one"), "byte for byte now")
	// What the manifest says is not overruled.
	b.table.Ports[0].Carry = ring.CarryHTTP
	b.route("one:active")
	res, err = b.client(false).Get(b.url("/"))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, ring.CarryHTTP, b.f.seen().Ports[0].Carry)
}

func (b *bench) streams(name string) int { return b.instance(name).Streams }

func TestSharesAreKeptEvenly(t *testing.T) {
	for _, weight := range []int{1, 5, 20, 50, 99} {
		b := newBench(t, ring.CarryAuto)
		for _, n := range []string{"s1", "s2", "s3", "c1", "c2"} {
			b.name(n)
		}
		b.table.CanaryWeight = weight
		b.route("s1:active", "s2:active", "s3:active", "c1:active:canary", "c2:active:canary")
		got := map[string]int{}
		for range 10000 {
			c := &claim{}
			require.NoError(t, b.f.claim(t.Context(), wants{}, c))
			got[c.m.name]++
			b.f.release(c)
		}
		require.InDelta(t, weight*100, got["c1"]+got["c2"], 100, "within a point")
		require.InDelta(t, got["c1"], got["c2"], 2)
		require.InDelta(t, got["s1"], got["s3"], 2)
		// With nobody else active, the canary gets all.
		b.route("s1:draining", "c1:active:canary")
		c := &claim{}
		require.NoError(t, b.f.claim(t.Context(), wants{}, c))
		require.Equal(t, "c1", c.m.name)
		b.f.release(c)
	}
}

func TestAMatchAndACookieChoose(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("old", "new")
	b.table.CanaryWeight, b.table.Sticky = 0, ring.StickyCookie
	b.table.Match = &ring.FrontMatch{Header: map[string]string{"X-Canary": "1"}, Cookie: map[string]string{"beta": "yes"}}
	b.route("old:active", "new:active:canary")
	ask := func(header ...string) (string, []*http.Cookie) {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, b.url("/"), nil)
		require.NoError(t, err)
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		res, err := b.client(false).Do(r)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return string(body), res.Cookies()
	}
	for range 5 {
		who, cookies := ask()
		require.Equal(t, "old", who)
		require.Len(t, cookies, 1)
		require.Equal(t, "gitring_web=v-old; Path=/; HttpOnly; SameSite=Lax", cookies[0].Raw)
		who, _ = ask("X-Canary", "1")
		require.Equal(t, "new", who)
		who, _ = ask("X-Canary", "2")
		require.Equal(t, "old", who)
		who, _ = ask("Cookie", "beta=yes")
		require.Equal(t, "new", who)
		who, cookies = ask("Cookie", "gitring_web=v-new")
		require.Equal(t, "new", who)
		require.Empty(t, cookies, "it is known already")
		who, _ = ask("Cookie", "gitring_web=v-none")
		require.Equal(t, "old", who)
	}
	b.route("old:active")
	_, cookies := ask()
	require.Empty(t, cookies, "one version serves: there is nothing to tell")
}

func TestAddressesAreThoseOfTheEnginesDNS(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one")
	ok := b.dns["one"]
	b.route("one:active")
	set := func(addr string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.dns["one"] = addr
		b.f.names.mu.Lock()
		defer b.f.names.mu.Unlock()
		b.f.names.known["one"].at = time.Time{} // as if a second had passed
	}
	status := func() int {
		t.Helper()
		s, _ := b.get(b.client(false), "/")
		return s
	}
	closeIdle := func() { b.f.members["one"].ways.closeIdle() }
	require.Equal(t, 200, status())
	const far = "127.0.9.9" // somebody answers there
	serveAt(t, net.JoinHostPort(far, fmt.Sprint(b.port)), answered)
	set(far)
	closeIdle()
	require.Equal(t, 200, status(), "as long as it is in a network of the front")
	b.mu.Lock()
	b.own.subnets = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/23")}
	b.mu.Unlock()
	b.f.names.mu.Lock()
	b.f.names.read = time.Time{}
	b.f.names.mu.Unlock()
	for _, wrong := range []string{far, "8.8.8.8", "127.0.0.1"} { // in none of its networks; its own
		set(wrong)
		closeIdle()
		require.Equal(t, 503, status(), wrong)
	}
	set(ok)
	require.Equal(t, 200, status())
	// DNS is silent: the last address serves, and for 30 s only.
	set(ok)
	b.mute.Store(true)
	closeIdle()
	require.Equal(t, 200, status())
	b.f.names.mu.Lock()
	b.f.names.known["one"].good = time.Now().Add(-nameSilent)
	b.f.names.known["one"].at = time.Time{}
	b.f.names.mu.Unlock()
	closeIdle()
	require.Equal(t, 503, status())
	b.mute.Store(false)
	// It says that there is none: that is an answer.
	b.mu.Lock()
	delete(b.dns, "one")
	b.mu.Unlock()
	_, err := b.f.names.resolve(t.Context(), "other")
	require.Error(t, err)
}

// On a network that it shares, anybody can take the short ID of a container for an alias. DNS
// then answers with both.
func TestANameThatTwoHaveIsNotUsed(t *testing.T) {
	two := []netip.Addr{netip.MustParseAddr("10.1.0.5"), netip.MustParseAddr("10.1.0.9")}
	far := []netip.Addr{netip.MustParseAddr("10.1.0.5"), netip.MustParseAddr("10.2.0.9"), netip.MustParseAddr("fd00::5")}
	own := ownNet{subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd00::/64")}}
	for _, c := range []struct {
		name   string
		answer []netip.Addr
		used   int
	}{
		{"0123456789ab", two, 0},
		{"0123456789ab", far, 3}, // one in each network, and one of each family
		{"web", two, 2},          // replicas that Compose made have one name
	} {
		n := newNames(func(context.Context, string) ([]netip.Addr, error) { return c.answer, nil }, func() ownNet { return own })
		got, err := n.resolve(t.Context(), c.name)
		require.Len(t, got, c.used)
		if c.used == 0 {
			require.ErrorContains(t, err, "somebody else has that name")
		}
	}
}

func TestAPortThatAVersionHadIsWaitedFor(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	second, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	other := second.Addr().(*net.TCPAddr).Port
	b.f.Sockets[fmt.Sprintf("tcp:%d", other)], err = second.(*net.TCPListener).File()
	require.NoError(t, err)
	require.NoError(t, second.Close())
	b.table.Ports = append(b.table.Ports, ring.FrontPort{Port: other, Carry: ring.CarryTCP})
	b.says("a", "b")
	open, err := net.Listen("tcp", fmt.Sprintf("%s:%d", b.dns["a"], other))
	require.NoError(t, err)
	defer open.Close()
	instance := func(name string) ring.FrontInstance {
		return ring.FrontInstance{Name: name, State: ring.FrontActive, Version: "v1"}
	}
	b.table.Instances = []ring.FrontInstance{instance("b")}
	b.send(b.table)
	require.True(t, b.instance("b").Reached, "nothing listens there, and nothing ever did")
	require.True(t, b.f.seen().Ports[1].Unheard)
	b.table.Instances = []ring.FrontInstance{instance("a"), {Name: "b", State: ring.FrontDraining, Version: "v1"}}
	b.send(b.table)
	require.True(t, b.instance("a").Reached)
	require.False(t, b.f.seen().Ports[1].Unheard)
	b.table.Instances = []ring.FrontInstance{instance("a"), instance("b")}
	b.send(b.table)
	require.False(t, b.instance("b").Reached, "an instance of this version listened there before")
	late, err := net.Listen("tcp", fmt.Sprintf("%s:%d", b.dns["b"], other))
	require.NoError(t, err)
	defer late.Close()
	b.eventually("it is tried again", func() bool { return b.instance("b").Reached })
}

// A table that cannot be carried out whole changes nothing.
func TestAWrongTableChangesNothing(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one")
	b.route("one:active")
	good, err := json.Marshal(ring.FrontTable{
		Generation: 2, Service: "a/b", Ports: b.table.Ports, Instances: []ring.FrontInstance{{Name: "one", State: ring.FrontActive}}, Trusted: []string{"networks"},
	})
	require.NoError(t, err)
	put := func(body string) (int, problem) {
		var p problem
		status, err := askSocket(t.Context(), filepath.Join(b.f.RunDir, ring.FrontSocket), wait, http.MethodPut, "/v1/table", []byte(body), &p)
		require.NoError(t, err)
		return status, p
	}
	port := fmt.Sprint(b.port)
	for name, body := range map[string]string{
		"nothing":           "",
		"no JSON":           "{",
		"a list":            "[]",
		"no port":           strings.Replace(string(good), `"ports":[{"port":`+port+`,"carry":"auto"}]`, `"ports":[]`, 1),
		"port 0":            strings.Replace(string(good), `"port":`+port, `"port":0`, 1),
		"port 65536":        strings.Replace(string(good), `"port":`+port, `"port":65536`, 1),
		"a port twice":      strings.Replace(string(good), `[{"port"`, `[{"port":`+port+`,"carry":"tcp"},{"port"`, 1),
		"carried somehow":   strings.Replace(string(good), `"auto"`, `"x"`, 1),
		"a name with /":     strings.Replace(string(good), `"one"`, `"../one"`, 1),
		"a name with a dot": strings.Replace(string(good), `"one"`, `"one:80"`, 1),
		"no name":           strings.Replace(string(good), `"one"`, `""`, 1),
		"a name twice":      strings.Replace(string(good), `"instances":[`, `"instances":[{"name":"one","state":"warm"},`, 1),
		"a state":           strings.Replace(string(good), `"active"`, `"gone"`, 1),
		"a set":             strings.Replace(string(good), `"state"`, `"set":"x","state"`, 1),
		"no service":        strings.Replace(string(good), `"a/b"`, `""`, 1),
		"a service":         strings.Replace(string(good), `"a/b"`, `"a b\r\nSet-Cookie: x"`, 1),
		"a weight":          strings.Replace(string(good), `"generation"`, `"canary_weight":101,"generation"`, 1),
		"a queue":           strings.Replace(string(good), `"generation"`, `"queue":-1,"generation"`, 1),
		"connections":       strings.Replace(string(good), `"connections":0`, `"connections":70000`, 1),
		"a proxy":           strings.Replace(string(good), `"networks"`, `"everybody"`, 1),
		"a gateway":         strings.Replace(string(good), `"generation"`, `"gateways":["x"],"generation"`, 1),
		"a match":           strings.Replace(string(good), `"generation"`, `"match":{"header":{"a b":"c"}},"generation"`, 1),
		"sticky":            strings.Replace(string(good), `"generation"`, `"sticky":"x","generation"`, 1),
		"generation 0":      strings.Replace(string(good), `"generation":2`, `"generation":0`, 1),
		"generation -1":     strings.Replace(string(good), `"generation":2`, `"generation":-1`, 1),
		"too many":          strings.Replace(string(good), `"networks"`, `"networks"`+strings.Repeat(`,"networks"`, 200), 1),
	} {
		status, p := put(body)
		require.Equal(t, 422, status, name)
		require.NotEmpty(t, p.Says, name)
		require.EqualValues(t, 1, p.Generation, name)
	}
	status, _ := put(`{"x":"` + strings.Repeat("x", tableBytes) + `"}`)
	require.Equal(t, 413, status)
	status, who := b.get(b.client(false), "/")
	require.Equal(t, []any{200, "one"}, []any{status, who})
	status, p := put(string(good))
	require.Equal(t, 200, status, p.Says)
	status, p = put(string(good))
	require.Equal(t, 409, status, "doubled")
	require.EqualValues(t, 2, p.Generation)
}

func TestAFrontReadsItsTableFromDisk(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one")
	b.table.Generation, b.table.Instances = 41, []ring.FrontInstance{{Name: "one", State: ring.FrontActive}}
	body, err := json.Marshal(b.table)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(b.f.TableDir, ring.FrontTableFile), body, 0o400))
	b.stop()
	<-b.ended
	sockets := b.f.Sockets
	b.f = New(b.f.Options)
	b.f.Sockets = sockets
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- b.f.Run(ctx, func() { close(ready) }) }()
	<-ready
	status, who := b.get(b.client(false), "/")
	require.Equal(t, []any{200, "one"}, []any{status, who})
	require.EqualValues(t, 41, b.f.seen().Generation)
	stop()
	require.NoError(t, <-ended)
}
