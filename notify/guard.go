package notify

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// errForbidden is of an address that no message is sent to.
type errForbidden struct{ why string }

func (e errForbidden) Error() string { return "its address is " + e.why }

// guarded is a dialer that judges each address right before it connects, after
// the name was looked up: a name that means another address at the second look
// gains nothing.
func guarded(allowPrivate bool) *net.Dialer {
	return &net.Dialer{Timeout: timeout, Control: func(network, address string, _ syscall.RawConn) error {
		if network != "tcp4" && network != "tcp6" {
			return errForbidden{"of another network than TCP"}
		}
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return errForbidden{"not understood"}
		}
		if why := forbidden(at.Addr(), allowPrivate); why != "" {
			return errForbidden{why}
		}
		return nil
	}}
}

// errRedirected is of an answer that leads elsewhere.
var errRedirected = errors.New("redirected")

// hookClient posts to web hooks: no redirect, no proxy of the environment (it
// would connect where the guard does not see), no connection that stays.
func hookClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	return &http.Client{
		Timeout: hookTimeout,
		Transport: &http.Transport{
			Proxy: nil, DialContext: dial, DisableKeepAlives: true, TLSHandshakeTimeout: timeout,
			ResponseHeaderTimeout: hookTimeout, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// hookTimeout bounds one post, as Standard Webhooks suggests 15 to 30 s.
const hookTimeout = 15 * time.Second
