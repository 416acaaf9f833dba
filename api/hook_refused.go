package api

import (
	"sync"
	"time"
)

// refusedEvery is how often the log tells of a source that a webhook was not taken. Whoever
// sets one up wants to know why; whoever forges a thousand shall not fill the disk.
const refusedEvery = time.Minute

// refused remembers when each source was told of last.
type refused struct {
	mu   sync.Mutex // guards what follows
	told map[string]time.Time
}

// tell says whether it is time for a line. Sources are those of the configuration, so
// there are never many.
func (r *refused) tell(source string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.told[source]; ok && now.Sub(at) < refusedEvery && !now.Before(at) {
		return false
	}
	if r.told == nil {
		r.told = map[string]time.Time{}
	}
	r.told[source] = now
	return true
}
