package api

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// Bounds of a report: packed, as it comes, and unpacked.
const (
	ReportPacked = 1 << 20
	ReportLimit  = 8 << 20
)

const (
	// bodiesAtOnce is how many reports are on their way at the same time, each of another token. A
	// host that sends slowly delays none of the others, until as many do.
	bodiesAtOnce = 16
	// reportsAtOnce is how many are read at the same time: each may take its limit of memory.
	reportsAtOnce = 2
)

// HubCalls is what a hub answers with. Every field is required. An error may be an *Error.
type HubCalls struct {
	// Report takes what a host tells by a token, and gives the line that the host is to go on after.
	// Where it returns nil, what it took is on disk.
	Report func(ctx context.Context, token Token, r *ring.HostReport) (ring.Cursor, error)
	// Reported is told what came of each report of a token, also of one that Report never saw.
	Reported func(token Token, err error)
	// Fleet are all hosts, what is wrong first.
	Fleet func(ctx context.Context) ([]HostNow, error)
	// Tag is the same as long as Fleet, or one host of it, says the same; "" is all hosts.
	Tag func(ctx context.Context, host string) (string, error)
	// Lines are at most limit of those told of a host, or of all for "", after a number of the hub.
	// Missing is why some are not there any more; "" where all are.
	Lines func(after int64, host string, limit int) (lines []HostEvent, last int64, missing string)
	// Appended is closed when the next line is written.
	Appended func() <-chan struct{}
	// Process tells the numbers of Lines of this process from those of another: 8 hex digits.
	Process string
	// Metrics serves the page of metrics.
	Metrics http.Handler
}

// HostNow is a row of a hub: what one token told of its host last. Two tokens for one host are two.
type HostNow struct {
	// Key is its name in addresses: the host's, or with ~ and the token's id where others have it too.
	Key   string `json:"key"`
	Host  string `json:"host"`
	Token string `json:"token"` // the id, by which it is told from others
	// Gitring is the release that the host runs.
	Gitring string `json:"gitring,omitempty"`
	// Seen is when its last report came, by the hub's clock; Silent reports whether that is too long ago.
	Seen   time.Time `json:"seen"`
	Silent bool      `json:"silent"`
	// Word is the state in a word, the most wrong of the host, and Says why. Of a silent host they are
	// what it was: nobody knows what it is.
	Word  string    `json:"word"`
	Says  string    `json:"says,omitempty"`
	Since time.Time `json:"since"` // the hub's clock: since when it has said this word of this commit
	// Commit is of the source that Word is of, or of the first.
	Commit  ring.SHA     `json:"commit,omitempty"`
	Subject string       `json:"subject,omitempty"`
	Sources []HostSource `json:"sources"`
	// Told is what else is to be known of the row: a wrong clock, another row of the same host, lines
	// that are missing.
	Told []string `json:"told,omitempty"`
	// Ahead is by how many seconds the host's clock is ahead of the hub's; negative is behind.
	Ahead float64 `json:"ahead_seconds"`
}

// HostSource is a source of a host.
type HostSource struct {
	Name    string    `json:"name"`
	Branch  string    `json:"branch"`
	Sync    ring.Sync `json:"sync"`
	Commit  ring.SHA  `json:"commit,omitempty"`
	Subject string    `json:"subject,omitempty"`
	Reason  string    `json:"reason,omitempty"`
}

// HostEvent is a line of a host's journal as a hub tells it: its number at the hub is in the id.
type HostEvent struct {
	Number int64           `json:"-"`
	Host   string          `json:"host"`
	Key    string          `json:"key"`
	Event  json.RawMessage `json:"event"`
}

// reportPath is where hosts report. Each does so once a minute, which is no news for the log.
const reportPath = "/v1/report"

type hub struct {
	calls  HubCalls
	bodies chan struct{} // taken by each report that comes
	room   chan struct{} // taken by each report that is read

	mu     sync.Mutex      // guards what follows
	tokens map[string]bool // ids of those whose report is under way
}

// NewHub is what can be asked of a hub. Nothing in it acts on a host, and nothing reaches one.
func NewHub(calls HubCalls) *Table {
	h := &hub{calls: calls, bodies: make(chan struct{}, bodiesAtOnce), room: make(chan struct{}, reportsAtOnce), tokens: map[string]bool{}}
	return &Table{within: bodyWithin, most: ReportPacked, routes: []route{
		{"POST", reportPath, mayRead, ScopeReport, takesItself, false, h.report},
		{"GET", "/v1/fleet", mayRead, ScopeRead, 0, false, h.fleet},
		{"GET", "/v1/stream", mayRead, ScopeRead, 0, true, h.stream},
		{"GET", "/v1/openapi.json", mayRead, ScopeRead, 0, false, h.openAPI},
		{"GET", metricsPath, mayRead, ScopeMetrics, 0, false, h.metrics},
	}}
}

