package runtime

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/runtime/registrytest"
)

// elsewhere is a host of ours that is no loopback; the test is skipped where there is none.
func elsewhere(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsPrivate() {
			return p.Addr().String()
		}
	}
	t.Skip("this host has no private address")
	return ""
}

// blobStore serves over TLS at an address, and trusts nobody to have sent credentials.
func blobStore(t *testing.T, at string, h http.Handler) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	require.NoError(t, err)
	srv := httptest.NewUnstartedServer(h)
	srv.Listener = l
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// trusting has a road take a server's certificate, whatever name it is for.
func (r *registryRoad) trusting(srv *httptest.Server) {
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	for _, c := range []*http.Client{r.own, r.other} {
		c.Transport.(*proxied).straight.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool, ServerName: "example.com", MinVersion: tls.VersionTLS12}
	}
}

// asked is a client of a registry in clear whose blobs are what a handler says.
func askedFor(t *testing.T, h http.HandlerFunc) *registryClient {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	road := newRegistryRoad("127.0.0.1", nil)
	t.Cleanup(road.close)
	return &registryClient{base: srv.URL, repo: "acme/web", road: road, auth: "Bearer secret"}
}

const blobBody = "a blob"

func sendsTo(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// Registries keep their blobs in other hosts' stores, and say where. What they may say is
// bounded: it is a stranger's word, and this host has neighbours.
func TestABlobMayBeElsewhereAndNothingElseMay(t *testing.T) {
	digest := registrytest.Digest([]byte(blobBody))
	var header http.Header
	asked := 0
	store := blobStore(t, elsewhere(t), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header, asked = r.Header, asked+1
		switch r.URL.Path {
		case "/again":
			sendsTo("https://"+r.Host+"/blob")(w, r)
		case "/login":
			w.Header().Set("WWW-Authenticate", `Basic realm="a"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			_, _ = w.Write([]byte(blobBody))
		}
	}))
	local := blobStore(t, "127.0.0.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++; _, _ = w.Write([]byte(blobBody)) }))
	get := func(to string, trust *httptest.Server, digest string) error {
		asked = 0
		c := askedFor(t, sendsTo(to))
		if trust != nil {
			c.road.trusting(trust)
		}
		a, err := c.blob(t.Context(), digest)
		if err == nil {
			require.Equal(t, blobBody, string(a.body))
		}
		return err
	}
	require.NoError(t, get(store.URL+"/blob?signature=secret", store, digest))
	require.Empty(t, header.Get("Authorization"), "without credentials")
	require.Empty(t, header.Get("Cookie"))

	require.Error(t, get(store.URL+"/blob", store, registrytest.Digest([]byte("another"))), "its digest is checked")
	for name, to := range map[string]string{
		"loopback":         local.URL + "/blob",
		"loopback by name": strings.Replace(local.URL, "127.0.0.1", "localhost", 1) + "/blob",
		"link-local":       "https://169.254.169.254/latest/meta-data", "link-local in another spelling": "https://[::ffff:169.254.169.254]/latest",
		"a cloud's own": "https://[fd00:ec2::254]/latest", "no address": "https://0.0.0.0/", "in clear": strings.Replace(store.URL, "https", "http", 1) + "/blob",
		"with a name and a password": strings.Replace(store.URL, "https://", "https://a:b@", 1) + "/blob", "nowhere": "",
		"a file": "file:///etc/passwd",
	} {
		err := get(to, local, digest)
		require.Error(t, err, name)
		require.Zero(t, asked, name)
	}
	require.ErrorContains(t, get(strings.Replace(store.URL, "https", "http", 1)+"/blob", store, digest), "in clear", "whoever listens there")
	require.ErrorContains(t, get(store.URL+"/again", store, digest), "sends us on again")
	require.ErrorContains(t, get(store.URL+"/login", store, digest), "wants credentials")
	err := get(store.URL+"/blob?signature=secret", nil, digest) // whose certificate nobody knows
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret", "an address may have a signature in it")

	c := askedFor(t, sendsTo(store.URL+"/blob"))
	c.road.trusting(store)
	_, err = c.manifest(t.Context(), "latest", "")
	require.ErrorContains(t, err, "which only a blob may")
	a, err := c.get(t.Context(), "/v2/acme/web/referrers/"+digest, "")
	require.NoError(t, err, "it knows no referrers, and sends us to its web page")
	require.Equal(t, http.StatusTemporaryRedirect, a.status)
}

// A public registry may not send us into the network of this host.
func TestAPublicRegistryDoesNotLeadIntoThePrivateNetwork(t *testing.T) {
	r := newRegistryRoad("registry.example.org", nil)
	for _, at := range []string{"10.1.2.3", "192.168.1.1", "172.16.0.1", "100.64.0.1", "fd12::1", "127.0.0.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1"} {
		require.ErrorIs(t, r.judgeOther(netip.MustParseAddr(at).Unmap()), errGuarded, at)
	}
	require.NoError(t, r.judgeOther(netip.MustParseAddr("203.0.113.7")))
	require.NoError(t, r.judgeOwn(netip.MustParseAddr("203.0.113.1")))
	require.Error(t, r.judgeOther(netip.MustParseAddr("10.1.2.3")), "still")
	r = newRegistryRoad("registry.example.org", nil)
	r.reached(netip.MustParseAddr("10.0.0.1"))
	require.NoError(t, r.judgeOther(netip.MustParseAddr("10.1.2.3")), "a private registry has private stores")
	require.Error(t, r.judgeOther(netip.MustParseAddr("127.0.0.1")))
	require.Error(t, r.judgeOwn(netip.MustParseAddr("169.254.169.254")))
}

// The server of tokens is the registry's word, too, and it gets credentials.
func TestCredentialsGoToNoServerOfTokensThatMayNotHaveThem(t *testing.T) {
	for _, realm := range []string{
		"http://203.0.113.1/token", "https://169.254.169.254/token", "file:///token", "https://a:b@example.org/token", "", "/token",
	} {
		c := &registryClient{base: "https://registry.example.org", repo: "a", road: newRegistryRoad("registry.example.org", nil)}
		c.creds.Username, c.creds.Password = "alice", "let me in"
		_, err := c.token(t.Context(), realm, "s")
		require.Error(t, err, realm)
		require.NotContains(t, err.Error(), "let me in")
	}
	asked := false
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/other" {
			asked = true
		}
		sendsTo("/other")(w, r)
	}))
	defer tokens.Close()
	c := askedFor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+tokens.URL+`/token"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	c.auth = ""
	_, err := c.get(t.Context(), "/v2/", "")
	require.Error(t, err)
	_, err = c.get(t.Context(), "/v2/", "")
	require.Error(t, err)
	require.False(t, asked, "it sends us nowhere")
}

// A registry that is asked by TLS cannot have its credentials sent in clear, not even to its own
// host.
func TestCredentialsGoToNoServerOfTokensInClearWhereTheRegistryIsNot(t *testing.T) {
	var logins []string
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		logins = append(logins, user)
		_, _ = w.Write([]byte(`{"token":"t"}`))
	}))
	defer tokens.Close()
	for base, asked := range map[string]bool{"https://127.0.0.1:1": false, "http://127.0.0.1:1": true} {
		logins = nil
		c := &registryClient{base: base, repo: "a", road: newRegistryRoad("127.0.0.1", nil)}
		c.creds.Username, c.creds.Password = "alice", "let me in"
		_, err := c.token(t.Context(), tokens.URL+"/token", "s")
		if !asked {
			require.ErrorContains(t, err, "asked in clear")
			require.Empty(t, logins)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []string{"alice"}, logins)
	}
}

func TestAChallengeIsRead(t *testing.T) {
	for said, want := range map[string][]string{
		`Bearer realm="https://a/t",service="s, t",scope="x"`: {"bearer", "https://a/t", "s, t"},
		`Bearer service=s, realm=https://a/t`:                 {"bearer", "https://a/t", "s"},
		`BASIC Realm="a"`:                                     {"basic", "a", ""},
		`Bearer`:                                              {"bearer", "", ""},
		``:                                                    {"", "", ""},
		`Bearer realm="open`:                                  {"bearer", "open", ""},
	} {
		scheme, params := parseChallenge(said)
		require.Equal(t, want, []string{scheme, params["realm"], params["service"]}, said)
	}
}

// Whoever owns the name of a registry may give it any addresses beside the one where it
// answers: they may not open what is private to where it sends us.
func TestAddressesOfARegistrysNameThatNobodyReachedOpenNothing(t *testing.T) {
	private, public, here := netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("203.0.113.5"), netip.MustParseAddr("127.0.0.1")
	r := newRegistryRoad("evil.example", nil)
	defer r.close()
	for _, a := range []netip.Addr{private, here, public} { // looked at before each is tried
		require.NoError(t, r.judgeOwn(a))
	}
	require.ErrorIs(t, r.judgeOther(private), errGuarded)
	require.False(t, r.isLocal())

	r.reached(here)
	require.True(t, r.isLocal())
	require.NoError(t, r.judgeOther(private), "it is a registry of this network")
	r.reached(public)
	require.ErrorIs(t, r.judgeOther(private), errGuarded, "it is one of the world, too")
	require.False(t, r.isLocal())
}
