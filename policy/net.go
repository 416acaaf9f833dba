package policy

import (
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// hostPortOf judges one published port.
func hostPortOf(l *look) {
	if s := l.text(); s != "" {
		_, proto, _ := strings.Cut(l.key, "/")
		l.hostPort(s, proto)
	}
}

// hostPort judges a port of the host, whose protocol is tcp where none is said.
func (l *look) hostPort(s, proto string) {
	f := finding{value: s, at: s}
	if proto != "" && proto != "tcp" {
		f.value += "/" + proto
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 65535 {
		f.grade, f.risk = forbidden, "is no port that can be judged"
		l.find(f)
		return
	}
	if l.listensHere(n, proto) {
		f.grade, f.risk = forbidden, "is where the daemon itself listens for webhooks"
		l.find(f)
		return
	}
	f.asks = strconv.Itoa(n) + strings.TrimPrefix(f.value, s)
	if l.r.lists().portPasses(n, proto) {
		return
	}
	if n >= 1024 {
		f.risk = "is a port by which engines and clusters are ruled"
	}
	l.find(f)
}

// publishedAt judges the address of the host that a port is published on.
func publishedAt(l *look) {
	if s := l.text(); linkAddress(s) {
		l.find(finding{value: s, at: l.fieldText("HostPort")})
	}
}

// listensHere reports whether publishing a port would take one of the daemon's own
// listeners.
func (l *look) listensHere(port int, proto string) bool {
	return l.takes(l.r.Listen, port, proto) || l.takes(l.r.ListenAPI, port, proto)
}

func (l *look) takes(listen string, port int, proto string) bool {
	host, own, err := splitHostPort(listen)
	if err != nil || own != port || proto != "" && proto != "tcp" {
		return false
	}
	at, err := netip.ParseAddr(l.fieldText("HostIP"))
	if err != nil || at.IsUnspecified() {
		return true // every address
	}
	listener, err := netip.ParseAddr(strings.Replace(host, "localhost", "127.0.0.1", 1))
	return err != nil || listener.IsUnspecified() || listener.Unmap() == at.Unmap()
}

// splitHostPort cuts host:port at the last colon; a host may stand in brackets.
func splitHostPort(s string) (host string, port int, err error) {
	i := max(0, strings.LastIndex(s, ":"))
	port, err = strconv.Atoi(strings.TrimPrefix(s[i:], ":"))
	return strings.Trim(s[:i], "[]"), port, err
}

// addresses finds the forbidden subnets in a text, a list of texts or the
// values of a map: addresses, prefixes, "host:address".
func addresses(l *look) {
	switch l.v.Kind() {
	case reflect.Slice:
		for _, s := range l.words() {
			l.address(s)
		}
	case reflect.Map:
		all := l.dict()
		for _, k := range sortedKeys(all) {
			l.address(all[k])
		}
	default:
		l.address(l.text())
	}
}

func (l *look) address(s string) {
	if linkAddress(s) {
		l.find(finding{value: s})
	}
}

// linkAddress reports whether an address or a prefix touches a forbidden subnet.
func linkAddress(s string) bool {
	p, ok := prefixOf(s)
	return ok && slices.ContainsFunc(forbiddenSubnets, p.Overlaps)
}

// prefixOf reads an address or a prefix. An IPv4 address in the form of IPv6 is
// taken for what it is.
func prefixOf(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			return netip.PrefixFrom(a.Unmap(), p.Bits()-96), true
		}
		return p, true
	}
	if a, err := netip.ParseAddr(leadingZero.ReplaceAllString(s, "$1$2")); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	return netip.Prefix{}, false
}

// leadingZero is one before a number of an IPv4 address, which older engines read past.
var leadingZero = regexp.MustCompile(`(^|\.)0+(\d)`)

// extraHosts: "name:address", also "name=address" and [address].
func extraHosts(l *look) {
	for _, s := range l.words() {
		i := strings.IndexAny(s, ":=")
		if i < 0 {
			continue
		}
		if linkAddress(strings.Trim(s[i+1:], "[]")) {
			l.find(finding{value: s, at: s[:i]})
		}
	}
}

// networksJoined judges the names of the networks that are joined beside or
// instead of the first one.
func networksJoined(l *look) {
	for it := l.v.MapRange(); it.Next(); {
		name := textOf(it.Key())
		switch {
		case name == "host" && slices.Contains(l.r.lists().Network, "host"):
		case name == "host":
			l.find(finding{value: name, at: name})
		case strings.Contains(name, ":"):
			l.find(finding{value: name, at: name, grade: forbidden, risk: "joins a container that is not the app's"})
		}
	}
}
