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

func (s *stalling) count() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.calls))
}

// What connections and requests cost, as measured by TestSlowClientsCostLittle. What is
// above the budget (budgetOf) makes room first, or waits in the backlog.
const (
	headCost     = 6 << 10
	connCost     = 17 << 10
	callCost     = 56 << 10
	upgradedCost = 40 << 10
	slowAtLeast  = time.Second // for those who make room for others
)

func (f *Front) cost() int64 {
	waiting := f.waiting.Load()
	return waiting*headCost + (f.conns.Load()-waiting)*connCost + f.stalling.count()*callCost + f.upgraded.Load()*upgradedCost
}

// makeRoom ends what is missed least, and reports whether there was any: an idle connection,
// a client that does not move, a head that does not come.
func (f *Front) makeRoom() bool {
	return f.idle.closeOldest() || f.endSlowest(time.Now()) || f.idle.closeSlowHead(time.Now())
}

// endSlowest ends the request whose client has not moved for longest.
func (f *Front) endSlowest(now time.Time) bool {
	f.stalling.mu.Lock()
	var slowest *call
	at := now.Add(-slowAtLeast).UnixNano()
	for c := range f.stalling.calls {
		for _, since := range []int64{c.writing.Load(), c.reading.Load()} {
			if since != 0 && since < at {
				slowest, at = c, since
			}
		}
	}
	delete(f.stalling.calls, slowest)
	f.stalling.mu.Unlock()
	if slowest != nil {
		slowest.end(errStalled)
	}
	return slowest != nil
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
	heads map[net.Conn]time.Time // those of which a head is awaited, since when
}

// note is told what the server does with a connection.
func (i *idleConns) note(c net.Conn, state http.ConnState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.since == nil {
		i.since, i.heads = map[net.Conn]time.Time{}, map[net.Conn]time.Time{}
	}
	delete(i.since, c)
	switch state {
	case http.StateIdle:
		i.since[c] = time.Now()
		delete(i.heads, c)
	case http.StateNew, http.StateActive:
		if _, ok := i.heads[c]; !ok {
			i.heads[c] = time.Now()
		}
	default:
		delete(i.heads, c)
	}
}

// gotHead is told that the head came.
func (i *idleConns) gotHead(c net.Conn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.heads, c)
}

// closeSlowHead closes the connection whose head is awaited for longest.
func (i *idleConns) closeSlowHead(now time.Time) bool {
	i.mu.Lock()
	var slowest net.Conn
	at := now.Add(-slowAtLeast)
	for c, since := range i.heads {
		if since.Before(at) {
			slowest, at = c, since
		}
	}
	delete(i.heads, slowest)
	i.mu.Unlock()
	if slowest != nil {
		_ = slowest.Close()
	}
	return slowest != nil
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
