package proxy

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// How long an address counts: docs/design/traffic.md.
const (
	nameFresh  = time.Second            // then it is asked again
	nameSilent = 30 * time.Second       // the last one serves while DNS says nothing
	nameWait   = 700 * time.Millisecond // for one answer
	maxNames   = 4 * maxInstances
)

// ownNet is where this front stands.
type ownNet struct {
	subnets  []netip.Prefix
	addrs    []netip.Addr
	gateways map[netip.Addr]bool
}

// near reports whether an address is in a network of this front and not its own.
func (o ownNet) near(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return !slices.Contains(o.addrs, a) && slices.ContainsFunc(o.subnets, func(s netip.Prefix) bool { return s.Contains(a) })
}

// isShortID reports whether a name is a container's own. Anybody on one of its networks can take
// it for an alias.
func isShortID(name string) bool { return len(name) == 12 && ring.IsMadeOf(name, ring.HexDigits, 12) }

// crowded reports whether two addresses are in one network, where a container has one.
func (o ownNet) crowded(all []netip.Addr) bool {
	for _, s := range o.subnets {
		n := 0
		for _, a := range all {
			if s.Contains(a) {
				n++
			}
		}
		if n > 1 {
			return true
		}
	}
	return false
}

// interfaces reads where this front stands from its interfaces.
func interfaces() (o ownNet) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return o
	}
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		addr, ok := netip.AddrFromSlice(n.IP)
		if !ok || addr.Unmap().IsLoopback() {
			continue
		}
		ones, _ := n.Mask.Size()
		o.addrs = append(o.addrs, addr.Unmap())
		o.subnets = append(o.subnets, netip.PrefixFrom(addr.Unmap(), ones).Masked())
	}
	o.gateways = routeGateways("/proc/net/route", 2, 4)
	maps.Copy(o.gateways, routeGateways("/proc/net/ipv6_route", 4, 16))
	return o
}

// routeGateways are the gateways that a routing table of the kernel names. The field has them in
// hex, in IPv4 as the machine has its numbers: little endian on both that fronts run on.
func routeGateways(file string, field, bytes int) map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	f, err := os.Open(file)
	if err != nil {
		return out
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		words := strings.Fields(s.Text())
		if len(words) <= field {
			continue
		}
		b, err := hex.DecodeString(words[field])
		if err != nil || len(b) != bytes {
			continue
		}
		if bytes == 4 {
			slices.Reverse(b)
		}
		if a, ok := netip.AddrFromSlice(b); ok && !a.IsUnspecified() {
			out[a] = true
		}
	}
	return out
}

// names resolves instances by the engine's DNS.
type names struct {
	lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	own    func() ownNet

	mu    sync.Mutex // guards what follows
	known map[string]*address
	here  ownNet
	read  time.Time
}

// address is what is known of one name.
type address struct {
	addrs []netip.Addr
	at    time.Time     // when DNS was asked last
	good  time.Time     // when it answered last
	busy  chan struct{} // closed when the answer that is under way is there
	err   error
}

func newNames(lookup func(context.Context, string) ([]netip.Addr, error), own func() ownNet) *names {
	return &names{lookup: lookup, own: own, known: map[string]*address{}}
}

// engineLookup asks the engine's DNS. The dot at the end keeps search domains out: a
// wildcard in one of them answers for any name.
func engineLookup(ctx context.Context, name string) ([]netip.Addr, error) {
	r := net.Resolver{PreferGo: true}
	return r.LookupNetIP(ctx, "ip", strings.TrimSuffix(name, ".")+".")
}

// place is where this front stands, read once a second: networks can be connected later.
func (n *names) place() ownNet {
	n.mu.Lock()
	if time.Since(n.read) < nameFresh {
		defer n.mu.Unlock()
		return n.here
	}
	n.mu.Unlock()
	here := n.own()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.here, n.read = here, time.Now()
	return here
}

// resolve are the addresses of a name that may be used. An address outside the networks of
// this front, or its own, is not.
func (n *names) resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	n.mu.Lock()
	a := n.known[name]
	if a == nil {
		if len(n.known) >= maxNames {
			clear(n.known)
		}
		a = &address{}
		n.known[name] = a
	}
	if a.busy == nil && time.Since(a.at) < nameFresh {
		defer n.mu.Unlock()
		return a.addrs, a.err
	}
	if a.busy == nil {
		a.busy = make(chan struct{})
		go n.ask(name, a)
	}
	busy := a.busy
	n.mu.Unlock()
	select {
	case <-busy:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return a.addrs, a.err
}

// ask belongs to nobody's request: whoever waits for the answer may go before it comes.
func (n *names) ask(name string, a *address) {
	ctx, cancel := context.WithTimeout(context.Background(), nameWait)
	defer cancel()
	asked := time.Now()
	got, err := n.lookup(ctx, name)
	here := n.place()
	n.mu.Lock()
	defer n.mu.Unlock()
	close(a.busy)
	a.busy, a.at = nil, asked
	var dns *net.DNSError
	if err != nil && !(errors.As(err, &dns) && dns.IsNotFound) && len(a.addrs) > 0 && time.Since(a.good) < nameSilent {
		return // DNS is silent: the last address serves
	}
	if err != nil {
		a.addrs, a.err = nil, fmt.Errorf("cannot resolve %s: %w", name, err)
		return
	}
	a.addrs, a.err, a.good = nil, nil, time.Now()
	for _, addr := range got {
		if here.near(addr) {
			a.addrs = append(a.addrs, addr.Unmap())
		}
	}
	if isShortID(name) && here.crowded(a.addrs) {
		a.addrs, a.err = nil, fmt.Errorf("cannot use what %s resolves to: somebody else has that name on a network, too", name)
		return
	}
	if len(a.addrs) == 0 {
		a.err = fmt.Errorf("cannot use what %s resolves to: it is in no network of this front", name)
	}
}
