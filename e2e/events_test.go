package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// engineEvent is one line of the engine's own journal: the oracle for what was
// done to containers, in which order and when.
type engineEvent struct {
	Type, Action string
	Actor        struct {
		ID         string
		Attributes map[string]string
	}
	TimeNano int64
}

func (e engineEvent) at() time.Time   { return time.Unix(0, e.TimeNano) }
func (e engineEvent) service() string { return e.Actor.Attributes["gitring.service"] }

// eventLog listens to the engine about one host until the test ends.
type eventLog struct {
	mu   sync.Mutex // guards what follows
	list []engineEvent
	more chan struct{} // closed and replaced with each event
}

// listen returns when the engine has begun to tell.
func (e *engine) listen(t *testing.T, host string) *eventLog {
	t.Helper()
	l := &eventLog{more: make(chan struct{})}
	q := labelled("gitring.host=" + host)
	q.Del("all")
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "GET", "http://engine/v1.41/events?"+q.Encode(), nil)
	require.NoError(t, err)
	res, err := e.http.Do(r)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d := json.NewDecoder(res.Body)
		for {
			var ev engineEvent
			if d.Decode(&ev) != nil {
				return
			}
			l.add(ev)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = res.Body.Close()
	})
	return l
}

func (l *eventLog) add(e engineEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e)
	close(l.more)
	l.more = make(chan struct{})
}

// mark is how many events there were, to ask for those after.
func (l *eventLog) mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}

// after are the container events since a mark with one of the actions, all for
// none.
func (l *eventLog) after(mark int, actions ...string) []engineEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []engineEvent
	for _, e := range l.list[mark:] {
		if e.Type == "container" && (len(actions) == 0 || slices.Contains(actions, e.Action)) {
			out = append(out, e)
		}
	}
	return out
}

// wait returns when n events came after a mark, or when the time is over.
func (l *eventLog) wait(mark, n int, atMost time.Duration) {
	over := time.After(atMost)
	for {
		l.mu.Lock()
		have, more := len(l.list)-mark, l.more
		l.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-more:
		case <-over:
			return
		}
	}
}

// first waits for the first event after a mark that is wanted.
func (l *eventLog) first(t *testing.T, mark int, want func(engineEvent) bool) engineEvent {
	t.Helper()
	over := time.After(patience)
	for {
		l.mu.Lock()
		i := slices.IndexFunc(l.list[mark:], want)
		more := l.more
		if i >= 0 {
			defer l.mu.Unlock()
			return l.list[mark+i]
		}
		l.mu.Unlock()
		select {
		case <-more:
		case <-over:
			require.FailNow(t, "the engine never told what the test waits for")
		}
	}
}
