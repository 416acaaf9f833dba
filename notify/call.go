package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// timeout bounds one call, from the connection to the end of the answer.
	timeout = 10 * time.Second
	// maxAnswer is how much of an answer is read: more than a page of a list
	// of any forge, less than what would hurt.
	maxAnswer = 4 << 20
)

// answer is what a forge said, without its body: that is somebody else's text
// and never repeated.
type answer struct {
	code   int
	header http.Header
}

// ok reports whether the forge said yes; a no may mean that nothing remains to be said.
func (a answer) ok() bool { return a.code >= 200 && a.code <= 299 }

// outcome of one attempt. The zero value is "try again, in our own time". One
// that is not done is the error of a call.
type outcome struct {
	done bool
	// permanent says that trying this again cannot help.
	permanent bool
	// wait is the forge's own word on when to come back; 0 is none.
	wait time.Duration
	// long says that the answer was longer than is read.
	long bool
	says string
}

func (o outcome) Error() string { return o.says }

// call makes one request to the API: bounded in time and size, to the
// configured host alone, with no redirect followed. path is below the API's
// root, begins with a slash, and is escaped (see segments). in is the body, nil
// for none; an answer that means yes is decoded into out, unless that is nil.
// The error is an outcome that is not done, and holds no word of the answer.
func (f Forge) call(ctx context.Context, method, path string, in, out any) (answer, error) {
	d, err := driverOf(f.Kind)
	if err != nil {
		return answer{}, outcome{permanent: true, says: err.Error()}
	}
	return f.withToken(ctx, func(token string) (answer, error) {
		return f.request(ctx, method, path, in, out, func(h http.Header) { d.dress(h, f, token) }, d.judge)
	})
}

// withToken asks with the token, and once more with a new one where an App's was
// taken back before its time.
func (f Forge) withToken(ctx context.Context, ask func(token string) (answer, error)) (answer, error) {
	for renewed := false; ; renewed = true {
		token, err := f.token(ctx)
		if err != nil {
			return answer{}, asOutcome(err)
		}
		a, err := ask(token)
		if a.code != http.StatusUnauthorized || f.App == nil || renewed {
			return a, err
		}
		f.App.forget(token)
	}
}

// request is call for whoever brings a token and a judge.
func (f Forge) request(ctx context.Context, method, path string, in, out any, dress func(http.Header), own func(answer, string) (outcome, bool)) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := f.compose(ctx, method, path, in)
	if err != nil {
		return answer{}, err
	}
	dress(req.Header)
	// Not a client's way, which would read where a redirect leads.
	res, err := f.transport().RoundTrip(req)
	if err != nil {
		return answer{}, outcome{says: "cannot reach the forge: " + because(ctx, err)}
	}
	defer res.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	a := answer{code: res.StatusCode, header: res.Header}
	if o, known := own(a, string(body)); known {
		if o.done {
			return a, nil
		}
		return a, o
	}
	if o := f.judge(a, body); !o.done {
		return a, o
	}
	if err != nil {
		return a, outcome{says: "cannot read the forge's answer: " + because(ctx, err)}
	}
	if out != nil && len(body) > maxAnswer {
		return a, outcome{long: true, says: "the forge's answer is longer than 4 MiB"}
	}
	if out != nil && json.Unmarshal(body, out) != nil {
		return a, unread(a)
	}
	return a, nil
}

// unread is of a yes that is none of the API's.
func unread(a answer) outcome {
	return outcome{says: fmt.Sprintf("the forge answered %d with something that cannot be read; see status.api_url", a.code)}
}

func (f Forge) compose(ctx context.Context, method, path string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, outcome{permanent: true, says: "cannot write the request"}
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, f.APIURL+path, body)
	if err != nil {
		return nil, outcome{permanent: true, says: "cannot use status.api_url"}
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "gitring")
	return req, nil
}

// judge is what an answer means everywhere.
func (f Forge) judge(a answer, body []byte) outcome {
	says := fmt.Sprintf("the forge answered %d", a.code)
	switch {
	case a.code >= 200 && a.code <= 299:
		if isPage(a.header, body) {
			return outcome{says: says + " with a web page, which is not its API; see status.api_url"}
		}
		return outcome{done: true}
	case a.code >= 300 && a.code <= 399:
		return outcome{permanent: true, says: says + ", a redirect, which is not followed: has the repository moved? see status.repo and status.api_url"}
	case a.code == http.StatusUnauthorized:
		return outcome{permanent: true, says: says + ": the token is not valid; see " + f.tokenKey()}
	case a.code == http.StatusForbidden:
		return outcome{permanent: true, says: says + ": the token may not " + f.purpose()}
	case a.code == http.StatusNotFound && f.doing != "": // what some say for 403
		return outcome{permanent: true, says: says + ": no such repository or commit, or the token may not " + f.doing}
	case a.code == http.StatusNotFound:
		return outcome{permanent: true, says: says + ": no such repository or commit, or the token may not see it"}
	case a.code == http.StatusTooManyRequests:
		return outcome{says: limitReached, wait: comeBack(a.header)}
	case a.code == http.StatusRequestTimeout, a.code == http.StatusTooEarly, a.code >= 500:
		return outcome{says: says, wait: retryAfter(a.header)}
	}
	return outcome{permanent: true, says: says}
}

// purpose is what the token is for, in the sentence of a 403.
func (f Forge) purpose() string {
	if f.doing == "" {
		return "write commit statuses"
	}
	return f.doing
}

// isPage tells a proxy's or a login page from an API's answer.
func isPage(h http.Header, body []byte) bool {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind == "text/html" || strings.HasPrefix(strings.TrimSpace(string(body[:min(len(body), 64)])), "<")
}

// closedIdle is net/http's own error, which it does not export: the server closed a
// connection between two requests.
const closedIdle = "http: server closed idle connection"

// because is the reason of a failed request. Only what this host says of the way
// is repeated: what is wrong with an answer holds words of it, which may be those
// of the request, and what is wrong with a proxy holds its password.
func because(ctx context.Context, err error) string {
	var ne net.Error
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &ne) && ne.Timeout() {
		return fmt.Sprintf("no answer within %s", timeout)
	}
	var op *net.OpError
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &op):
		return op.Error()
	case errors.As(err, &dns):
		return dns.Error()
	case errors.As(err, &cert):
		return cert.Error()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err.Error() == closedIdle {
		return "the connection broke off"
	}
	return "no answer that is HTTP; see status.api_url, and the proxy of the environment"
}

// asOutcome is an error as an outcome: what is none is tried again.
func asOutcome(err error) outcome {
	var o outcome
	if errors.As(err, &o) {
		return o
	}
	return outcome{says: err.Error()}
}

// segments is a path of the API from its parts, each of them escaped.
func segments(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(p))
	}
	return b.String()
}

// repoPath is a path below /<first>/<owner>/<name>, which most forges share.
func (f Forge) repoPath(first string, parts ...string) string {
	owner, name, _ := strings.Cut(f.Repo, "/")
	return segments(append([]string{first, owner, name}, parts...)...)
}
