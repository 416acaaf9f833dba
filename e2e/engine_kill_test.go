package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
		left := processesWith("-namespace", filepath.Base(e.dir))
		e.start()
		bury(left)
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

// bury ends what is left of a dead engine's containers. The engine that follows ends
// those that it knows; half-started ones it forgets, and they hold addresses that it
// gives away again. Nobody but a person or a reboot takes them away.
func bury(shims []int) {
	for _, shim := range shims {
		if !alive(strconv.Itoa(shim)) {
			continue
		}
		for _, child := range childrenOf(shim) {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
		_ = syscall.Kill(shim, syscall.SIGKILL)
	}
}

func childrenOf(parent int) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		_, after, _ := strings.Cut(string(b), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			if pid, err := strconv.Atoi(strings.Split(f, "/")[2]); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
