package policy

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
)

// privateSubnets are what a network of an app may lie in: no host on the
// internet has such an address, so a route there takes nothing from the host.
var privateSubnets = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), // RFC 1918
	netip.MustParsePrefix("100.64.0.0/10"), // RFC 6598
	netip.MustParsePrefix("fc00::/7"),      // RFC 4193
}

const (
	publicRisk      = "takes addresses of the internet: the host sends what is for them to the app's own network"
	insteadOfPublic = "choose a subnet inside 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 or fc00::/7, or leave ipam out"
)

// subnetsOnly is a check of the subnets, ranges and addresses of a network: each
// lies in one private subnet, and touches no forbidden one.
func subnetsOnly(l *look) {
	switch l.v.Kind() {
	case reflect.Map:
		all := l.dict()
		for _, name := range sortedKeys(all) {
			l.privateOnly(all[name])
		}
	default:
		l.privateOnly(l.text())
	}
}

func (l *look) privateOnly(s string) {
	p, ok := prefixOf(s)
	switch {
	case s == "":
	case !ok:
		l.find(finding{value: s, grade: forbidden, risk: "is no subnet or address that can be judged"})
	case linkAddress(s):
		l.find(finding{value: s})
	case l.r.lists().Subnets != nil && !isIn(l.r.lists().Subnets, p):
		l.find(finding{value: s, risk: "is not among the subnets that this host lets apps have", instead: "choose one of " + strings.Join(l.r.lists().Subnets, ", ")})
	case l.r.lists().Subnets == nil && !isPrivate(p):
		l.find(finding{value: s, risk: publicRisk, instead: insteadOfPublic})
	}
}

// isIn reports whether all of p lies in one prefix of a list.
func isIn(list []string, p netip.Prefix) bool {
	return slices.ContainsFunc(list, func(word string) bool {
		in, ok := prefixOf(word)
		return ok && in.Bits() <= p.Bits() && in.Contains(p.Addr())
	})
}

// isPrivate reports whether all of p lies in one private subnet.
func isPrivate(p netip.Prefix) bool {
	return slices.ContainsFunc(privateSubnets, func(private netip.Prefix) bool {
		return private.Bits() <= p.Bits() && private.Contains(p.Addr())
	})
}
