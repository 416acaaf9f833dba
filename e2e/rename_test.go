package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A renamed app does not begin with an empty database: it waits for an answer while what
// ran goes on, and then has the volume that it had, never with two on it.
func TestARenamedAppWaitsForAWordOnItsVolume(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	old, renamed := h.app("shop"), h.app("store")
	of := func(app string, volume obj) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"db": web("one", obj{"volumes": []any{"pgdata:/data"}})}, obj{"volumes": obj{"pgdata": volume}})}
	}
	mounted := func(app string) string { return h.of(app, "db").Mounts[0].Source }
	h.start()
	first := h.deployed("The first", of(old, nil))
	settled(h)
	runs, volume := identities(h.containers("db")), mounted(old)

	h.repo.pushed("Rename the app", files{renamed + "/compose.yaml": of(renamed, nil)[renamed+"/compose.yaml"], old + "/compose.yaml": ""})
	st := h.await("it is refused", func(st status) bool {
		r := st.app(renamed).Refusal
		return r != nil && r.Code == "VolumeLeftBehind"
	})
	require.Contains(t, st.app(renamed).Refusal.Says, "VOLUME "+renamed+"_pgdata WOULD BEGIN EMPTY")
	require.Contains(t, st.app(renamed).Refusal.Hint, "{x-gitring: {from: "+old+"}}")
	require.Equal(t, first, st.app(old).Commit)
	h.kill() // and a restart changes nothing
	h.start()
	h.await("it is refused still", func(st status) bool { return st.app(renamed).Refusal != nil && st.app(old).Commit == first })
	require.Equal(t, runs, identities(h.containers("db")))

	mark := h.events.mark()
	h.deployed("Take the data over", of(renamed, obj{"x-gitring": obj{"from": old}}))
	settled(h)
	require.Equal(t, volume, mounted(renamed))
	var order []string
	for _, e := range h.events.after(mark, "start", "die") {
		order = append(order, e.Action+" "+e.Actor.Attributes["gitring.app"])
	}
	require.Equal(t, []string{"die " + old, "start " + renamed}, order, "one at a time")
	vols, err := h.engine.volumes("gitring.host=" + h.name)
	require.NoError(t, err)
	require.NotContains(t, vols, renamed+"_pgdata", "no empty volume was made")
}
