package runtime

import (
	"context"
	"maps"
	"sync"
	"time"
)

// lately is what the engine said of images moments ago. A commit may ask a hundred times what
// one name means, and most of these steps wait for their turn: what the engine said since they
// were asked answers them all. Nobody gets an answer that is older than the question, and what
// was not there is asked for again.
type lately struct {
	mu   sync.Mutex
	said map[string]saidImage // guarded by mu: by name
}

// saidImage is what the engine said when it was asked at a moment.
type saidImage struct {
	at   time.Time
	have onHost
}

// latelyServes is how long an answer serves at most: a question may wait much longer.
const latelyServes = time.Second

// find is what was said of a name since a moment; false for nothing.
func (l *lately) find(name string, since *time.Time) (onHost, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.said, func(_ string, s saidImage) bool { return time.Since(s.at) > latelyServes })
	s, ok := l.said[name]
	return s.have, ok && since != nil && !s.at.Before(*since)
}

// keep remembers what was said of a name that was asked about at a moment.
func (l *lately) keep(name string, s saidImage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said == nil {
		l.said = map[string]saidImage{}
	}
	l.said[name] = s
}

// forget has everything asked anew: an image came or went by our own hand.
func (l *lately) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.said)
}

// saidSince is onHost, for a question that was asked at since and may have waited: nil is now.
func (d *Docker) saidSince(ctx context.Context, e engine, name string, since *time.Time) (onHost, error) {
	if have, ok := d.lately.find(name, since); ok {
		return have, nil
	}
	at := time.Now()
	have, err := d.onHost(ctx, e, name)
	if err == nil && have.id != "" {
		d.lately.keep(name, saidImage{at, have})
	}
	return have, err
}
