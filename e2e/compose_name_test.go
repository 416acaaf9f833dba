package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// People open a shell in the container that Compose would have made. After each update,
// and where somebody else has the name, what serves goes on without a restart.
func TestDockerExecTakesTheNameThatComposeGives(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	docker := func(args ...string) (string, error) {
		out, err := exec.Command("docker", args...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	entered := func(name string) {
		t.Helper()
		h.until("docker exec "+name+" works", func() bool {
			_, err := docker("exec", name, "/app", "check", "http://127.0.0.1:8080/healthz")
			return err == nil
		})
		running := ids(h.containers("web"))
		id, err := docker("inspect", "-f", "{{.Id}}", name)
		require.NoError(t, err)
		require.Contains(t, running, id)
	}
	h.start()
	h.deployed("The first", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1", replicas(2))})})
	entered(app + "-web-1")
	entered(app + "-web-2")
	mark := h.events.mark()
	h.deployed("The second", files{app + "/compose.yaml": h.compose(app, obj{"web": web("2", replicas(2))})})
	entered(app + "-web-1")
	entered(app + "-web-2")
	settled(h)
	require.Len(t, h.events.after(mark, "start"), 2, "each instance is started once")
	require.Empty(t, h.events.after(mark, "restart"))

	theirs, err := h.engine.start(app+"-other-1", "none", nil, "serve")
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.engine.remove(theirs) })
	h.deployed("One more", files{app + "/compose.yaml": h.compose(app, obj{"web": web("2", replicas(2)), "other": web("1")})})
	h.await("all is well", func(st status) bool { return st.app(app).Health == "Healthy" })
	id, err := docker("inspect", "-f", "{{.Id}}", app+"-other-1")
	require.NoError(t, err)
	require.Equal(t, theirs, id, "what is not ours keeps its name")
	_, told := h.journalled("step.failed", app, "other", "")
	require.False(t, told)
}
