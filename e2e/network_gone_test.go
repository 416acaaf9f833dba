package e2e

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Somebody tidies networks while containers run on one: it is made again, and those that
// run are joined to it without a restart.
func TestANetworkRemovedUnderARunningContainerIsHealed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	h.start()
	h.deployed("The first", files{app + "/compose.yaml": h.compose(app, obj{"web": web("one"), "db": web("one")})})
	settled(h)
	docker := func(args ...string) {
		t.Helper()
		out, err := exec.Command("docker", args...).CombinedOutput()
		require.NoError(t, err, "docker %v: %s", args, out)
	}
	network := app + "_default"
	runs := identities(h.containers("web"))
	h.freeze() // it would join them again at once
	for _, service := range []string{"web", "db"} {
		docker("network", "disconnect", "-f", network, h.of(app, service).ID)
	}
	mark := h.events.mark()
	docker("network", "rm", network)
	h.thaw()
	for _, service := range []string{"web", "db"} {
		h.until(service+" is on the network again", func() bool {
			at := h.of(app, service).NetworkSettings.Networks[network]
			return at.IPAddress != "" && slices.Contains(at.Aliases, service)
		})
	}
	h.await("all is well", func(st status) bool { return st.app(app).Health == "Healthy" })
	require.Equal(t, runs, identities(h.containers("web")))
	require.Empty(t, h.events.after(mark, "kill", "die", "start", "destroy"), "nothing restarts")
	_, told := h.journalled("drift.healed", app, "web", "")
	require.True(t, told)
}
