package fleet

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
)

// Scheme is what the address of a host begins with.
const Scheme = ring.AddressScheme

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

// ParseAddress reads ssh://[user@]name[:port][/path/of/socket].
func ParseAddress(s string) (Address, error) {
	a, err := ring.ParseHostAddress(s)
	if err != nil {
		return Address{}, &exit.Failure{
			Code: exit.Usage, Says: fmt.Sprintf("%q is no host to ask: %v", s, err),
			Hint: "ssh://edge-1, or ssh://ann@edge-1:2222/run/gitring/gitring.sock",
		}
	}
	return Address{User: a.User, Host: a.Host, Port: a.Port, Socket: a.Socket}, nil
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
