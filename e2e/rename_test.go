package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An app that was moved with git mv is refused for the values that the host has under its old
// name. The plan of the folder and the status say so first, for as long as what ran goes on.
func TestAMovedAppIsToldOfItsEnvFolder(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, "env"), 0o700))
	h.config["env"] = obj{"dir": filepath.Join(h.dir, "env")}
	old, moved := h.app("shop"), h.app("store")
	h.hostValue(old+"/.env", "GREETING=hello\n")
	compose := func(app string) string {
		return h.compose(app, obj{"web": web("1", env("GREETING", "${GREETING}"))})
	}
	h.start()
	first := h.deployed("The first", files{old + "/compose.yaml": compose(old)})
	settled(h)
	next := files{old + "/compose.yaml": "", moved + "/compose.yaml": compose(moved)}
	h.repo.write(next)
	mv := "mv " + filepath.Join(h.dir, "env", old) + " " + filepath.Join(h.dir, "env", moved)
	code, planned := h.run("plan", h.repo.work)
	require.Equal(t, 7, code, planned)
	require.Regexp(t, `hint: this host has values for `+old+`,`, planned)
	require.Contains(t, planned, mv)
	h.repo.pushed("Move it", next)
	h.await("it is refused", func(st status) bool { return st.app(moved).Refusal != nil })
	h.kill() // and a restart changes nothing
	h.start()
	st := h.await("it is refused still", func(st status) bool { return st.app(moved).Refusal != nil && st.app(old).Commit == first })
	require.Contains(t, st.app(moved).Refusal.Hint, "this host has values for "+old+", which is in force and not in this commit")

	require.NoError(t, os.Rename(filepath.Join(h.dir, "env", old), filepath.Join(h.dir, "env", moved)))
	h.await("it runs under its new name", func(st status) bool {
		return st.app(moved).Refusal == nil && st.service(moved, "web").Phase == "Ready"
	})
	require.Equal(t, "hello", h.one("web").env("GREETING"))
}

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