// report takes one. The answer is a cursor and nothing else.
func (h *hub) report(w http.ResponseWriter, r *http.Request, p Peer) error {
	at, err := h.take(w, r, p)
	h.calls.Reported(p.token, err)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, at.String()) // a host that went away asks again
	return nil
}

// take reads no byte of a report before it has its place, and a token has one: so the reports of one
// host wait for each other, and not the other hosts for them.
func (h *hub) take(w http.ResponseWriter, r *http.Request, p Peer) (ring.Cursor, error) {
	if !h.begin(p.token.ID) {
		return ring.Cursor{}, tooMany(time.Second, "a report of this token is under way")
	}
	defer h.end(p.token.ID)
	leave, err := enter(r.Context(), h.bodies)
	if err != nil {
		return ring.Cursor{}, err
	}
	err = takeBody(w, r, ReportPacked, bodyWithin)
	leave()
	if err != nil {
		return ring.Cursor{}, err
	}
	if leave, err = enter(r.Context(), h.room); err != nil {
		return ring.Cursor{}, err
	}
	defer leave()
	in, err := readReport(r)
	if err != nil {
		return ring.Cursor{}, err
	}
	if in.Host != p.scopes.Reports() {
		return ring.Cursor{}, Denied("make a token on the hub with --scope report:<host>, of the name that host: has in the host's configuration", "this token reports for %s alone", p.scopes.Reports())
	}
	return h.calls.Report(r.Context(), p.token, in)
}

// begin reports whether no report of a token is under way, and has one be.
func (h *hub) begin(token string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tokens[token] {
		return false
	}
	h.tokens[token] = true
	return true
}

func (h *hub) end(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tokens, token)
}

// enter waits for a place among those of a channel.
func enter(ctx context.Context, places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, Usage("", "the host went away")
	}
}

// readReport unpacks and reads a body. What a newer host says besides is left out.
func readReport(r *http.Request) (*ring.HostReport, error) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, Usage("", "cannot unpack the report")
		}
		body = z
	}
	raw, err := io.ReadAll(io.LimitReader(body, ReportLimit+1))
	if err != nil {
		return nil, Usage("", "cannot unpack the report")
	}
	if len(raw) > ReportLimit {
		return nil, &Error{Code: CodeUsage, Message: "the report is too large", Status: http.StatusRequestEntityTooLarge}
	}
	in := &ring.HostReport{}
	if json.Unmarshal(raw, in) != nil {
		return nil, Usage("", "cannot read the report")
	}
	return in, nil
}

func (h *hub) fleet(w http.ResponseWriter, r *http.Request, _ Peer) error {
	all, err := h.calls.Fleet(r.Context())
	if err != nil {
		return err
	}
	if all == nil {
		all = []HostNow{}
	}
	return writeJSON(w, all)
}

func (h *hub) metrics(w http.ResponseWriter, r *http.Request, _ Peer) error {
	h.calls.Metrics.ServeHTTP(w, r)
	return nil
}

// stream tells lines of all hosts, or of one, as they come. Its ids are of this process: after a
// restart of the hub a reader is told to ask for all of it anew.
func (h *hub) stream(w http.ResponseWriter, r *http.Request, _ Peer) error {
	v := query{values: r.URL.Query()}
	host := v.text("host")
	var at int64
	f := feed{appended: h.calls.Appended, tag: func(ctx context.Context) (string, error) { return h.calls.Tag(ctx, host) }}
	id := func() string { return ring.Cursor{Seq: at + 1, Hash: h.calls.Process}.String() } // no number is 0
	f.resume = func(_ context.Context, given string) (string, string, error) {
		_, newest, _ := h.calls.Lines(0, host, 0)
		c, ok := ring.ParseCursor(given)
		missing := ""
		switch {
		case given == "":
			at = newest
		case !ok:
			at, missing = newest, "the id is none of this stream"
		case c.Hash != h.calls.Process || c.Seq-1 > newest:
			at, missing = newest, "the hub was started anew"
		default:
			if _, _, missing = h.calls.Lines(c.Seq-1, host, 1); missing == "" {
				at = c.Seq - 1
			} else {
				at = newest
			}
		}
		return id(), missing, nil
	}
	f.next = func(_ context.Context, _ string, tell func(id string, v any) error) (string, bool, error) {
		lines, last, missing := h.calls.Lines(at, host, page)
		if missing != "" { // more came than are kept, while this reader was slow
			return "", false, errGone
		}
		for i := range lines {
			at = lines[i].Number
			if err := tell(id(), lines[i]); err != nil {
				return "", false, err
			}
		}
		more := len(lines) == page
		if !more {
			at = last
		}
		return id(), more, nil
	}
	return f.serve(w, r)
}

// Full is the answer of a hub that has no room: the host sends it again.
func Full(format string, args ...any) *Error {
	e := Away("", format, args...)
	e.Status = http.StatusInsufficientStorage
	return e
}
