package notify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gitring/gitring/ring"
)

// OTLP is a receiver of traces: a collector that takes OTLP over HTTP as JSON.
type OTLP struct {
	// URLFile is read at every use.
	URLFile string
}

// tracesPath is where a collector takes traces, where the URL names no path.
const tracesPath = "/v1/traces"

// otlpSpeaker posts a trace to a collector. One stands on the same host as a rule, so loopback and
// private addresses are reached, as of a chat.
type otlpSpeaker struct {
	host    string
	urlFile string
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

func newOTLPSpeaker(host string, o OTLP) *otlpSpeaker {
	return &otlpSpeaker{host: host, urlFile: o.URLFile, dial: guarded(true).DialContext}
}

func (s *otlpSpeaker) service() string { return "otlp" }

// check reads the URL, as a send would.
func (s *otlpSpeaker) check() error {
	_, err := s.url()
	return err
}

// url is the collector's; no error repeats a part of it.
func (s *otlpSpeaker) url() (string, error) {
	raw, err := readSmall(s.urlFile)
	if err != nil {
		return "", fmt.Errorf("cannot read otlp.url_file: %w", err)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("cannot use the URL in %s: it has the form https://host:4318/v1/traces", s.urlFile)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = tracesPath
	}
	return u.String(), nil
}

// say makes one attempt.
func (s *otlpSpeaker) say(ctx context.Context, n Note) reply {
	at, err := s.url()
	if err != nil {
		return reply{away: true, says: err.Error()}
	}
	body, err := json.Marshal(traceOf(s.host, n))
	if err != nil {
		return reply{gone: true, says: "cannot write the trace"}
	}
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return reply{gone: true, says: "cannot use the URL"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "gitring")
	res, err := hookClient(s.dial).Do(req)
	if err != nil {
		return reply{away: true, says: unreachable(ctx, err)}
	}
	defer res.Body.Close()                                          //nolint:errcheck // only read
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, mostReply)) // somebody else's text
	if res.StatusCode == http.StatusBadRequest {                    // as OTLP says
		return reply{gone: true, says: "it answered 400: it does not take this trace"}
	}
	return judged(res.StatusCode, retryAfter(res.Header))
}

// What follows is OTLP's JSON, as far as a trace of ours needs it: ids are hexadecimal, and numbers of
// 64 bits are text.
type (
	otlpRequest struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpScope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		ParentID   string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Status     *otlpStatus     `json:"status,omitempty"`
	}
	otlpStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		Text string `json:"stringValue"`
	}
)

const (
	otlpInternal = 1 // the kind of a span that calls nobody
	otlpError    = 2 // the code of a span that failed
)

// traceOf is what is posted of a note. Every host makes the same trace id of a commit, and another span
// id of each line of its own.
func traceOf(host string, n Note) otlpRequest {
	spans := []span{{name: "test", line: n.Line, began: n.At, end: n.At, fields: [][2]string{{"gitring.reason", n.Reason}}}}
	id := hex.EncodeToString(idBytes(host, "test", n.Line)[:16])
	if n.Kind == kindTrace {
		spans, id = spansOf(n.Lines, n.Cut), string(n.Commit[:min(32, len(n.Commit))])
	}
	var out []otlpSpan
	for i := range spans {
		p := &spans[i]
		s := otlpSpan{
			TraceID: id, SpanID: hex.EncodeToString(idBytes(host, p.name, p.line)[:8]), Name: p.name, Kind: otlpInternal,
			Start: nanos(p.began), End: nanos(p.end), Attributes: attributes(p.fields),
		}
		if i > 0 {
			s.ParentID = out[0].SpanID
		}
		if p.failed != "" {
			s.Status = &otlpStatus{otlpError, p.failed}
		}
		out = append(out, s)
	}
	return otlpRequest{[]otlpResourceSpans{{
		Resource:   otlpResource{attributes([][2]string{{"service.name", "gitring"}, {"service.version", ring.Release}, {"host.name", host}})},
		ScopeSpans: []otlpScopeSpans{{otlpScope{"gitring", ring.Release}, out}},
	}}}
}

// idBytes is the same for the same line of the same host, also when it is posted again.
func idBytes(host, name string, line int64) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", host, line, name))
	return sum[:]
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func attributes(fields [][2]string) (out []otlpAttribute) {
	for _, f := range fields {
		if f[1] != "" {
			out = append(out, otlpAttribute{f[0], otlpValue{f[1]}})
		}
	}
	return out
}
