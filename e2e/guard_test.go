package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACommitThatTakesMostAwayWaitsForAPerson(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	file := app + "/compose.yaml"
	volume := obj{"volumes": obj{"pg": obj{}}}
	h.repo.pushed("Three services", files{file: h.compose(app, obj{"a": web("1"), "b": web("1"), "db": db("1", "pg")}, volume)})
	h.start()
	h.synced(h.repo.head())
	settled(h)
	mark, before := h.events.mark(), identities(h.containers())
	require.Len(t, before, 3)

	held := func(sha, why string) {
		t.Helper()
		st := h.await("the commit is held", func(st status) bool { return st.Sources[0].Tip == sha && st.Sources[0].Sync == "Held" })
		require.Contains(t, st.Sources[0].Reason, why)
		code, out := h.run("status")
		require.Equal(t, 9, code, out)
		require.Contains(t, out, "gitring approve "+sha[:7])
		code, out = h.run("sync", "--wait")
		require.Equal(t, 9, code, out)
	}

	// More than half of the services.
	most := h.repo.pushed("One service", files{file: h.compose(app, obj{"a": web("1")})})
	held(most, "removes 2 of 3 services")
	require.Empty(t, h.events.after(mark, mutations...))
	require.Equal(t, before, identities(h.containers()))

	// A newer commit settles it.
	same := h.repo.pushed("Three again", files{file: h.compose(app, obj{"a": web("1"), "b": web("1"), "db": db("1", "pg")}, volume)})
	h.synced(same)
	require.Equal(t, before, identities(h.containers()))
	code, out := h.run("approve", most[:7])
	require.Equal(t, 4, code, "nothing of that commit waits: %s", out)

	// The whole tree, and a person's yes.
	empty := h.repo.pushed("Nothing", files{app: "", "README.md": "nothing is left"})
	held(empty, "the tree is empty: removes all 3 services")
	require.Equal(t, before, identities(h.containers()))
	code, out = h.run("approve", empty[:7], "--reason", "moving out")
	require.Equal(t, 0, code, out)
	h.synced(empty)
	require.Empty(t, h.containers())
	nets, err := h.engine.networks("gitring.host=" + h.name)
	require.NoError(t, err)
	require.Empty(t, nets)
	vols, err := h.engine.volumes("gitring.host=" + h.name)
	require.NoError(t, err)
	require.Equal(t, []string{app + "_pg"}, vols, "data outlives whatever a commit takes away")
	code, out = h.run("history")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "moving out")

	// What comes back finds its data.
	h.deployed("Back", files{file: h.compose(app, obj{"db": db("2", "pg")}, volume)})
	journal := h.journal(h.one("db"))
	require.Contains(t, journal[0], "start 1 ")
	require.Equal(t, 2, onlyOne(t, journal))
}

func TestASignedTrailerAllowsWhatThePlanRemoves(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	h.repo.pushed("Three services", files{app + "/compose.yaml": h.compose(app, obj{"a": web("1"), "b": web("1"), "c": web("1")})})
	h.start()
	h.synced(h.repo.head())
	kept := h.one("a").ID
	less := h.repo.pushed("One service", files{app + "/compose.yaml": h.compose(app, obj{"a": web("1")})}, "-m", "Gitring-Allow: remove=2")
	h.synced(less)
	require.Equal(t, kept, h.one("a").ID)
	require.Len(t, h.containers(), 1)
}
