package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// freeze stops the daemon as a host without time for it would, and all that it
// started; thaw lets it go on.
func (h *host) freeze() { h.signal(syscall.SIGSTOP) }
func (h *host) thaw()   { h.signal(syscall.SIGCONT) }

func (h *host) signal(sig syscall.Signal) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	require.NotNil(h.t, h.daemon)
	require.NoError(h.t, h.daemon.Process.Signal(sig))
}

// TestADaemonThatWasFrozenGoesOnWhereItIs stops the daemon for a minute (15 s in
// make test), at rest and in the middle of rollouts whose every deadline is shorter
// than that. What it did not see is nobody's failure.
func TestADaemonThatWasFrozenGoesOnWhereItIs(t *testing.T) {
	t.Parallel()
	frozen := time.Duration(amount(t, "FROZEN", 15, 60)) * time.Second
	r := dice(t)
	f := newFleet(newHost(t))
	f.begin()

	// At rest. Somebody dies meanwhile: the engine starts it again.
	dying := f.containers("web")[0]
	mark := f.events.mark()
	f.freeze()
	f.tell(dying, "/exit?code=3")
	f.events.first(t, mark, func(e engineEvent) bool { return e.Action == "start" && e.Actor.ID == dying.ID })
	if frozen > 30*time.Second {
		pause(frozen)
	}
	f.thaw()
	f.await("it is known", func(st status) bool {
		return st.Sources[0].Sync == "Synced" && st.service(f.app, "web").Ready == 2
	})
	require.Equal(t, dying.ID, f.containers("web")[0].ID)

	// While an instance starts, and wherever the dice say. It is ready long
	// before anybody looks again.
	limit := (frozen - 3*time.Second).String()
	f.more = []obj{rollout(obj{"start_timeout": limit, "progress_deadline": limit}), env("READY_AFTER", "900")}
	freezes := amount(t, "FREEZES", 2, 6)
	for i := range freezes {
		mark := f.events.mark()
		f.push(1)
		if i == 0 {
			f.events.first(t, mark, func(e engineEvent) bool { return e.Action == "start" && e.service() == "web" })
		} else {
			f.events.wait(mark, 1+r.IntN(12), patience)
		}
		f.freeze()
		pause(frozen)
		f.thaw()
		f.whole()
	}
	f.over()
	t.Logf("the daemon was frozen %d times, for %s in rollouts", freezes+1, frozen)
}
