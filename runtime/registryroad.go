package runtime

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gitring/gitring/ring"
)

// registryRoad is how one registry is reached, and what it may send us to. It can name
// three kinds of places: itself, a server of tokens, and a store of blobs. The last two are
// words of a stranger, so where they lead is looked at when the connection is made.
type registryRoad struct {
	isOwn      string // the host of the registry
	own, other *http.Client
	private    atomic.Bool // the registry itself was reached at an address that is no public one
	public     atomic.Bool // at a public one, too: its name has several
	local      atomic.Bool // at one of this very machine
}

// errGuarded is an address to which no registry may send us.
var errGuarded = errors.New("an address that is not asked for a registry's word")

// carrier is where carriers put their customers, and some clouds what answers for a host.
var carrier = netip.MustParsePrefix("100.64.0.0/10")

func newRegistryRoad(host string, config *tls.Config) *registryRoad {
	r := &registryRoad{isOwn: host}
	const dial, header = 10 * time.Second, 10 * time.Second
	client := func(config *tls.Config, judge func(netip.Addr) error, reached func(netip.Addr)) *http.Client {
		// A proxy is the host's own choice, and what it is asked for it reaches itself.
		dialer := &net.Dialer{Timeout: dial, Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return errGuarded
			}
			return judge(at.Addr().Unmap())
		}}
		dialed := func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
				reached(at.Addr().Unmap())
			}
			return conn, nil
		}
		straight := &http.Transport{DialContext: dialed, TLSClientConfig: config, TLSHandshakeTimeout: dial, ResponseHeaderTimeout: header, DisableKeepAlives: false, MaxIdleConns: 2, IdleConnTimeout: dial, DisableCompression: true}
		by := straight.Clone()
		by.DialContext, by.Proxy = (&net.Dialer{Timeout: dial}).DialContext, http.ProxyFromEnvironment
		return &http.Client{
			Transport:     &proxied{straight: straight, by: by, judge: judge, reached: reached},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	r.own = client(config, r.judgeOwn, r.reached)
	r.other = client(nil, r.judgeOther, func(netip.Addr) {})
	return r
}

// close ends the connections that are kept for a next question.
func (r *registryRoad) close() {
	r.own.CloseIdleConnections()
	r.other.CloseIdleConnections()
}

// judgeOwn lets the registry be anywhere but on the link alone.
func (r *registryRoad) judgeOwn(a netip.Addr) error {
	if ring.IsLinkLocal(a) || a.IsUnspecified() || a.IsMulticast() {
		return errGuarded
	}
	return nil
}

// reached notes where the registry is. An address of its name that nobody reached says
// nothing: whoever owns the name may have it be any.
func (r *registryRoad) reached(a netip.Addr) {
	switch {
	case a.IsLoopback():
		r.local.Store(true)
		r.private.Store(true)
	case isPrivate(a):
		r.private.Store(true)
	default:
		r.public.Store(true)
	}
}

// isLocal reports whether the registry is on this very machine, and nowhere else.
func (r *registryRoad) isLocal() bool { return r.local.Load() && !r.public.Load() }

// judgeOther lets what the registry names be public, and private where it is so itself.
func (r *registryRoad) judgeOther(a netip.Addr) error {
	switch {
	case ring.IsLinkLocal(a), a.IsUnspecified(), a.IsMulticast(), a.IsLoopback():
		return errGuarded
	case isPrivate(a) && (!r.private.Load() || r.public.Load()):
		return errGuarded
	}
	return nil
}

func isPrivate(a netip.Addr) bool { return a.IsPrivate() || carrier.Contains(a) }

// proxied takes the host's proxy where there is one for a request. What is asked for by its
// name is then resolved by that, so here it is looked at as far as this host knows it.
type proxied struct {
	straight, by http.RoundTripper
	judge        func(netip.Addr) error
	reached      func(netip.Addr)
}

