package daemon

import (
	"sync"
	"time"
)

// noFronts is why the engine can run no front, as it last told. It changes when the engine
// is started anew, so it is asked for once in a while.
type noFronts struct {
	ask func() (string, error) // nil where there is no engine

	mu    sync.Mutex
	why   string    // guarded by mu
	again time.Time // guarded by mu: when to ask again
}

const (
	noFrontsEvery = 10 * time.Minute
	noFrontsAgain = 10 * time.Second // after the engine gave no answer
)

func (n *noFronts) said(now time.Time) string {
	n.mu.Lock()
	why, due := n.why, !now.Before(n.again)
	if due {
		n.again = now.Add(noFrontsAgain)
	}
	n.mu.Unlock()
	if !due || n.ask == nil {
		return why
	}
	told, err := n.ask()
	if err != nil {
		return why
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.why, n.again = told, now.Add(noFrontsEvery)
	return told
}
