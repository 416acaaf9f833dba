package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Back to a release that knows no fronts, as docs/how-to/keep-direct.md and upgrade.md say: first
// each service publishes its port itself, and then the older program gets the copy of its database.
// It compiles that release, so GITRING_E2E_LONG asks for it.
func TestAHostWithoutFrontsGoesBackToTheReleaseBeforeThem(t *testing.T) {
	t.Parallel()
	if os.Getenv("GITRING_E2E_LONG") != "1" {
		t.Skip("compiles an old release: GITRING_E2E_LONG=1 asks for it")
	}
	old := programOf(t, cmp.Or(os.Getenv("GITRING_E2E_BEFORE_FRONTS"), oldRelease))
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	direct := func(version string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(version, obj{"ports": []any{port + ":8080"}})})}
	}
	h.program = old
	h.begin(port, direct("1"))
	settled(h)
	require.NoError(t, h.stop())

	h.program = ""
	h.start()
	h.live("Version 2", files{app + "/compose.yaml": h.compose(app, obj{"web": fronted("2", port)})})
	h.serves(port, "2")
	require.Len(t, h.containers("web-front"), 1)
	third := h.repo.pushed("Version 3", direct("3"))
	h.synced(third)
	h.serves(port, "3")
	settled(h)
	require.Empty(t, h.containers("web-front"))
	require.NoError(t, h.stop())

	file := filepath.Join(h.dir, "state", "gitring.db")
	copies, err := filepath.Glob(file + ".before-*")
	require.NoError(t, err)
	require.NotEmpty(t, copies, "the release after it changed the form of the database")
	for _, more := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(file + more)
	}
	require.NoError(t, os.Rename(copies[0], file))

	mark, before := h.events.mark(), identities(h.containers())
	h.program = old
	h.start()
	h.synced(third)
	code, said := h.run("sync", "--wait")
	require.Equal(t, 0, code, said)
	require.Empty(t, h.events.after(mark, mutations...))
	require.Equal(t, before, identities(h.containers()))
	h.serves(port, "3")
}
