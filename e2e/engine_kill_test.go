package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnEngineKilledAtAnyMomentConverges kills an engine of its own, by SIGKILL and
// every third time as a host that goes down does, in the middle of good and bad rollouts;
// every fourth time gitring dies with it.
func TestAnEngineKilledAtAnyMomentConverges(t *testing.T) {
	t.Parallel()
	kills, r := amount(t, "ENGINE_KILLS", 3, 20), dice(t)
	e := newEngine(t)
	// An instance that the engine takes along is no word on its version.
	f := newFleet(hostOn(t, e.engine), rollout(obj{"failure_threshold": 1000}))
	// An engine that is killed while it starts a container may leave half of it behind: it
	// refuses to start it ever after ("task already exists"), so that version of db is
	// given up, and an address that it takes for free is not.
	f.new = true
	f.subnets[f.app] = fmt.Sprintf("10.249.%d.0/24", os.Getpid()%250)
	f.begin()
	still := f.one("still").ID
	for i := range kills {
		mark := f.events.mark()
		if r.IntN(4) == 0 {
			f.bad()
		} else {
			f.push(1 + r.IntN(2))
		}
		f.somewhere(r, mark, 20)
		sig := syscall.SIGKILL
		if i%3 == 2 {
			sig = syscall.SIGTERM
		}
		both := i%4 == 1
		if both {
			f.kill()
		}
		f.w.engineEnds()
		e.end(sig)
		if !both {
			f.await("status says that the engine is away", func(st status) bool { return st.Engine != "" })
		}
		e.start()
		f.w.engineIsBack()
		f.events = e.listen(t, f.name)
		if both {
			f.launch()
		}
		pause(time.Duration(r.IntN(3000)) * time.Millisecond)
	}
	f.push(1)
	f.over()
	require.Equal(t, still, f.one("still").ID)
	t.Logf("the engine was killed %d times", kills)
}
