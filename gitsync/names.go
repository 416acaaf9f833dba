package gitsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// hosts are the hosts that a look may connect to, each with its addresses in the
// order in which they are tried. nil lets names be looked up where they are used.
type hosts map[string][]string

// lookUp finds the addresses of the host that a look of the process that fetches
// connects to. The daemon does it, so that this process needs no UDP at all.
func (b *beginning) lookUp(ctx context.Context, names *net.Resolver, lim Limits) (hosts, error) {
	if b.Scheme == "file" {
		return hosts{}, nil
	}
	host, err := b.firstHop(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lim.Idle)
	defer cancel()
	found, err := names.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err // it names the host
	}
	h := hosts{}
	for _, a := range found {
		h[host] = append(h[host], a.Unmap().String())
	}
	return h, nil
}

// errFirstHop ends a request when its connection would be made.
var errFirstHop = errors.New("not connected")

// firstHop is the name of the host that a connection is made to: the remote's, or
// that of the proxy for it. For HTTP the transport is asked, which also knows how
// a name with letters of other alphabets is spelled in DNS.
func (b *beginning) firstHop(ctx context.Context) (string, error) {
	if b.Scheme == "ssh" {
		return b.Host, nil
	}
	addr := ""
	t := httpTransport(b.Scheme, func(_ context.Context, _, to string) (net.Conn, error) {
		addr = to
		return nil, errFirstHop
	})
	u := url.URL{Scheme: b.Scheme, Host: net.JoinHostPort(b.Host, cmp.Or(b.Port, usualPorts[b.Scheme])), Path: "/"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	if _, err := t.RoundTrip(req); !errors.Is(err, errFirstHop) { //nolint:bodyclose // there is no answer
		return "", fmt.Errorf("cannot tell which host to connect to: %w", cmp.Or(err, errFirstHop))
	}
	host, _, err := net.SplitHostPort(addr)
	return host, err
}

// usualPorts are those of URLs that name none, by scheme.
var usualPorts = map[string]string{"https": "443", "http": "80", "ssh": "22", "socks5": "1080", "socks5h": "1080"}
