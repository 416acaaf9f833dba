package pages

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

const (
	// lookEvery is how often the status is asked for, however many look.
	lookEvery = 250 * time.Millisecond
	// keptFor is how long a page is kept that has in it what no version tells.
	keptFor = 5 * time.Second
	// keptPages and keptBytes bound what is kept. More than that, and all is made anew.
	keptPages = 64
	keptBytes = 4 << 20
)

// seen is the status, and the version of all that pages are made of: the status, the journal
// and the day.
type seen struct {
	status  ring.Status
	version string
}

// looker asks for the status: once for all who look within a moment.
type looker struct {
	mu     sync.Mutex // guards what follows
	at     time.Time
	last   *seen
	asking *answer // that is under way; nil for none
}

// answer is what one question for the status brought.
type answer struct {
	ready chan struct{} // closed once what follows is set
	seen  *seen
	err   error
}

// now is the present status. Everybody with the scope read may see all of it. The first who
// comes asks for it. Who comes meanwhile waits for that answer, as long as its own context lasts.
func (l *looker) now(ctx context.Context, a Answers, now time.Time) (*seen, error) {
	l.mu.Lock()
	if since := now.Sub(l.at); l.last != nil && since >= 0 && since < lookEvery {
		defer l.mu.Unlock()
		return l.last, nil
	}
	if of := l.asking; of != nil {
		l.mu.Unlock()
		select {
		case <-of.ready:
			return of.seen, of.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	of := &answer{ready: make(chan struct{}), err: errNotMade}
	l.asking = of
	l.mu.Unlock()
	defer l.done(of, now)
	// It is for those who wait, too: it does not end when the first goes away.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeWithin)
	defer cancel()
	of.seen, of.err = seenNow(ctx, a, now)
	return of.seen, of.err
}

// done tells those who wait what came of it, also where the asking broke off.
func (l *looker) done(of *answer, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of.err == nil {
		l.at, l.last = now, of.seen
	}
	l.asking = nil
	close(of.ready)
}

func seenNow(ctx context.Context, a Answers, now time.Time) (*seen, error) {
	st, err := a.Status(ctx)
	if err != nil {
		return nil, err
	}
	var seq int64
	err = a.Events(ctx, api.EventQuery{Last: 1}, func(e ring.Event) error { seq = e.Seq; return nil })
	if err != nil {
		return nil, err
	}
	return &seen{status: st, version: fmt.Sprintf("%s %d %s", api.StatusTag(&st), seq, now.UTC().Format(time.DateOnly))}, nil
}

// keptPage is a page, made or being made.
type keptPage struct {
	ready chan struct{} // closed once what follows is set
	page  *made
	err   error
	until time.Time // zero is as long as the version
	// deflated is the main part for gzip, and ends at a whole byte.
	deflated []byte
}

// errNotMade is what those are told who wait for a page or a status whose making broke off.
var errNotMade = errors.New("cannot make this page")

// keeper has the pages of the present version.
type keeper struct {
	mu      sync.Mutex // guards what follows
	version string
	pages   map[string]*keptPage
	bytes   int
	most    int // bytes that are kept
}

// page is the page of a key: made once for all who ask for it, by the first of them. The others
// wait for it as long as their own context lasts.
func (k *keeper) page(ctx context.Context, version, key string, now time.Time, fill func() (*made, time.Duration, error)) *keptPage {
	k.mu.Lock()
	if k.version != version || len(k.pages) >= keptPages || k.bytes > k.most {
		k.version, k.pages, k.bytes = version, map[string]*keptPage{}, 0
	}
	if p := k.pages[key]; p != nil && (p.until.IsZero() || now.Before(p.until)) {
		k.mu.Unlock()
		select {
		case <-p.ready:
			return p
		case <-ctx.Done():
			return &keptPage{err: ctx.Err()}
		}
	}
	p := &keptPage{ready: make(chan struct{}), err: errNotMade}
	k.pages[key] = p
	k.mu.Unlock()
	defer close(p.ready)
	var fresh time.Duration
	p.page, fresh, p.err = fill()
	if p.err == nil {
		p.deflated = deflated(p.page.main)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case p.err != nil && k.pages[key] == p: // the next one tries again
		delete(k.pages, key)
	case p.err == nil:
		if fresh > 0 {
			p.until = now.Add(fresh)
		}
		k.bytes += len(p.page.main) + len(p.deflated)
	}
	return p
}

// deflated is a text packed by itself: it refers to nothing before it, is not the last part,
// and ends at a whole byte.
func deflated(text []byte) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed+4) // the level is one of those there are
	_, _ = w.Write(text)
	_ = w.Flush()
	return b.Bytes()
}

// stored are deflate's blocks of a text that is not packed.
func stored(out, text []byte, last bool) []byte {
	const most = 1<<16 - 1
	for {
		n := min(len(text), most)
		end := byte(0)
		if last && n == len(text) {
			end = 1
		}
		out = append(out, end)
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
		out = binary.LittleEndian.AppendUint16(out, ^uint16(n))
		out = append(out, text[:n]...)
		if text = text[n:]; len(text) == 0 {
			return out
		}
	}
}

// gzipHead is of a file without name and time.
var gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// gzipped puts a page together of a part that was packed once for all, and of what is around
// it for one viewer.
func gzipped(before, main, deflated, after []byte) []byte {
	out := append([]byte{}, gzipHead...)
	out = stored(out, before, false)
	out = append(out, deflated...)
	out = stored(out, after, true)
	sum := crc32.ChecksumIEEE(before)
	sum = crc32.Update(sum, crc32.IEEETable, main)
	sum = crc32.Update(sum, crc32.IEEETable, after)
	out = binary.LittleEndian.AppendUint32(out, sum)
	return binary.LittleEndian.AppendUint32(out, uint32(len(before)+len(main)+len(after))) //nolint:gosec // of the size, gzip has 32 bits
}

// send writes a page.
func send(w http.ResponseWriter, r *http.Request, p *keptPage, before, after []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Add("Vary", "Accept-Encoding")
	var body []byte
	if takesGzip(r) && p.deflated != nil {
		h.Set("Content-Encoding", "gzip")
		body = gzipped(before, p.page.main, p.deflated, after)
	} else {
		body = bytes.Join([][]byte{before, p.page.main, after}, nil)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.page.code)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a reader that went away is nobody's error
	}
}

func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.ReplaceAll(q, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
