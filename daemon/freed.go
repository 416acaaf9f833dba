package daemon

import (
	"context"
	"runtime/debug"
	"time"
)

// freedEvery is how often memory goes back to the system: one collection of what a hundred apps
// need takes some 10 ms of CPU.
const freedEvery = time.Minute

// freeMemory gives back what nothing needs any more. The runtime would keep room for as much
// garbage as there is that lives, and a daemon mostly waits.
func freeMemory(ctx context.Context) error {
	t := time.NewTicker(freedEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			debug.FreeOSMemory()
		}
	}
}
