package daemon

import (
	"sync"
	"time"

	"github.com/gitring/gitring/runtime"
)

// noFronts is why this host can run no front: the build holds none, or what the engine last
// told. That changes when the engine is started anew, so it is asked for once in a while.
type noFronts struct {
	build string                 // why the build holds none; "" where it holds one
	ask   func() (string, error) // nil where there is no engine

	mu    sync.Mutex
	why   string    // guarded by mu
	again time.Time // guarded by mu: when to ask again
}

// noFrontHere is told of a build that went without scripts/front.sh, or for an architecture
// that has none. Without that word a service would lose its port to a front that never comes.
const noFrontHere = "this build of gitring holds no front; make build adds it"

func noFrontIn(b runtime.FrontBuild) string {
	if b.Sum == "" {
		return noFrontHere
	}
	return ""
}

const (
	noFrontsEvery = 10 * time.Minute
	noFrontsAgain = 10 * time.Second // after the engine gave no answer
)

func (n *noFronts) said(now time.Time) string {
	if n.build != "" {
		return n.build
	}
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
