package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What docs/how-to/back-up-and-restore.md promises: a state of yesterday, and none at all,
// restart nothing. The older version never begins on data that a newer one wrote.
func TestAStateOfYesterdayAndNoneAtAllRestartNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	file := app + "/compose.yaml"
	version := func(v string, more ...string) files {
		services := obj{
			"db":  web(v, obj{"volumes": []any{"data:/data"}}),
			"web": web(v),
		}
		for _, name := range more {
			services[name] = web(v)
		}
		return files{file: h.compose(app, services, obj{"volumes": obj{"data": obj{}}})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)
	require.NoError(t, h.stop())
	state := h.config["state"].(string)
	yesterday := filepath.Join(h.dir, "yesterday")
	copied, err := exec.Command("cp", "-a", state, yesterday).CombinedOutput()
	require.NoError(t, err, "%s", copied)

	h.start()
	second := h.deployed("Version 2, and one more", version("2", "more"))
	runs := identities(h.containers())
	require.Len(t, runs, 3)
	require.NoError(t, h.stop())

	// The remote is away at first: nobody can tell what is newest.
	hidden := h.repo.bare + ".away"
	require.NoError(t, os.Rename(h.repo.bare, hidden))
	require.NoError(t, os.RemoveAll(state))
	require.NoError(t, os.Rename(yesterday, state))
	mark := h.events.mark()
	h.start()
	h.await("the older state is told", func(st status) bool { return st.service(app, "db").Code == "StateOlder" })
	require.Equal(t, runs, identities(h.containers()))
	require.NoError(t, os.Rename(hidden, h.repo.bare))
	h.synced(second)
	require.Empty(t, h.events.after(mark, "create", "start", "kill", "die", "restart", "destroy"), "yesterday's state")
	require.Equal(t, runs, identities(h.containers()))

	require.NoError(t, h.stop())
	require.NoError(t, os.RemoveAll(state))
	mark = h.events.mark()
	h.start()
	h.synced(second)
	require.Empty(t, h.events.after(mark, "create", "start", "kill", "die", "restart", "destroy"), "no state")
	require.Equal(t, runs, identities(h.containers()))
}