// RoundTrip sends a request.
func (p *proxied) RoundTrip(req *http.Request) (*http.Response, error) {
	if proxy, err := http.ProxyFromEnvironment(req); err != nil || proxy == nil {
		return p.straight.RoundTrip(req)
	}
	ctx, cancel := context.WithTimeout(req.Context(), 5*time.Second)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", req.URL.Hostname())
	if err != nil && isDotted(req.URL.Hostname()) {
		return nil, errGuarded
	}
	for _, a := range addrs {
		if err := p.judge(a.Unmap()); err != nil {
			return nil, err
		}
		p.reached(a.Unmap()) // any of them may be the one that the proxy takes
	}
	return p.by.RoundTrip(req)
}

// CloseIdleConnections is asked by http.Client.
func (p *proxied) CloseIdleConnections() {
	for _, t := range []http.RoundTripper{p.straight, p.by} {
		if c, ok := t.(*http.Transport); ok {
			c.CloseIdleConnections()
		}
	}
}

// isDotted reports whether a host's name ends in a number, as addresses do in odd spellings.
func isDotted(host string) bool { return ring.ParseImage(host + ":1/a").AtLinkLocal() }

// registry sends a request to the registry. A blob may be elsewhere: the registry then says
// where, once, and it is asked for there without any credentials.
func (r *registryRoad) registry(req *http.Request) (*http.Response, error) {
	res, err := r.own.Do(req)
	if err != nil {
		return nil, plainly(err)
	}
	if res.StatusCode < 300 || res.StatusCode >= 400 {
		return res, nil
	}
	_ = res.Body.Close()
	to, err := req.URL.Parse(res.Header.Get("Location"))
	if err != nil || to.Host == "" {
		return nil, errors.New("it sends us on to nowhere")
	}
	same := to.Scheme == req.URL.Scheme && strings.EqualFold(to.Host, req.URL.Host)
	switch {
	case strings.Contains(req.URL.Path, "/referrers/"):
		res.Body = http.NoBody
		return res, nil // no answer to this question: some registries send it to their web pages
	case same:
		return r.again(r.own, req.Context(), to, req.Header)
	case !strings.Contains(req.URL.Path, "/blobs/"):
		return nil, fmt.Errorf("it sends us on to %s, which only a blob may", to.Host)
	case to.Scheme != "https":
		return nil, fmt.Errorf("it sends us on to %s in clear", to.Host)
	case to.User != nil:
		return nil, errors.New("it sends us on with a name and a password")
	}
	return r.again(r.other, req.Context(), to, nil)
}

// again follows one redirect, and no other.
func (r *registryRoad) again(by *http.Client, ctx context.Context, to *url.URL, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, errors.New("it sends us on to nowhere")
	}
	if header != nil {
		req.Header = header.Clone()
	}
	res, err := by.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot follow it to %s: %w", to.Host, plainly(err))
	}
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		_ = res.Body.Close()
		return nil, fmt.Errorf("it sends us on to %s, which sends us on again", to.Host)
	case res.StatusCode == http.StatusUnauthorized && header == nil: // these would be credentials for a stranger
		_ = res.Body.Close()
		return nil, fmt.Errorf("it sends us on to %s, which wants credentials", to.Host)
	}
	return res, nil
}

// tokens asks a server of tokens. It is the registry's own host, or another one that the
// registry names; it sends us nowhere.
func (r *registryRoad) tokens(req *http.Request) (*http.Response, error) {
	by := r.other
	if r.isLocal() { // a registry on this machine has its server here, too
		by = r.own
	}
	if r.isOwn != "" && strings.EqualFold(req.URL.Hostname(), r.isOwn) {
		by = r.own
	}
	res, err := by.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot ask its server of tokens at %s: %w", req.URL.Host, plainly(err))
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		_ = res.Body.Close()
		return nil, fmt.Errorf("its server of tokens at %s sends us on", req.URL.Host)
	}
	return res, nil
}

// plainly is an error without the address that was asked, which may have a signature in it.
func plainly(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}
