package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAVersionThatIsNeverReadyIsRestoredAndTheOldInstancesAreUntouched(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	file := app + "/compose.yaml"
	good := h.repo.pushed("Version 1", files{file: h.compose(app, obj{"web": web("1", replicas(3))})})
	h.start()
	h.synced(good)
	before := identities(h.containers("web"))
	require.Len(t, before, 3)

	bad := h.repo.pushed("Never ready", files{file: h.compose(app, obj{"web": web("2", replicas(3), broken())})})
	st := h.await("the bad version is restored", func(st status) bool {
		r := st.service(app, "web").Rollout
		return r != nil && r.Phase == "Restored" && r.Commit == bad
	})
	require.Equal(t, before, identities(h.containers()), "the surge is gone, the old ones are as they were")
	s := st.service(app, "web")
	require.Equal(t, "Degraded", st.Sources[0].Sync)
	require.Equal(t, 3, s.Ready)
	require.Contains(t, s.Rollout.Reason, "not ready within 3s")
	code, out := h.run("status")
	require.Equal(t, 6, code, out)
	require.Contains(t, out, "Restored")

	mark := h.events.mark()
	h.repo.git("revert", "--no-edit", "HEAD")
	h.repo.push()
	h.synced(h.repo.head())
	require.Empty(t, h.events.after(mark, "create", "start", "kill", "die", "restart", "destroy"), "a revert to what runs touches nothing")
	require.Equal(t, before, identities(h.containers()))
	code, out = h.run("status")
	require.Equal(t, 0, code, out)
}
