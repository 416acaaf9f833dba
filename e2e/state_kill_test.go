package e2e

import (
	"bufio"
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// writesOfState are the calls to the kernel by which the state of a daemon changes: names and
// folders of files, and bytes of files and of the database.
var writesOfState = []string{"renameat,renameat2,mkdirat,unlinkat", "fsync,fdatasync,pwrite64", "openat"}

// killedAt has the kernel kill the daemon at a call that writes: the nth that one of its threads
// makes. stop takes that back, where it did not come to it.
func (h *host) killedAt(calls string, nth int) (stop func()) {
	h.t.Helper()
	return h.traced("-o", "/dev/null", "-e", "trace="+calls, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, nth))
}

// traced has strace follow the daemon and what it runs, until stop.
func (h *host) traced(how ...string) (stop func()) {
	h.t.Helper()
	trace := exec.Command("strace", append([]string{"-f", "-p", strconv.Itoa(h.daemon.Process.Pid)}, how...)...)
	trace.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	says, err := trace.StderrPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, trace.Start())
	lines := bufio.NewScanner(says)
	require.True(h.t, lines.Scan(), "strace says nothing")
	require.Contains(h.t, lines.Text(), "attached")
	ended := make(chan struct{})
	go func() {
		for lines.Scan() {
		}
		_ = trace.Wait()
		close(ended)
	}()
	return func() {
		_ = trace.Process.Signal(syscall.SIGTERM)
		<-ended
	}
}

// A daemon is killed between any two writes of its state, while other secrets, a pin and the
// verdict of a signature come in: the next one goes on from what is there. With GITRING_E2E_LONG
// it is killed at many more.
func TestADaemonThatIsKilledBetweenTwoWritesOfItsStateGoesOn(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("no strace here: it kills the daemon within a call to the kernel")
	}
	t.Parallel()
	most := amount(t, "WRITES", 6, 120)
	reg := newRegistry(t)
	h := newHost(t)
	recipient := h.secretSources(t)
	h.config["policy"] = obj{"images": obj{"signatures": []any{
		obj{"match": reg.at + "/**", "exec": []any{"/usr/bin/true", "{image}"}}, obj{"match": "**", "none": "what the other tests load"},
	}}}
	of := &rotation{host: h, app: h.app("shop"), recipient: recipient, reg: reg}
	sha := of.next()
	h.start()
	of.live(sha)
	killed := map[string]int{}
	for i := range most {
		calls := writesOfState[i%len(writesOfState)]
		nth := 1 + i/len(writesOfState)
		if calls == "openat" { // most only read
			nth = 5 * nth
		}
		stop := h.killedAt(calls, nth)
		sha = of.next()
		_, _ = h.run("secret", "refresh", of.app)
		h.until("it is killed, or has nothing left to do", func() bool {
			st, err := h.look()
			return h.gone() || err == nil && len(st.Sources) > 0 && st.Sources[0].Commit == sha && st.Sources[0].Sync == "Synced" && h.ranAs("signed", strconv.Itoa(of.at))
		})
		stop()
		if h.gone() {
			killed[calls]++
			h.start()
		}
		of.live(sha)
	}
	t.Logf("killed at %v", killed)
	for _, calls := range writesOfState {
		require.Positive(t, killed[calls], calls)
	}
	// Nothing half is left, and of the values before nothing is.
	var left []string
	t.Cleanup(func() { t.Logf("left: %v", left) })
	h.until("replaced values are gone", func() bool {
		left = nil
		for n := 1; n < of.at; n++ {
			for _, source := range []string{"host", "sops", "file"} {
				for _, name := range h.holding(secretValue(source, n)) {
					left = append(left, fmt.Sprint(source, n, " in ", name))
				}
			}
		}
		return len(left) == 0
	})
	_, out := h.run("doctor", "--config", h.configFile())
	require.Contains(t, out, "ok   state: journal: its chain is whole")
	require.NotContains(t, h.tail(10000), "panic")
}
