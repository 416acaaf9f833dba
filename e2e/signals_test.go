package e2e

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// output is what a verb has printed so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Who ends a verb that waits ends nothing but the verb, at once, whichever way; and a
// shell or a unit can tell by its exit code that it was ended.
func TestASignalEndsTheVerbThatWaitsAndNothingElse(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	slow := web("2", rollout(obj{"min_ready_time": "30m"})) // a busy machine must not see the end of it
	h.start()
	first := h.deployed("The first", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1")})})
	second := h.repo.pushed("A slow one", files{app + "/compose.yaml": h.compose(app, obj{"web": slow})})
	h.await("it is under way", func(st status) bool { return st.service(app, "web").Rollout != nil })
	for _, c := range []struct {
		verb        []string
		says        string // before it is ended
		interrupted int
		terminated  int
	}{
		{[]string{"sync", "--wait"}, app, 130, 143},
		{[]string{"status", "--watch"}, app, 0, 0},
		{[]string{"events", "-f"}, "rollout.began", 0, 0},
	} {
		for sig, want := range map[syscall.Signal]int{syscall.SIGINT: c.interrupted, syscall.SIGTERM: c.terminated} {
			cmd, out := h.command(c.verb...), &output{}
			cmd.Stdout, cmd.Stderr = out, out
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			require.NoError(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			h.until(strings.Join(c.verb, " ")+" says "+c.says, func() bool { return strings.Contains(out.String(), c.says) })
			require.NoError(t, cmd.Process.Signal(sig))
			var err error
			h.until("it ends", func() bool {
				select {
				case err = <-ended:
					return true
				default:
					return false
				}
			})
			var exit *exec.ExitError
			if err != nil {
				require.True(t, errors.As(err, &exit), "%v", err)
			}
			require.Equal(t, want, cmd.ProcessState.ExitCode(), "%v by %s: %s", c.verb, sig, out)
			require.NotContains(t, out.String(), "error:", "%v", c.verb)
			require.NotContains(t, out.String(), "\x1b", "no terminal, so nothing of one")
		}
	}
	st := h.await("the rollout is still under way", func(st status) bool { return st.service(app, "web").Rollout != nil })
	require.Equal(t, second, st.Sources[0].Commit)
	require.NotEqual(t, first, h.deployed("A quick one", files{app + "/compose.yaml": h.compose(app, obj{"web": web("3")})}))
	require.True(t, h.ranAs("web", "3"))
}
