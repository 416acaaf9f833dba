package api

import (
	"context"
	"encoding/json"
	"errors"
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

// feed is what a stream tells: lines after an id, and the tag of what they led to.
type feed struct {
	// appended is closed when the next line is written.
	appended func() <-chan struct{}
	// resume is the id to go on after, and why lines are missing where they are.
	resume func(ctx context.Context, id string) (after, missing string, err error)
	// next gives lines after an id to tell, at most a page of them, and the id of the last that was
	// looked at. more reports whether there may be others by now.
	next func(ctx context.Context, after string, tell func(id string, v any) error) (last string, more bool, err error)
	tag  func(ctx context.Context) (string, error)
}

// errGone is what a reader is that went away, or is too slow.
var errGone = errors.New("the reader went away")

// stream tells lines of the journal as they are written, and whenever the status is
// another one. It begins after the line of Last-Event-ID, and without one after the
// newest.
func (s *Socket) stream(w http.ResponseWriter, r *http.Request, p Peer) error {
	v := query{values: r.URL.Query()}
	app := v.text("app")
	last := &Line{} // that was told, or is gone on after
	f := feed{appended: s.calls.Appended, tag: func(ctx context.Context) (string, error) { return s.tagFor(ctx, p) }}
	f.resume = func(ctx context.Context, id string) (string, string, error) {
		after, missing, err := s.resume(ctx, id)
		if err != nil {
			return "", "", err
		}
		last = after
		return last.cursor(), missing, nil
	}
	f.next = func(ctx context.Context, _ string, tell func(id string, v any) error) (string, bool, error) {
		lines, err := s.calls.Lines(ctx, EventQuery{After: last.Seq, App: app, Limit: page})
		if err != nil {
			return "", false, err
		}
		for i := range lines {
			last = &lines[i]
			if !p.shows(&last.Event) {
				continue
			}
			hidden, err := s.hiddenNow(ctx, p)
			if err != nil {
				return "", false, err
			}
			line, err := scrubbed(hidden, p.plain(last.Event))
			if err != nil {
				return "", false, err
			}
			if err := tell(last.cursor(), line); err != nil {
				return "", false, err
			}
		}
		return last.cursor(), len(lines) == page, nil
	}
	return f.serve(w, r)
}

// serve tells what the feed has until the reader goes away.
func (f *feed) serve(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	appended := f.appended()
	after, missing, err := f.resume(ctx, r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	tag, err := f.tag(ctx)
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
		if out.event("reset", after, StreamReset{missing}) != nil {
			return nil
		}
	}
	if out.event("status", after, StreamStatus{tag}) != nil {
		return nil
	}
	look, here := time.NewTicker(statusEvery), time.NewTicker(commentEvery)
	defer look.Stop()
	defer here.Stop()
	for {
		for more := true; more; {
			after, more, err = f.next(ctx, after, out.line)
			if errors.Is(err, errGone) {
				return nil
			}
			if err != nil {
				return ended(ctx, err)
			}
		}
		if out.rc.Flush() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-appended:
			appended = f.appended()
		case <-here.C:
			if out.comment() != nil {
				return nil
			}
		case <-look.C:
			now, err := f.tag(ctx)
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

// line tells a line of a journal.
func (s *sse) line(id string, v any) error {
	if s.event("journal", id, v) != nil {
		return errGone
	}
	return nil
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
