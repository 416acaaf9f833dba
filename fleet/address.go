package fleet

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/gitring/gitring/exit"
)

// Scheme is what the address of a host begins with.
const Scheme = "ssh://"

// Address is a daemon on another host, as ssh finds it.
type Address struct {
	User string // "" is what ssh's own configuration says
	Host string // a name that ssh knows, or an address without brackets
	Port int    // 0 is what ssh's own configuration says
	// Socket is the daemon's on that host; "" is the one that its gitring finds.
	Socket string
	// Foreign reports whether a repository chose the host, and not the user. ssh then asks
	// nothing, and goes to no host that the user does not know already.
	Foreign bool
}

// What parts of an address may hold: nothing that a shell or ssh takes for more than a
// name. The far end's shell reads the path.
var (
	aName = regexp.MustCompile(`^[A-Za-z0-9._][A-Za-z0-9._-]{0,252}$`)
	aPath = regexp.MustCompile(`^/[A-Za-z0-9._/-]{1,255}$`)
)

// ParseAddress reads ssh://[user@]name[:port][/path/of/socket].
func ParseAddress(s string) (Address, error) {
	wrong := func(format string, args ...any) (Address, error) {
		return Address{}, &exit.Failure{
			Code: exit.Usage, Says: fmt.Sprintf("%q is no host to ask: %s", s, fmt.Sprintf(format, args...)),
			Hint: "ssh://edge-1, or ssh://ann@edge-1:2222/run/gitring/gitring.sock",
		}
	}
	rest, ok := strings.CutPrefix(s, Scheme)
	if !ok {
		return wrong("it does not begin with %s", Scheme)
	}
	var a Address
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		a.Socket, rest = rest[i:], rest[:i]
		if a.Socket == "/" {
			a.Socket = ""
		}
	}
	if a.Socket != "" && !aPath.MatchString(a.Socket) {
		return wrong("a path has letters, digits and ./_- only")
	}
	if user, host, named := strings.Cut(rest, "@"); named {
		if !aName.MatchString(user) {
			return wrong("a user has letters, digits and ._- only, and does not begin with -")
		}
		a.User, rest = user, host
	}
	host, port, err := cutPort(rest)
	if err != nil {
		return wrong("%v", err)
	}
	a.Host, a.Port = host, port
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
	} else if !aName.MatchString(host) {
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

// String is the address as people write it.
func (a Address) String() string {
	var b strings.Builder
	b.WriteString(Scheme)
	if a.User != "" {
		b.WriteString(a.User + "@")
	}
	if strings.Contains(a.Host, ":") {
		b.WriteString("[" + a.Host + "]")
	} else {
		b.WriteString(a.Host)
	}
	if a.Port != 0 {
		b.WriteString(":" + strconv.Itoa(a.Port))
	}
	b.WriteString(a.Socket)
	return b.String()
}

// args are those of ssh. Nothing of a forwarded agent or port is of use here, and the
// name stands after -- so that it is never an option.
func (a Address) args() []string {
	args := []string{"-T", "-a", "-x", "-o", "ClearAllForwardings=yes"}
	if a.Foreign {
		args = append(args, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes")
	}
	if a.Port != 0 {
		args = append(args, "-p", strconv.Itoa(a.Port))
	}
	if a.User != "" {
		args = append(args, "-l", a.User)
	}
	args = append(args, "--", a.Host, "gitring", "dial-stdio")
	if a.Socket != "" {
		args = append(args, "--socket", a.Socket)
	}
	return args
}
