package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

const (
	page  = 500                    // lines of the journal read at once
	frame = 200 * time.Millisecond // between two looks at the status of a follower
	// lineCap bounds what is kept of a line that does not end.
	lineCap = 16 << 10
	// searchedLines are how many of each instance are looked through for a text.
	searchedLines = 10_000
)

// lines writes newline-delimited JSON; each line is sent at once.
type lines struct {
	w  io.Writer
	rc *http.ResponseController
}

func newLines(w http.ResponseWriter) *lines {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	return &lines{w, http.NewResponseController(w)}
}

func (l *lines) put(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = l.w.Write(append(b, '\n'))
	return err
}

// send gets what was put on its way.
func (l *lines) send() error { return l.rc.Flush() }

// events streams the journal from a line on, and with follow every line that
// is written from then on, without a gap.
func (s *Socket) events(w http.ResponseWriter, r *http.Request, p Peer) error {
	v := query{values: r.URL.Query()}
	q := EventQuery{After: int64(v.number("after", 0)), App: v.text("app"), Last: v.number("last", 0), Limit: page}
	left, bounded, follow := v.number("limit", 0), v.text("limit") != "", v.yes("follow")
	if v.err != nil {
		return v.err
	}
	ctx, out := r.Context(), newLines(w)
	if q.Last == 0 {
		if err := s.tellTrimmed(ctx, w, q.After); err != nil {
			return err
		}
	}
	if q.Last > 0 && q.App == "" && p.apps.limited() { // of the newest lines none may be theirs
		newest, err := s.calls.Events(ctx, EventQuery{Last: 1, Limit: 1})
		if err != nil {
			return err
		}
		if len(newest) > 0 {
			q.After = newest[0].Seq
		}
	}
	for {
		appended := s.calls.Appended()
		if bounded {
			q.Limit = min(page, left)
		}
		events, err := s.eventsFor(ctx, p, q)
		if err != nil {
			return err
		}
		hidden, err := s.hiddenNow(ctx, p)
		if err != nil {
			return err
		}
		shown, err := scrubbed(hidden, p.lines(events))
		if err != nil {
			return err
		}
		for _, e := range shown {
			if out.put(e) != nil {
				return nil // the reader went away
			}
		}
		if len(events) > 0 {
			q.After = max(q.After, events[len(events)-1].Seq)
		}
		q.Last, left = 0, left-len(shown)
		if bounded && left <= 0 {
			return nil
		}
		if len(events) == q.Limit {
			continue
		}
		if !follow {
			return nil
		}
		if out.send() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-appended:
		}
	}
}

// firstLine is the header that says which line is the first, where lines before it were
// asked for.
const firstLine = "Gitring-First-Line"

func (s *Socket) tellTrimmed(ctx context.Context, w http.ResponseWriter, after int64) error {
	first, err := s.calls.Events(ctx, EventQuery{After: after, Limit: 1})
	if err == nil && len(first) > 0 && first[0].Seq > after+1 {
		w.Header().Set(firstLine, strconv.FormatInt(first[0].Seq, 10))
	}
	return err
}

// sync pokes; with wait it looks, and streams the status whenever it changed
// until nothing of the source is under way.
func (s *Socket) sync(w http.ResponseWriter, r *http.Request, p Peer) error {
	q := query{values: r.URL.Query()}
	source, wait := q.text("source"), q.yes("wait")
	if q.err != nil {
		return q.err
	}
	s.log.Debug("asked to sync", "source", source, "actor", p.Actor())
	if !wait {
		if err := s.calls.Poke(r.Context(), source); err != nil {
			return err
		}
		return writeJSON(w, struct{}{})
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	looked := make(chan error, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { looked <- s.calls.Look(ctx, source) })
	return s.follow(ctx, w, p, source, looked)
}

// follow is the stream of sync. The answer begins with the first status, so
// that an unknown source, known at once, is still an error of its own.
func (s *Socket) follow(ctx context.Context, w http.ResponseWriter, p Peer, source string, looked <-chan error) error {
	tick := time.NewTicker(frame)
	defer tick.Stop()
	out := newLines(w)
	var last []byte
	done := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-looked:
			if err != nil {
				return failLine(out, w, err)
			}
			done, looked = true, nil
		case <-tick.C:
		}
		st, err := s.calls.Status(ctx)
		if err != nil {
			return failLine(out, w, err)
		}
		if now := face(st); !bytes.Equal(now, last) {
			last = now
			if st, err = envNamed(s, p, st); err != nil {
				return failLine(out, w, err)
			}
			if out.put(SyncLine{Status: &st}) != nil || out.send() != nil {
				return nil
			}
		}
		if done && settled(&st, source) {
			_ = out.put(SyncLine{Settled: true})
			return nil
		}
	}
}

