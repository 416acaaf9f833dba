package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// One commit moves a database, with its volume, to another app, and gives a second app's
// folder another name. Both of those that take over are refused for a slip of the
// hand: what served goes on to, until the next commit has mended it.
func TestWhatIsTakenOverServesUntilTheOneThatTakesOverCan(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	shop, data, old, renamed := h.app("shop"), h.app("data"), h.app("old"), h.app("new")
	volume := h.app("pg") // of no project: one app never mounts another's
	h.looseVolume(volume)
	made := obj{"volumes": obj{"pg": obj{"name": volume, "external": true}}}
	first := h.repo.pushed("Version 1", files{
		shop + "/compose.yaml": h.compose(shop, obj{"web": web("1"), "db": db("1", "pg")}, made),
		old + "/compose.yaml":  h.compose(old, obj{"front": web("1")}),
	})
	h.start()
	h.synced(first)
	settled(h)
	before := identities(h.containers())
	mark := h.events.mark()

	moved := func(slip ...obj) files {
		return files{
			shop + "/compose.yaml":    h.compose(shop, obj{"web": web("2")}),
			data + "/compose.yaml":    h.compose(data, obj{"db": db("1", "pg", slip...)}, made),
			old + "/compose.yaml":     "",
			renamed + "/compose.yaml": h.compose(renamed, obj{"front": web("2", slip...)}),
		}
	}
	second := h.repo.pushed("Moved, with a slip", moved(obj{"imagee": "x"}), "-m", "Gitring-Allow: remove=2")
	st := h.await("both are refused", func(st status) bool {
		r := st.app(data).Refusal
		return r != nil && r.Commit == second && strings.HasPrefix(st.app(shop).Reason, "waits for")
	})
	require.Equal(t, "waits for app "+data+", which takes over volume "+volume+" and is refused", st.app(shop).Reason)
	require.Equal(t, "waits for app "+renamed+", which takes its place and is refused", st.app(old).Reason)
	require.Equal(t, "Healthy", st.app(old).Health)
	code, out := h.run("plan", second)
	require.NotEqual(t, 0, code, out)
	require.Contains(t, out, "waits for app "+renamed+", which takes its place and is refused")
	require.Empty(t, h.events.after(mark, mutations...))
	require.Equal(t, before, identities(h.containers()))

	// Mended: one look puts all of them in force, and one at a time writes.
	third := h.repo.pushed("Mended", moved(), "-m", "Gitring-Allow: remove=2")
	st = h.synced(third)
	require.Empty(t, st.app(old).Name)
	require.Equal(t, "2", h.one("web").env("VERSION"))
	require.Equal(t, "2", h.one("front").env("VERSION"))
	require.Equal(t, 2, onlyOne(t, h.journal(h.one("db"))))
}
