package gitsync

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// httpDialer opens upload-pack sessions over HTTP through a client of its own.
type httpDialer struct {
	ep   transport.Endpoint // without user and password
	user string
	file string // of the password; "" asks without one
	disk files
	wire *http.Transport
	git  transport.Transport
}

// httpTransport connects by dial, to a proxy where the environment names one.
func httpTransport(scheme string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	t := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, MaxIdleConns: 2}
	if scheme == "https" {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

func newHTTPDialer(a address, auth Auth, lim Limits, disk files, known hosts) *httpDialer {
	t := httpTransport(a.scheme, dialer{idle: lim.Idle, onlyLoopback: a.scheme == "http", known: known}.dial)
	t.TLSHandshakeTimeout, t.ResponseHeaderTimeout, t.IdleConnTimeout = lim.Idle, lim.Idle, lim.Idle
	port, _ := strconv.Atoi(a.port) // url.Parse let only digits through
	host := a.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	ep := transport.Endpoint{Protocol: a.scheme, Host: host, Port: port, Path: (&url.URL{Path: a.path}).EscapedPath()}
	d := &httpDialer{ep: ep, user: cmp.Or(auth.Username, a.user, "git"), file: auth.PasswordFile, disk: disk, wire: t}
	client := &http.Client{Transport: polite{t, lim}, CheckRedirect: sameHost}
	d.git = githttp.NewClientWithOptions(client, &githttp.ClientOptions{RedirectPolicy: githttp.FollowInitialRedirects})
	return d
}

func (d *httpDialer) rest() { d.wire.CloseIdleConnections() }

func (d *httpDialer) open(context.Context) (session, error) {
	ep := d.ep // a session changes its endpoint when it is redirected
	if d.file == "" {
		return d.git.NewUploadPackSession(&ep, nil)
	}
	b, err := d.disk.read(d.file)
	if err != nil {
		return nil, fmt.Errorf("cannot read password_file: %w", err)
	}
	password := strings.TrimRight(string(b), "\r\n")
	return d.git.NewUploadPackSession(&ep, &githttp.BasicAuth{Username: d.user, Password: password})
}

// sameHost lets a forge move a repository, but nobody send us elsewhere.
func sameHost(req *http.Request, via []*http.Request) error {
	from, to := via[0].URL, req.URL
	if from.Scheme != to.Scheme || from.Host != to.Host {
		return fmt.Errorf("the remote sends us to another place, %s://%s; put the new URL into the configuration if it is right", to.Scheme, to.Host)
	}
	return nil
}

// errWait is a remote that asks to be left alone until a time.
type errWait struct {
	until  time.Time
	status string
}

func (e *errWait) Error() string {
	return fmt.Sprintf("the remote answers %s and asks to wait until %s", e.status, e.until.UTC().Format(time.RFC3339))
}

// polite is where answers become errors that people understand, and where the
// limits on what is read sit.
type polite struct {
	next http.RoundTripper
	lim  Limits
}

func (p polite) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := p.next.RoundTrip(req)
	switch {
	case err == nil:
	case req.Context().Err() == nil && (brokeOff(err) || err.Error() == closedIdle):
		return nil, errNoAnswer
	default:
		return nil, err
	}
	if resp.StatusCode < 300 && isPage(resp.Header.Get("Content-Type")) {
		_ = resp.Body.Close()
		return nil, errPage
	}
	if resp.StatusCode < 300 || isRedirect(resp.StatusCode) {
		limit := p.lim.Received
		if req.Method == http.MethodGet {
			limit = p.lim.Adverts
		}
		resp.Body = &body{sniffer{r: &capped{r: resp.Body, left: limit}}, resp.Body, req.Method == http.MethodGet}
		return resp, nil
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // what it says is only for people
	_ = resp.Body.Close()
	return nil, p.refused(resp, oneLine(said))
}

// closedIdle is net/http's own error, which it does not export: the server closed a
// connection between two requests.
const closedIdle = "http: server closed idle connection"

// These are of a remote that went away.
var (
	errNoAnswer = errors.New("the remote closed the connection without an answer")
	errBrokeOff = errors.New("the remote closed the connection in the middle of its answer")
)

// errPage is what a mistaken URL most often leads to, a page to log in among it.
var errPage = errors.New("the remote answers with a web page and not as Git does: is this the URL of the repository, and does it need a password?")

func isPage(kind string) bool {
	media, _, _ := strings.Cut(kind, ";")
	return strings.EqualFold(strings.TrimSpace(media), "text/html")
}

func isRedirect(code int) bool { return code >= 300 && code < 400 }

func (p polite) refused(resp *http.Response, said string) error {
	status := strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	if until, ok := retryAfter(resp.Header.Get("Retry-After"), time.Now()); ok {
		return &errWait{until: until, status: status}
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return errors.New("the remote does not take the user name and password (401 Unauthorized)")
	case http.StatusForbidden:
		return errors.New("the remote does not let this user read the repository (403 Forbidden)")
	case http.StatusNotFound:
		return errors.New("the remote knows no such repository, or hides it from this user (404 Not Found)")
	}
	if said != "" {
		return fmt.Errorf("the remote answers %s: %s", status, said)
	}
	return fmt.Errorf("the remote answers %s", status)
}

// maxWait is how long a remote can ask to be left alone.
const maxWait = 15 * time.Minute

// retryAfter reads seconds or a date, at most maxWait from now.
func retryAfter(value string, now time.Time) (time.Time, bool) {
	until := now
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		until = now.Add(time.Duration(n) * time.Second)
	} else if until, err = http.ParseTime(value); err != nil {
		return time.Time{}, false
	}
	if latest := now.Add(maxWait); until.After(latest) {
		until = latest
	}
	return until, true
}

// body is an answer that is not longer than allowed and not of a SHA-256
// repository.
type body struct {
	sniffer
	io.Closer
	refs bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.sniffer.Read(p)
	if b.refs && b.sha256() {
		return 0, errSHA256
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errBrokeOff
	}
	return n, err
}
