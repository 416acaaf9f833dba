package ring

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// AddressScheme is what the address of a host begins with.
const AddressScheme = "ssh://"

// HostAddress is where the daemon of another host is reached. User is "" and Port 0 where
// ssh's own configuration says them, and Socket "" where the gitring there finds its own.
type HostAddress struct {
	User, Host string
	Port       int
	Socket     string
}

// What parts of an address may hold: nothing that a shell or ssh takes for more than a
// name. The far end's shell reads the path.
func isAddressName(s string) bool { return IsMadeOf(s, NameChars, 253) && s[0] != '-' }

func isAddressPath(s string) bool { return s[0] == '/' && IsMadeOf(s[1:], NameChars+"/", 255) }

// ParseHostAddress reads ssh://[user@]name[:port][/path/of/socket]. Its error says what is wrong
// with it, and no more.
func ParseHostAddress(s string) (HostAddress, error) {
	rest, ok := strings.CutPrefix(s, AddressScheme)
	if !ok {
		return HostAddress{}, errors.New("it does not begin with " + AddressScheme)
	}
	var a HostAddress
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		a.Socket, rest = rest[i:], rest[:i]
		if a.Socket == "/" {
			a.Socket = ""
		}
	}
	if a.Socket != "" && !isAddressPath(a.Socket) {
		return HostAddress{}, errors.New("a path has letters, digits and ./_- only")
	}
	if user, host, named := strings.Cut(rest, "@"); named {
		if !isAddressName(user) {
			return HostAddress{}, errors.New("a user has letters, digits and ._- only, and does not begin with -")
		}
		a.User, rest = user, host
	}
	var err error
	if a.Host, a.Port, err = cutPort(rest); err != nil {
		return HostAddress{}, err
	}
	return a, nil
}

// cutPort takes name, name:port, [address] and [address]:port apart.
func cutPort(s string) (string, int, error) {
	host, port, named := strings.Cut(s, ":")
	if inner, bracketed := strings.CutPrefix(s, "["); bracketed {
		address, after, closed := strings.Cut(inner, "]")
		ip, err := netip.ParseAddr(address)
		if !closed || err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", 0, fmt.Errorf("brackets are for an IPv6 address")
		}
		if after != "" && !strings.HasPrefix(after, ":") {
			return "", 0, fmt.Errorf("after the brackets comes :port or nothing")
		}
		host, port, named = ip.String(), strings.TrimPrefix(after, ":"), after != ""
	} else if !isAddressName(host) {
		return "", 0, fmt.Errorf("a name has letters, digits and ._- only, and does not begin with -")
	}
	if !named {
		return host, 0, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("a port is a number from 1 to 65535")
	}
	return host, int(n), nil
}
