package health

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/gitring/gitring/ring"
)

// bodyCap is how much of a body a match may look at (DESIGN.md section 3).
const bodyCap = 64 << 10

// answer is what one probe found out.
type answer struct {
	// known is false when nothing was learned about the instance: the daemon
	// is stopping, or the engine could not be asked. That is no failure.
	known bool
	ok    bool
	says  string
}

func passed() answer { return answer{known: true, ok: true} }

func failed(format string, args ...any) answer {
	return answer{known: true, says: printable(fmt.Sprintf(format, args...))}
}

func unknown(format string, args ...any) answer {
	return answer{says: printable(fmt.Sprintf(format, args...))}
}

// prober asks instances. It is shared by all checks of a daemon.
type prober struct {
	exec   Exec
	dialer net.Dialer
	client *http.Client
}

func newProber(exec Exec) *prober {
	p := &prober{exec: exec}
	p.client = &http.Client{
		// A redirect is an answer: following it would ask someone else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			// Never a proxy of the environment: the target is the instance itself.
			Proxy:             nil,
			DialContext:       p.dialer.DialContext,
			DisableKeepAlives: true,
			// The certificate is not checked: it is the instance itself, by address.
			TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
			DisableCompression:     true,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}
	return p
}

// ask runs one probe of c against in, within the check's own timeout.
func (p *prober) ask(ctx context.Context, in ring.Instance, c ring.Check) answer {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var a answer
	switch {
	case c.HTTP != nil:
		a = p.http(limited, in, *c.HTTP, timeout)
	case c.TCP != nil:
		a = p.tcp(limited, in, c.TCP.Port, timeout)
	case len(c.Exec) > 0:
		a = p.run(limited, in, c.Exec, timeout)
	default:
		return unknown("says nothing to ask")
	}
	if ctx.Err() != nil { // stopped in the middle: not the instance's fault
		return answer{}
	}
	return a
}

func (p *prober) http(ctx context.Context, in ring.Instance, c ring.HTTPCheck, timeout time.Duration) answer {
	host, ok := address(in)
	if !ok {
		return failed("the instance has no address on any network")
	}
	u, err := target(c, host)
	if err != nil {
		return failed("cannot ask: the path is no path of a URL")
	}
	what := fmt.Sprintf("GET :%d%s", c.Port, u.EscapedPath()) // without the query, which may hold a token
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return failed("cannot ask: the path is no path of a URL")
	}
	req.Header.Set("User-Agent", "gitring")
	for k, v := range c.Headers {
		if strings.EqualFold(k, "Host") {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	if c.Host != "" {
		req.Host = c.Host
	}
	res, err := p.client.Do(req)
	if err != nil {
		return failed("%s %s", what, because(ctx, err, timeout))
	}
	defer res.Body.Close() //nolint:errcheck // nothing is written, and the connection goes
	if !accepted(res.StatusCode, c.Status) {
		return failed("%s answered %d", what, res.StatusCode)
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
	return failed("%s answered %d without the text to match", what, res.StatusCode)
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

func (p *prober) tcp(ctx context.Context, in ring.Instance, port int, timeout time.Duration) answer {
	host, ok := address(in)
	if !ok {
		return failed("the instance has no address on any network")
	}
	conn, err := p.dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return failed("tcp :%d %s", port, because(ctx, err, timeout))
	}
	_ = conn.Close()
	return passed()
}

// run never repeats what the command printed nor its arguments: either may
// hold a secret, and a reason is read by everyone.
func (p *prober) run(ctx context.Context, in ring.Instance, argv []string, timeout time.Duration) answer {
	if p.exec == nil {
		return unknown("exec %s: this engine runs no commands in containers", argv[0])
	}
	code, _, err := p.exec(ctx, in.ID, argv)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failed("exec %s did not end within %s", argv[0], timeout)
	case err != nil:
		return unknown("exec %s could not be run", argv[0])
	case code != 0:
		return failed("exec %s exited %d", argv[0], code)
	}
	return passed()
}

// engineWord turns the engine's own verdict into an answer.
func engineWord(word string) answer {
	switch word {
	case "healthy":
		return passed()
	case "unhealthy":
		return failed("the container's HEALTHCHECK fails")
	case "starting":
		return unknown("the container's HEALTHCHECK has not passed yet")
	}
	return unknown("the container has no HEALTHCHECK")
}

// address is where an instance of several networks is asked: on the first by
// name that gave it an address, so that every look asks the same one. With the
// host's network it has none, and the host's own is loopback.
func address(in ring.Instance) (string, bool) {
	names := make([]string, 0, len(in.Addresses))
	for name := range in.Addresses {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if a := in.Addresses[name]; a != "" {
			return a, true
		}
	}
	if _, ok := in.Addresses["host"]; ok {
		return "127.0.0.1", true
	}
	return "", false
}

// because says what went wrong on the wire, without addresses.
func because(ctx context.Context, err error, timeout time.Duration) string {
	var ne net.Error
	var te *tls.RecordHeaderError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return fmt.Sprintf("did not answer within %s", timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused the connection"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed the connection without an answer"
	case errors.As(err, &te):
		return "does not speak TLS"
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return "failed: " + errno.Error()
	}
	return "did not give a proper answer"
}

// printable keeps a reason on one line and short: names in it come from a
// commit, and it is stored and shown as it is.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > 200 {
		s = string(r[:199]) + "…"
	}
	return s
}
