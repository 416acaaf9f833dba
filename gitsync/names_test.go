package gitsync

import (
	"context"
	"encoding/binary"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// nameServer answers DNS over UDP on a loopback port with what stands in names.
type nameServer struct {
	mu    sync.Mutex // guards what follows
	names map[string][]netip.Addr
	asked []string
}

func startNameServer(t *testing.T) (*nameServer, *net.Resolver) {
	s := &nameServer{names: map[string][]netip.Addr{}}
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = c.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		b := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(s.answer(b[:n]), from)
		}
	}()
	return s, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
}

// answer is to one question (RFC 1035 section 4): its head and words again, and an
// address for each that the name has.
func (s *nameServer) answer(q []byte) []byte {
	end, labels := 12, []string(nil)
	for ; q[end] != 0; end += 1 + int(q[end]) {
		labels = append(labels, string(q[end+1:end+1+int(q[end])]))
	}
	name, kind := strings.ToLower(strings.Join(labels, ".")), binary.BigEndian.Uint16(q[end+1:])
	end += 5
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, name)
	found, known := s.names[name]
	code := byte(0)
	if !known {
		code = 3 // no such name
	}
	const a, aaaa = 1, 28
	var records []byte
	count := byte(0)
	for _, addr := range found {
		if addr.Is4() != (kind == a) || kind != a && kind != aaaa {
			continue
		}
		count++
		records = append(records, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(addr.AsSlice())))
		records = append(records, addr.AsSlice()...)
	}
	head := []byte{q[0], q[1], 0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0}
	return append(append(head, q[12:end]...), records...)
}

func (s *nameServer) set(name string, addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = nil
	for _, a := range addresses {
		s.names[name] = append(s.names[name], netip.MustParseAddr(a))
	}
}

// alone runs the test in a process whose environment is one of its own: Go reads
// names of proxies once.
func alone(t *testing.T, env ...string) bool {
	const mark = "GITRING_TEST_ALONE"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), mark+"="+t.Name()), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// tlsServer is a forge over HTTPS for the names under example.com, which the
// process that fetches believes through SSL_CERT_FILE.
type tlsServer struct {
	port string
	mu   sync.Mutex
	at   []string // addresses that were connected to
}

func startTLSServer(t *testing.T, o *origin, network, addr string) *tlsServer {
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Skipf("cannot listen on %s: %v", addr, err)
	}
	ts := &tlsServer{}
	back := o.httpBackend()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		host, _, _ := net.SplitHostPort(to.String())
		ts.mu.Lock()
		ts.at = append(ts.at, host)
		ts.mu.Unlock()
		back.ServeHTTP(w, r)
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	_, ts.port, _ = net.SplitHostPort(l.Addr().String())
	file := filepath.Join(t.TempDir(), "roots.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	t.Setenv("SSL_CERT_FILE", file)
	return ts
}

func (s *tlsServer) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[len(s.at)-1]
}

func TestANameOfTheHostsFileIsFollowed(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.signed("one")
	url := strings.Replace(serve(t, o.httpBackend()), "127.0.0.1", "localhost", 1) + "/remote.git"
	require.Equal(t, sha, lookAt(t, o.apart(&ledger{}, at(url))).must().Commit.SHA)
}

// Each look takes the addresses that the name has then, and the next one where one
// does not answer.
func TestANameIsLookedUpForEachLook(t *testing.T) {
	if !alone(t) {
		return
	}
	o := newOrigin(t)
	dns, names := startNameServer(t)
	s := startTLSServer(t, o, "tcp4", "0.0.0.0:0")
	one := o.signed("one")
	f := o.apart(&ledger{}, at("https://git.example.com:"+s.port+"/remote.git"))
	f.child.names = names
	w := lookAt(t, f)
	require.ErrorContains(t, w.look(t.Context()).Err, "lookup git.example.com")
	require.ErrorContains(t, w.look(t.Context()).Err, "no such host")

	dns.set("git.example.com", "127.0.0.1")
	require.Equal(t, one, w.must().Commit.SHA)
	require.Equal(t, "127.0.0.1", s.last())
	two := o.signed("two")
	dns.set("git.example.com", "127.0.0.2")
	require.Equal(t, two, w.must().Commit.SHA)
	require.Equal(t, "127.0.0.2", s.last(), "the name has another address now")
	three := o.signed("three")
	dns.set("git.example.com", "::1", "127.0.0.3")
	require.Equal(t, three, w.must().Commit.SHA, "nothing answers over IPv6")
	require.Equal(t, "127.0.0.3", s.last())
}

