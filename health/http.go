package health

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

const (
	// bodyCap is how much of a body a match may look at (docs/design/rollout.md#checks).
	bodyCap = 64 << 10
	// hops are the redirects that are followed where a check asks for it.
	hops = 5
)

// Why a redirect was not followed.
var (
	errTooManyHops = errors.New("redirects too often")
	errElsewhere   = errors.New("redirects to another place than the instance")
)

// transport opens connections to one instance, wherever a URL points. Nothing is
// kept open: a probe that reuses a connection does not see that no new one is taken.
func (p *prober) transport(hosts []string, serverName string) *http.Transport {
	return &http.Transport{
		// Never a proxy of the environment: the target is the instance itself.
		Proxy: nil,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return p.dial(ctx, hosts, port)
		},
		DisableKeepAlives: true,
		// The certificate is not checked: it is the instance itself, by address.
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true, ServerName: serverName}, //nolint:gosec // see above
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

func (p *prober) http(ctx context.Context, in ring.Instance, c ring.HTTPCheck, timeout time.Duration) answer {
	hosts := p.addresses(in)
	if len(hosts) == 0 {
		return failed(noAddress)
	}
	u, err := target(c, hosts[0])
	if err != nil {
		return failed("cannot ask: the path is no path of a URL")
	}
	what := "GET :" + strconv.Itoa(c.Port) + u.EscapedPath() // without the query, which may hold a token
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return failed("cannot ask: the path is no path of a URL")
	}
	dress(req, c)
	client := http.Client{Transport: p.transport(hosts, hostOnly(req.Host)), CheckRedirect: stay(c)}
	res, err := client.Do(req)
	if err != nil {
		return failed("%s %s", what, because(ctx, err, timeout))
	}
	defer res.Body.Close() //nolint:errcheck // nothing is written, and the connection goes
	if !accepted(res.StatusCode, c.Status) {
		body, _ := io.ReadAll(io.LimitReader(res.Body, ring.PrintedCap)) // what there is of it, for people
		return failed("%s answered %d", what, res.StatusCode).printing(string(body))
	}
	if c.Match == "" {
		return passed()
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, bodyCap))
	if bytes.Contains(body, []byte(c.Match)) {
		return passed()
	}
	if err != nil {
		return failed("%s answered %d, then its body %s", what, res.StatusCode, because(ctx, err, timeout))
	}
	return failed("%s answered %d without the text to match", what, res.StatusCode).printing(string(body))
}

// dress gives a request the headers of its check.
func dress(req *http.Request, c ring.HTTPCheck) {
	req.Header.Set("User-Agent", "gitring")
	for k, v := range c.Headers {
		if strings.EqualFold(k, "Host") {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	req.Host = cmp.Or(c.Host, req.Host)
}

// stay decides about redirects. Without being asked a redirect is the answer.
// Asked to, it is followed as long as it stays where the instance is, by the
// name that it was asked by: anything else would be asking somebody else.
func stay(c ring.HTTPCheck) func(*http.Request, []*http.Request) error {
	if !c.Redirects {
		return func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return func(next *http.Request, before []*http.Request) error {
		first := before[0]
		if len(before) > hops {
			return errTooManyHops
		}
		if next.URL.Scheme != first.URL.Scheme {
			return errElsewhere
		}
		if next.URL.Host != first.URL.Host && !strings.EqualFold(next.URL.Host, first.Host) {
			return errElsewhere
		}
		next.URL.Host, next.Host = first.URL.Host, first.Host
		return nil
	}
}

// hostOnly is a Host header without its port; "" for an address, which no
// certificate is chosen by.
func hostOnly(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if net.ParseIP(strings.Trim(host, "[]")) != nil {
		return ""
	}
	return host
}

// target is the URL on the instance itself, whatever the path looks like.
func target(c ring.HTTPCheck, host string) (*url.URL, error) {
	path := c.Path
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return nil, err
	}
	u.Scheme, u.User = "http", nil
	if c.Scheme == "https" {
		u.Scheme = "https"
	}
	u.Host = net.JoinHostPort(host, strconv.Itoa(c.Port))
	return u, nil
}

func accepted(code int, status []int) bool {
	if len(status) == 0 {
		return code >= 200 && code <= 299
	}
	return slices.Contains(status, code)
}
