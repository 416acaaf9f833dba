package proxy

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// stalling are the requests of which a client might neither send nor read on.
type stalling struct {
	mu    sync.Mutex // guards what follows
	calls map[*call]bool
}

func (s *stalling) add(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[*call]bool{}
	}
	s.calls[c] = true
}

func (s *stalling) remove(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c)
}

// stallLoop ends the requests of clients that do not move.
func (f *Front) stallLoop(ctx context.Context) {
	tick := time.NewTicker(stallLimit / 20)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.endStalled(time.Now(), stallLimit)
		}
	}
}

func (f *Front) endStalled(now time.Time, limit time.Duration) {
	f.stalling.mu.Lock()
	var ended []*call
	for c := range f.stalling.calls {
		if c.stalled(now, limit) {
			ended = append(ended, c)
			delete(f.stalling.calls, c)
		}
	}
	f.stalling.mu.Unlock()
	for _, c := range ended {
		c.end(errStalled)
	}
}

// stalled reports whether a client has not moved for so long. A body counts until the answer
// begins: a stream that goes both ways may be silent.
func (c *call) stalled(now time.Time, limit time.Duration) bool {
	before := now.Add(-limit).UnixNano()
	if at := c.writing.Load(); at != 0 && at < before {
		return true
	}
	at := c.reading.Load()
	return at != 0 && at < before && !c.sent.Load() && !strings.HasPrefix(c.in.Header.Get("Content-Type"), "application/grpc")
}

// idleConns are kept-alive connections without a request, oldest first.
type idleConns struct {
	mu    sync.Mutex // guards what follows
	since map[net.Conn]time.Time
}

// note is told what the server does with a connection.
func (i *idleConns) note(c net.Conn, state http.ConnState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if state != http.StateIdle {
		delete(i.since, c)
		return
	}
	if i.since == nil {
		i.since = map[net.Conn]time.Time{}
	}
	i.since[c] = time.Now()
}

// closeOldest makes room where there is none, and reports whether it could.
func (i *idleConns) closeOldest() bool {
	i.mu.Lock()
	var oldest net.Conn
	for c, at := range i.since {
		if oldest == nil || at.Before(i.since[oldest]) {
			oldest = c
		}
	}
	delete(i.since, oldest)
	i.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return oldest != nil
}

// buffers lend what answers are copied through.
type buffers struct{}

const copyBuffer = 16 << 10

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, copyBuffer); return &b }}

func (buffers) Get() []byte { return *copyBuffers.Get().(*[]byte) }

func (buffers) Put(b []byte) {
	if cap(b) == copyBuffer {
		copyBuffers.Put(&b)
	}
}
