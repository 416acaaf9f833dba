package admission

import (
	"sync"
	"time"
)

// EngineRuntimes are what the engine runs containers with. They change when the
// engine is started anew, so they are asked for once in a while.
type EngineRuntimes struct {
	Ask func() (byDefault string, nvidia []string, err error) // nil knows none

	mu        sync.Mutex
	byDefault string    // guarded by mu
	nvidia    []string  // guarded by mu
	again     time.Time // guarded by mu: when to ask again
}

const (
	runtimesEvery  = 10 * time.Minute
	RuntimesWithin = 5 * time.Second
	runtimesAgain  = 10 * time.Second // after the engine gave no answer
)

// known are the engine's runtimes, as last told; nothing where there is no engine to ask.
func (r *EngineRuntimes) known(now time.Time) (byDefault string, nvidia []string) {
	if r == nil || r.Ask == nil {
		return "", nil
	}
	r.mu.Lock()
	due := !now.Before(r.again)
	if due {
		r.again = now.Add(runtimesAgain)
	}
	byDefault, nvidia = r.byDefault, r.nvidia
	r.mu.Unlock()
	if !due {
		return byDefault, nvidia
	}
	told, theirs, err := r.Ask()
	if err != nil {
		return byDefault, nvidia
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byDefault, r.nvidia, r.again = told, theirs, now.Add(runtimesEvery)
	return told, theirs
}