// failLine ends a stream with an error: as its last line once it has begun.
func failLine(out *lines, w http.ResponseWriter, err error) error {
	if a, ok := w.(*answerWriter); ok && !a.begun {
		return err
	}
	_ = out.put(SyncLine{Error: asError(err)})
	return nil
}

// face is the status without its time, to tell whether anything changed.
func face(st ring.Status) []byte {
	st.At = time.Time{}
	b, _ := json.Marshal(st)
	return b
}

// settled reports whether a source, or every one for "", rests: nothing is staged or
// applied any more, also not by an undo, for which the source is held. Whether that is good is the status's to say.
func settled(st *ring.Status, source string) bool {
	for _, src := range st.Sources {
		if source != "" && src.Name != source {
			continue
		}
		if src.Sync == ring.SyncStaging || src.Sync == ring.SyncApplying || src.Undoing(st.Overrides) {
			return false
		}
	}
	return true
}

// logs streams what instances print, each line with the instance's name
// before it.
func (s *Socket) logs(w http.ResponseWriter, r *http.Request, p Peer) error {
	v := query{values: r.URL.Query()}
	q := LogQuery{
		App: v.text("app"), Service: v.text("service"), Follow: v.yes("follow"),
		Tail: v.number("tail", -1), Since: v.moment("since"), Timestamps: v.yes("timestamps"),
	}
	text := v.text("q")
	if text != "" && (q.Tail < 0 || q.Tail > searchedLines) {
		q.Tail = searchedLines
	}
	if v.err != nil {
		return v.err
	}
	if q.App == "" {
		return Usage("", "whose logs? an app is required")
	}
	if err := s.knows(r.Context(), p, q.App, q.Service); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	shared := &sharedWriter{w: w, rc: http.NewResponseController(w), gone: cancel}
	err := s.calls.Logs(ctx, q, func(instance string) io.WriteCloser {
		return &lineWriter{to: shared, prefix: instance + " | ", text: []byte(text)}
	})
	if ctx.Err() != nil {
		return nil // the reader went away, or the daemon ends
	}
	return err
}

// sharedWriter takes whole lines of many instances and sends them at once.
type sharedWriter struct {
	rc   *http.ResponseController
	gone context.CancelFunc
	mu   sync.Mutex
	w    io.Writer
}

func (s *sharedWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.w.Write(b)
	if err == nil {
		err = s.rc.Flush()
	}
	if err != nil {
		s.gone()
	}
	return n, err
}

// lineWriter puts a prefix before every line of one instance. It is used by
// one goroutine. What is left without an end is written at Close.
type lineWriter struct {
	to     io.Writer
	prefix string
	text   []byte // that a line has to hold; none is any
	rest   []byte
}

// wanted reports whether a line holds what is looked for.
func (l *lineWriter) wanted(line []byte) bool { return bytes.Contains(line, l.text) }

func (l *lineWriter) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	var out []byte
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			break
		}
		if l.wanted(l.rest[:i]) {
			out = append(append(out, l.prefix...), l.rest[:i+1]...)
		}
		l.rest = l.rest[i+1:]
	}
	if len(l.rest) >= lineCap {
		if l.wanted(l.rest) {
			out = append(append(append(out, l.prefix...), l.rest...), '\n')
		}
		l.rest = nil
	}
	if len(out) == 0 {
		return len(b), nil
	}
	if _, err := l.to.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (l *lineWriter) Close() error {
	if len(l.rest) == 0 || !l.wanted(l.rest) {
		return nil
	}
	_, err := l.to.Write(append(append([]byte(l.prefix), l.rest...), '\n'))
	l.rest = nil
	return err
}
