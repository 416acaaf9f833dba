package ring

import (
	"net/netip"
	"strconv"
	"strings"
)

// Port is one published port. HostPort "" lets the engine choose.
type Port struct {
	HostIP    string `json:"host_ip,omitempty"`
	HostPort  string `json:"host_port,omitempty"` // one port, never a range
	Container int    `json:"container"`
	Protocol  string `json:"protocol"` // tcp, udp, sctp
	// Mode is PortIngress or PortHost on a cluster, and "" elsewhere.
	Mode string `json:"mode,omitempty"`
}

// Clashes reports whether the host has what both publish once only: one port of one
// protocol, on one address or on all of them and one. The two families have their
// ports apart, and no address at all is all of both. A port that the engine chooses
// is a free one.
func (p Port) Clashes(o Port) bool {
	if p.HostPort == "" || o.HostPort == "" || protocol(p) != protocol(o) || p.number() != o.number() {
		return false
	}
	a, okA := address(p.HostIP)
	b, okB := address(o.HostIP)
	if !okA || !okB || a == b { // what is no address the engine refuses by itself
		return !okA || !okB || a == b
	}
	return a.Is4() == b.Is4() && (a.IsUnspecified() || b.IsUnspecified())
}

// PortWord begins a port where what is written is named: a host port is held as a
// folder is, by one service at a time.
const PortWord = "port "

// Published is the host's side of a port, "8080/tcp" or "127.0.0.1:8080/tcp": what
// people read, and what facts keep. It is the same for all ways to write one port.
func (p Port) Published() string {
	at := ""
	if ip, ok := address(p.HostIP); ok {
		at = netip.AddrPortFrom(ip, 0).String()
		at = strings.TrimSuffix(at, "0")
	} else if p.HostIP != "" {
		at = p.HostIP + ":"
	}
	return at + p.number() + "/" + protocol(p)
}

// ParsePublished is the port that Published named, without the container's side.
// Facts of earlier releases name IPv6 addresses without brackets.
func ParsePublished(s string) Port {
	at, proto, _ := strings.Cut(s, "/")
	i := strings.LastIndexByte(at, ':')
	return Port{HostIP: strings.Trim(at[:max(i, 0)], "[]"), HostPort: at[i+1:], Protocol: proto}
}

// number is the host's port as the engine reads it: "080" is port 80.
func (p Port) number() string {
	if n, err := strconv.Atoi(p.HostPort); err == nil {
		return strconv.Itoa(n)
	}
	return p.HostPort
}

func protocol(p Port) string {
	if p.Protocol == "" {
		return "tcp"
	}
	return strings.ToLower(p.Protocol)
}

// address is the one that a port is published on; false is none, or no address.
func address(s string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return ip.Unmap().WithZone(""), err == nil
}