func TestANameWithAnIPv6AddressAloneIsFollowed(t *testing.T) {
	if !alone(t) {
		return
	}
	o := newOrigin(t)
	dns, names := startNameServer(t)
	s := startTLSServer(t, o, "tcp6", "[::1]:0")
	dns.set("git.example.com", "::1")
	sha := o.signed("one")
	f := o.apart(&ledger{}, at("https://git.example.com:"+s.port+"/remote.git"))
	f.child.names = names
	require.Equal(t, sha, lookAt(t, f).must().Commit.SHA)
}

// Behind a proxy only the proxy's name is looked up: many networks know no other.
func TestOnlyTheProxyIsLookedUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	require.NoError(t, l.Close())
	if !alone(t, "HTTPS_PROXY=http://bot:hunter2-hunter2@proxy.example.com:"+port, "PROXY_PORT="+port) {
		return
	}
	o := newOrigin(t)
	dns, names := startNameServer(t)
	s := startTLSServer(t, o, "tcp4", "127.0.0.1:0")
	var through []string
	proxy := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through = append(through, r.Host)
		far, err := net.Dial("tcp", "127.0.0.1:"+s.port)
		if err != nil {
			return
		}
		defer far.Close()
		w.WriteHeader(http.StatusOK)
		near, early, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer near.Close()
		go func() { _, _ = io.Copy(far, early) }() // what came with the answer still on its way is read first
		_, _ = io.Copy(near, far)
	})}
	pl, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PROXY_PORT"))
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- proxy.Serve(pl) }()
	t.Cleanup(func() {
		_ = proxy.Close()
		<-served
	})
	dns.set("proxy.example.com", "127.0.0.1")
	sha := o.signed("one")
	f := o.apart(&ledger{}, at("https://git.example.com:"+s.port+"/remote.git"))
	f.child.names = names
	require.Equal(t, sha, lookAt(t, f).must().Commit.SHA)
	f.child.rest()
	require.Contains(t, through, "git.example.com:"+s.port)
	dns.mu.Lock()
	defer dns.mu.Unlock()
	require.Equal(t, []string{"proxy.example.com"}, slices.Compact(slices.Sorted(slices.Values(dns.asked))))
}

func TestAnSSHRemoteIsFollowedByName(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: sshd logs root in")
	}
	s := startSSHD(t)
	o := newOrigin(t)
	dns, names := startNameServer(t)
	dns.set("git.example.com", "127.0.0.1")
	known, err := os.ReadFile(s.known)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.known, []byte(strings.ReplaceAll(string(known), "127.0.0.1", "git.example.com")), 0o600))
	sha := o.signed("one")
	f := o.apart(&ledger{}, s.follow(o.bare), at("ssh://root@git.example.com:"+s.port+o.bare))
	f.child.names = names
	require.Equal(t, sha, lookAt(t, f).must().Commit.SHA)
}

func TestWhichHostIsConnectedToFirst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ scheme, host, port, want string }{
		{"https", "git.example.com", "", "git.example.com"},
		{"https", "git.example.com", "8443", "git.example.com"},
		{"https", "bücher.example", "", "xn--bcher-kva.example"},
		{"https", "::1", "", "::1"},
		{"http", "localhost", "80", "localhost"},
		{"ssh", "git.example.com", "22", "git.example.com"},
	} {
		b := beginning{Scheme: tt.scheme, Host: tt.host, Port: tt.port}
		got, err := b.firstHop(t.Context())
		require.NoError(t, err)
		require.Equal(t, tt.want, got, tt)
	}
}

func TestNoOtherHostIsConnectedTo(t *testing.T) {
	t.Parallel()
	addr := listen(t, "tcp", "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(addr)
	d := dialer{idle: Limits{}.withDefaults().Idle, known: hosts{"git.example.com": {"127.0.0.1"}}}
	c, err := d.dial(t.Context(), "tcp", "git.example.com:"+port)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	for _, host := range []string{"127.0.0.1", "localhost", "example.com", ""} {
		_, err := d.dial(t.Context(), "tcp", net.JoinHostPort(host, port))
		require.ErrorContains(t, err, "is not the host of this remote")
	}
	d.known = hosts{"git.example.com": {"127.0.0.1", "127.0.0.2"}}
	_, err = d.dial(t.Context(), "tcp", "git.example.com:1")
	require.ErrorContains(t, err, "connection refused")
}
