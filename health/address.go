package health

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/gitring/gitring/ring"
)

const noAddress = "the instance has no address on any network"

// addresses are where an instance is asked, the first that takes the connection.
// One of several networks is asked on its app's own, the default one before
// others, so that every look asks the same one and none that it shares with
// strangers. On the host's network it is asked at loopback first, then at each
// address of the host, because it may be bound to one alone.
func (p *prober) addresses(in ring.Instance) []string {
	names := make([]string, 0, len(in.Addresses))
	for name, a := range in.Addresses {
		if a != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(strange(in.App, a), strange(in.App, b)), cmp.Compare(a, b))
	})
	if len(names) > 0 {
		return []string{in.Addresses[names[0]]}
	}
	if _, ok := in.Addresses["host"]; ok {
		return append([]string{"127.0.0.1", "::1"}, p.hosts()...)
	}
	return nil
}

// strange is how far a network is from being the app's own, by the engine's name.
func strange(app, network string) int {
	switch {
	case network == app+"_default":
		return 0
	case strings.HasPrefix(network, app+"_"):
		return 1
	}
	return 2
}

// hostAddresses are those of this host besides loopback and link-local ones.
func hostAddresses() []string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []string
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			out = append(out, n.IP.String())
		}
	}
	return out
}

// dial connects to the first of hosts that takes it. The first one's error is
// the one that is told.
func (p *prober) dial(ctx context.Context, hosts []string, port string) (net.Conn, error) {
	var first error
	for _, host := range hosts {
		conn, err := p.dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
		if err == nil {
			return conn, nil
		}
		first = cmp.Or(first, err)
		if !nobodyThere(err) {
			break
		}
	}
	return nil, first
}

// nobodyThere reports whether nothing is bound to the address, or that this host has
// no such address.
func nobodyThere(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EADDRNOTAVAIL) ||
		errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EAFNOSUPPORT)
}
