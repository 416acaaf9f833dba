package notify

import "net/netip"

// The ranges that no message is sent to, whatever a receiver's URL says: those in
// which a host's own services and its cloud's secrets are. Sources: RFC 6890 and
// the registries it made. Metadata services that are not at a link-local address are
// Alibaba's, Amazon's over IPv6, Azure's, Oracle's (two), Google's and Scaleway's.
var (
	linkLocal = []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"),
	}
	metadata = []netip.Prefix{
		netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("168.63.129.16/32"),
		netip.MustParsePrefix("192.0.0.192/32"), netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), netip.MustParsePrefix("fd20:ce::254/128"), netip.MustParsePrefix("fd00:42::42/128"),
	}
	nowhere = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("::/128"), netip.MustParsePrefix("224.0.0.0/4"),
		netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("ff00::/8"),
	}
	private = []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
		netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
		netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("2001:db8::/32"),
	}
	// nat64, translated and sixToFour hold an IPv4 address, which is judged instead.
	// Where it is in localNAT64 is for its network to say (RFC 6052, 8215), so each place
	// is judged.
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
	mapped     = netip.MustParsePrefix("::/96") // the old form of an IPv4 address in IPv6
)

// forbidden is why no connection is made to an address; "" when one may be. Where
// private addresses are allowed, link-local ones, metadata services and what is
// no address of a machine stay forbidden.
func forbidden(a netip.Addr, allowPrivate bool) string {
	a = a.WithZone("").Unmap()
	switch {
	case !a.IsValid(), among(a, nowhere):
		return "no address of a machine"
	case among(a, metadata), among(a, linkLocal):
		return "a link-local address, where the metadata of clouds is"
	case !allowPrivate && among(a, private):
		return "a private address"
	}
	if localNAT64.Contains(a) {
		if !allowPrivate {
			return "a private address"
		}
		b := a.As16()
		for _, v4 := range [][4]byte{{b[6], b[7], b[9], b[10]}, {b[7], b[9], b[10], b[11]}, {b[9], b[10], b[11], b[12]}, [4]byte(b[12:])} {
			if x := netip.AddrFrom4(v4); among(x, linkLocal) || among(x, metadata) {
				return "a link-local address, where the metadata of clouds is"
			}
		}
		return ""
	}
	if v4, ok := inside(a); ok {
		if v4 == a || !v4.Is4() {
			return "a private address"
		}
		return forbidden(v4, allowPrivate)
	}
	return ""
}

// inside is the IPv4 address that an IPv6 one leads to.
func inside(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() || a == netip.IPv6Loopback() {
		return a, false
	}
	b := a.As16()
	switch {
	case nat64.Contains(a), translated.Contains(a), mapped.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case teredo.Contains(a):
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	return a, false
}

func among(a netip.Addr, ranges []netip.Prefix) bool {
	for _, p := range ranges {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
