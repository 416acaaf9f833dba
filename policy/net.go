package policy

import (
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// hostPortOf judges one published port.
func hostPortOf(l *look) {
	s := l.text()
	if s == "" {
		return
	}
	f := finding{value: s, at: s}
	_, proto, _ := strings.Cut(l.key, "/")
	if proto != "" && proto != "tcp" {
		f.value += "/" + proto
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 65535 {
		f.grade, f.risk = forbidden, "is no port that can be judged"
		l.find(f)
		return
	}
	if hostPort(n) {
		return
	}
	if n >= 1024 {
		f.risk = "is a port by which engines and clusters are ruled"
	}
	l.find(f)
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

// linkAddress says that an address or a prefix touches a forbidden subnet.
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
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	return netip.Prefix{}, false
}

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
		case name == "host":
			l.find(finding{value: name, at: name})
		case strings.Contains(name, ":"):
			l.find(finding{value: name, at: name, grade: forbidden, risk: "joins a container that is not the app's"})
		}
	}
}
