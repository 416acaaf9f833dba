package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

const (
	// statusEvery is how often a stream tells that the status is another one, at most.
	statusEvery = 500 * time.Millisecond
	// commentEvery is how often a stream says that it is there.
	commentEvery = 15 * time.Second
	// reconnectAfter is when a browser asks again for a stream that was cut. Without it each
	// waits as it likes, some for 5 s, while a daemon is back within one.
	reconnectAfter = time.Second
)

// Line is a line of the journal, and the beginning of its hash, of 8 hex digits: another
// database has another line under the same number.
type Line struct {
	ring.Event
	Hash string `json:"-"`
}

// cursor names a line to the one who resumes after it.
func (l *Line) cursor() string { return fmt.Sprintf("%d.%s", l.Seq, l.Hash) }

// noLine is the cursor before the first line.
const noLine = "0.00000000"

// StreamStatus is what a status event of GET /v1/stream carries.
type StreamStatus struct {
	ETag string `json:"etag"`
}

// StreamReset is what a reset event carries: lines are missing, so all has to be asked for
// anew.
type StreamReset struct {
	Reason string `json:"reason"`
}

// sse is an answer of server-sent events.
type sse struct {
	w  io.Writer
	rc *http.ResponseController
}

func (s *sse) event(kind, id string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var out strings.Builder
	out.WriteString("event: " + kind + "\n")
	if id != "" {
		out.WriteString("id: " + id + "\n")
	}
	out.WriteString("data: " + string(b) + "\n\n") // JSON has no line break
	_, err = io.WriteString(s.w, out.String())
	return err
}

func (s *sse) reconnect(after time.Duration) error {
	_, err := fmt.Fprintf(s.w, "retry: %d\n\n", after.Milliseconds())
	return err
}

func (s *sse) comment() error {
	_, err := io.WriteString(s.w, ": here\n\n")
	return err
}

// stream tells lines of the journal as they are written, and whenever the status is
// another one. It begins after the line of Last-Event-ID, and without one after the
// newest.
func (s *Socket) stream(w http.ResponseWriter, r *http.Request, p Peer) error {
	v := query{values: r.URL.Query()}
	app := v.text("app")
	ctx := r.Context()
	appended := s.calls.Appended()
	after, missing, err := s.resume(ctx, r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	tag, err := s.tagFor(ctx, p)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy's
	out := &sse{w: w, rc: http.NewResponseController(w)}
	if out.reconnect(reconnectAfter) != nil {
		return nil
	}
	if missing != "" {
		if out.event("reset", after.cursor(), StreamReset{missing}) != nil {
			return nil
		}
	}
	if out.event("status", after.cursor(), StreamStatus{tag}) != nil {
		return nil
	}
	look, here := time.NewTicker(statusEvery), time.NewTicker(commentEvery)
	defer look.Stop()
	defer here.Stop()
	for {
		for {
			lines, err := s.calls.Lines(ctx, EventQuery{After: after.Seq, App: app, Limit: page})
			if err != nil {
				return ended(ctx, err)
			}
			for i := range lines {
				after = &lines[i]
				if !p.shows(&after.Event) {
					continue
				}
				hidden, err := s.hiddenNow(ctx, p)
				if err != nil {
					return ended(ctx, err)
				}
				line, err := scrubbed(hidden, p.plain(after.Event))
				if err != nil {
					return err
				}
				if out.event("journal", after.cursor(), line) != nil {
					return nil // the reader went away, or is too slow
				}
			}
			if len(lines) < page {
				break
			}
		}
		if out.rc.Flush() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-appended:
			appended = s.calls.Appended()
		case <-here.C:
			if out.comment() != nil {
				return nil
			}
		case <-look.C:
			now, err := s.tagFor(ctx, p)
			if err != nil {
				return ended(ctx, err)
			}
			if now != tag {
				tag = now
				if out.event("status", "", StreamStatus{tag}) != nil {
					return nil
				}
			}
		}
	}
}

// ended is no error where the reader went away, or the daemon ends.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// resume is the line to go on after, and why lines are missing where they are.
func (s *Socket) resume(ctx context.Context, id string) (after *Line, missing string, err error) {
	newest := &Line{Hash: "00000000"}
	last, err := s.calls.Lines(ctx, EventQuery{Last: 1})
	if err != nil {
		return nil, "", err
	}
	if len(last) > 0 {
		newest = &last[0]
	}
	if id == "" || id == newest.cursor() {
		return newest, "", nil
	}
	number, hash, _ := strings.Cut(id, ".")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 0 {
		return newest, "the id is none of this stream", nil
	}
	if id == noLine {
		first, err := s.calls.Lines(ctx, EventQuery{Limit: 1})
		if err != nil || len(first) > 0 && first[0].Seq > 1 {
			return newest, "lines after it have been trimmed", err
		}
		return &Line{Hash: hash}, "", nil
	}
	lines, err := s.calls.Lines(ctx, EventQuery{After: seq - 1, Limit: 1})
	switch {
	case err != nil:
		return nil, "", err
	case len(lines) == 0 || lines[0].Seq != seq:
		return newest, "line " + number + " is not there any more", nil
	case lines[0].Hash != hash:
		return newest, "line " + number + " is another one", nil
	}
	return &lines[0], "", nil
}

// tags is the ETag of the status, worked out once for all who look within a moment.
type tags struct {
	mu  sync.Mutex // guards what follows
	at  time.Time
	tag string
}

func (t *tags) now(ctx context.Context, status func(context.Context) (ring.Status, error)) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if since := time.Since(t.at); t.tag != "" && since >= 0 && since < statusEvery/2 {
		return t.tag, nil
	}
	st, err := status(ctx)
	if err != nil {
		return "", err
	}
	t.tag, t.at = statusTag(&st), time.Now()
	return t.tag, nil
}
