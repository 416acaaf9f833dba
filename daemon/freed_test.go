package daemon

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A daemon that waits keeps no room for garbage: it collects each minute, and what is free then
// goes back.
func TestMemoryGoesBackEachMinute(t *testing.T) {
	forced := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- freeMemory(ctx) }()
		time.Sleep(freedEvery / 2)
		before := forced()
		for n := uint32(1); n <= 3; n++ {
			time.Sleep(freedEvery)
			synctest.Wait()
			require.GreaterOrEqual(t, forced()-before, n)
		}
		cancel()
		require.NoError(t, <-ended)
	})
}
