package report

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

const (
	// sendWithin bounds one report, from the connection to the end of the answer.
	sendWithin = 20 * time.Second
	// linesAtOnce and bytesAtOnce bound the lines of one report. A hub takes more.
	linesAtOnce = 500
	bytesAtOnce = 1 << 20
	// tokenFileLimit is far above any token.
	tokenFileLimit = 4 << 10
	// headLimit is of what a hub may answer before its cursor.
	headLimit = 8 << 10
)

// aToken is what a file of a token holds; nothing else is sent to anybody.
var aToken = regexp.MustCompile(`^grt_[a-z2-7]{8}_[A-Za-z0-9_-]{43}$`)

// newTransport follows no redirect, since it is asked itself, and unpacks nothing.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns: 1, MaxConnsPerHost: 1, IdleConnTimeout: 30 * time.Second, DisableCompression: true, MaxResponseHeaderBytes: headLimit,
	}
}

// ReadToken is the token of a file. Its error has no part of what the file holds.
func ReadToken(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("cannot read report.token_file: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(io.LimitReader(f, tokenFileLimit))
	if err != nil {
		return "", fmt.Errorf("cannot read report.token_file: %w", err)
	}
	text := strings.TrimSpace(string(raw))
	if !aToken.MatchString(text) {
		return "", fmt.Errorf("cannot use report.token_file: %s holds no token; gitring token new <host> --scope report:<host> makes one on the hub", file)
	}
	return text, nil
}

// made is a report on its way.
type made struct {
	body []byte
	// last is the line that the hub is to name; the zero value where it may name any.
	last  ring.Cursor
	sent  bool // lines
	more  bool // lines are left
	tag   string
	asked bool // for the cursor
}

// make is the next report.
func (r *Reporter) make(ctx context.Context, now time.Time) (*made, error) {
	st, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	status, err := json.Marshal(st)
	if err != nil {
		return nil, err
	}
	m := &made{tag: r.Tag(&st), asked: r.cursor == nil}
	out := ring.HostReport{Host: r.Host, Gitring: r.Gitring, At: now.UTC(), Status: status}
	if r.cursor != nil {
		out.After = r.cursor.String()
		if err := r.fill(ctx, &out, m); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write(raw)
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	m.body = b.Bytes()
	return m, nil
}

// fill adds the lines that follow the hub's.
func (r *Reporter) fill(ctx context.Context, out *ring.HostReport, m *made) error {
	from, gap, err := r.follows(ctx, *r.cursor)
	if err != nil {
		return err
	}
	lines, err := r.Lines(ctx, from, linesAtOnce)
	if err != nil {
		return err
	}
	size := 0
	for i := range lines {
		l := &lines[i]
		raw, err := json.Marshal(l.Event)
		if err != nil {
			return err
		}
		if size += len(raw); size > bytesAtOnce && i > 0 {
			m.more = true
			break
		}
		out.Lines = append(out.Lines, ring.HostLine{Hash: l.Hash, Event: raw})
		m.last, m.sent = ring.Cursor{Seq: l.Seq, Hash: l.Hash}, true
	}
	m.more = m.more || len(lines) == linesAtOnce
	if m.sent {
		out.Gap = gap
	}
	return nil
}

// follows is the number after which lines follow the hub's line, and why they do not follow it
// directly.
func (r *Reporter) follows(ctx context.Context, c ring.Cursor) (after int64, gap string, err error) {
	lines, err := r.Lines(ctx, max(0, c.Seq-1), 1)
	switch {
	case err != nil:
		return 0, "", err
	case c.Seq == 0 && len(lines) == 0:
		return 0, "", nil
	case c.Seq == 0 && lines[0].Seq == 1:
		return 0, "", nil
	case len(lines) == 0, lines[0].Seq == c.Seq && lines[0].Hash != c.Hash:
		return 0, ring.GapReplaced, nil
	case lines[0].Seq > c.Seq:
		return c.Seq, ring.GapTrimmed, nil
	}
	return c.Seq, "", nil
}

// send makes one attempt, and gives the line that the hub names. The error has no word of the answer.
func (r *Reporter) send(ctx context.Context, m *made) (ring.Cursor, error) {
	token, err := ReadToken(r.TokenFile)
	if err != nil {
		return ring.Cursor{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(r.URL, "/")+"/v1/report", bytes.NewReader(m.body))
	if err != nil {
		return ring.Cursor{}, errors.New("cannot use report.url")
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "gitring")
	// Not a client's way, which would go where a redirect leads.
	res, err := r.transport.RoundTrip(req)
	if err != nil {
		return ring.Cursor{}, errors.New("cannot reach the hub: " + because(ctx, err))
	}
	defer res.Body.Close() //nolint:errcheck // what is left of it is nobody's
	if res.StatusCode != http.StatusOK {
		return ring.Cursor{}, errors.New(refused(res.StatusCode))
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, ring.CursorLimit+1))
	if err != nil {
		return ring.Cursor{}, errors.New("cannot read the hub's answer: " + because(ctx, err))
	}
	at, ok := ring.ParseCursor(string(raw))
	if !ok {
		return ring.Cursor{}, errors.New("the hub answered with something else than a line of the journal")
	}
	return at, nil
}

// refused is what a status of an answer means.
func refused(code int) string {
	says := fmt.Sprintf("the hub answered %d", code)
	switch {
	case code == http.StatusUnauthorized:
		return says + ": its file of tokens does not have the one of report.token_file, or not any more"
	case code == http.StatusForbidden:
		return says + ": the token has to have the scope report:<host>, of this host's name"
	case code == http.StatusMisdirectedRequest:
		return says + ": report.url names it otherwise than its own configuration does"
	case code == http.StatusInsufficientStorage:
		return says + ": it has no room for more of the journal"
	case code >= 300 && code <= 399:
		return says + ", a redirect, which is not followed"
	}
	return says
}

// because is the reason of a failed request: what this host says of the way, and no word of an answer.
func because(ctx context.Context, err error) string {
	var ne net.Error
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &ne) && ne.Timeout() {
		return fmt.Sprintf("no answer within %s", sendWithin)
	}
	var op *net.OpError
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns):
		return dns.Error()
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error() // its addresses have a port that is another each time
	case errors.As(err, &cert):
		return "its certificate is not one that this host trusts for that name"
	}
	return "the connection broke off, or what answers is no HTTP"
}
