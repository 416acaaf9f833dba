package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// databaseAt is a commit's files of an app with a database on a folder or a volume.
func databaseAt(h *host, app, version, volume string, declared ...obj) files {
	top := obj{}
	for _, v := range declared {
		top["volumes"] = obj{volume: v}
	}
	return files{app + "/compose.yaml": h.compose(app, obj{"db": db(version, volume)}, top)}
}

// moved takes one app away and adds another.
func moved(old string, fs files) files {
	fs[old+"/compose.yaml"] = ""
	return fs
}

// A data folder lies below the app's folder of the repository. Who moves that begins with an
// empty one, unless a signed answer takes the old one over: then one after the other serves on
// it, wherever the daemon dies on the way.
func TestAMovedAppWaitsForAWordOnItsFolder(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	names := []string{h.app("shop"), h.app("store"), h.app("bazaar"), h.app("market")}
	h.start()
	first := h.deployed("The first", databaseAt(h, names[0], "1", "./pg"))
	settled(h)
	folder := filepath.Join(h.dir, "data", names[0], "pg")
	runs := identities(h.containers("db"))

	h.repo.pushed("Move it", moved(names[0], databaseAt(h, names[1], "1", "./pg")))
	refused := func(app string) func(status) bool {
		return func(st status) bool { r := st.app(app).Refusal; return r != nil && r.Code == "VolumeLeftBehind" }
	}
	st := h.await("it is refused", refused(names[1]))
	require.Contains(t, st.app(names[1]).Refusal.Says, "FOLDER "+filepath.Join(h.dir, "data", names[1], "pg")+" WOULD BEGIN EMPTY: app "+names[0]+" has the data in folder "+folder)
	require.Equal(t, first, st.app(names[0]).Commit)
	h.kill()
	h.start()
	h.await("it is refused still", refused(names[1]))
	require.Equal(t, runs, identities(h.containers("db")))
	require.NoDirExists(t, filepath.Join(h.dir, "data", names[1]))

	for i, step := range []string{"kill", "start", "create"} {
		old, renamed := names[i], names[i+1]
		if i > 0 {
			h.repo.pushed("Move it once more", moved(old, databaseAt(h, renamed, "1", "./pg")))
			h.await("it is refused", refused(renamed))
		}
		mark := h.events.mark()
		sha := h.repo.pushed("Take the data over", nil, "-m", "Gitring-Data: "+renamed+" from "+old)
		h.events.first(t, mark, func(e engineEvent) bool { return e.Action == step })
		h.kill()
		h.start()
		h.synced(sha)
		require.Equal(t, renamed, h.one("db").Config.Labels["gitring.app"])
		require.Equal(t, folder, h.one("db").Mounts[0].Source)
		require.Equal(t, i+2, onlyOne(t, h.journal(h.one("db"))), "each on the same data, one at a time")
		require.NoDirExists(t, filepath.Join(h.dir, "data", renamed))
	}

	// A later commit need not say it again, and a person may move the folder instead.
	last := names[3]
	h.deployed("Version 2", databaseAt(h, last, "2", "./pg"))
	require.Equal(t, folder, h.one("db").Mounts[0].Source)
	require.Equal(t, 5, onlyOne(t, h.journal(h.one("db"))))
}

// A person may move the folder, instead of pushing one more commit.
func TestAFolderThatAPersonMovedIsNoticed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	shop, store := h.app("shop"), h.app("store")
	h.start()
	h.deployed("The first", databaseAt(h, shop, "1", "./pg"))
	sha := h.repo.pushed("Move it", moved(shop, databaseAt(h, store, "1", "./pg")))
	h.await("it is refused", func(st status) bool { return st.app(store).Refusal != nil })
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, "data", store), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, "data", store, "pg"), 0o755)) // an empty one is a word, too
	h.synced(sha)
	require.Equal(t, filepath.Join(h.dir, "data", store, "pg"), h.one("db").Mounts[0].Source)
	require.FileExists(t, filepath.Join(h.dir, "data", shop, "pg", "journal"), "what was there stays")
}

// An app that left has its volume still. One like it under another name is asked what
// becomes of that, and a lost database does not make a running one begin empty.
func TestAnAppThatComesBackUnderAnotherNameIsAskedForItsData(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	shop, store, other := h.app("shop"), h.app("store"), h.app("other")
	h.start()
	keep := files{other + "/compose.yaml": h.compose(other, obj{"web": web("1")})}
	fs := databaseAt(h, shop, "1", "pg", obj{})
	fs[other+"/compose.yaml"] = keep[other+"/compose.yaml"]
	h.deployed("The first", fs)
	settled(h)
	volume := h.one("db").Mounts[0].Name
	require.Equal(t, 1, onlyOne(t, h.journal(h.one("db"))))

	h.deployed("Away", files{shop + "/compose.yaml": ""})
	require.Empty(t, h.containers("db"))
	h.repo.pushed("Under another name", databaseAt(h, store, "2", "pg", obj{}))
	st := h.await("it is refused", func(st status) bool { return st.app(store).Refusal != nil })
	require.Equal(t, "VolumeLeftBehind", st.app(store).Refusal.Code)
	require.Contains(t, st.app(store).Refusal.Says, "app "+shop+" had the data in volume "+volume)
	code, out := h.run("plan")
	require.Equal(t, 7, code, out)
	require.Contains(t, out, "WOULD BEGIN EMPTY")
	require.Contains(t, out, `Gitring-Data: `+store+` from `+shop)

	mark := h.events.mark()
	sha := h.repo.pushed("Take the data over", nil, "-m", "Gitring-Data: "+store+" from "+shop)
	h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "create" })
	h.kill()
	h.start()
	h.synced(sha)
	require.Equal(t, volume, h.one("db").Mounts[0].Name)
	require.Equal(t, 2, onlyOne(t, h.journal(h.one("db"))))
	h.deployed("Another commit", keep)
	require.Equal(t, volume, h.one("db").Mounts[0].Name)
	settled(h)
	runs := identities(h.containers("db"))

	// The answer is in an earlier commit, and the database that knew it is lost.
	h.kill()
	h.loseState()
	h.start()
	st = h.await("it waits", func(st status) bool { return st.app(store).Refusal != nil })
	require.Equal(t, "VolumeElsewhere", st.app(store).Refusal.Code)
	require.Contains(t, st.app(store).Refusal.Says, "has its data in "+volume+", and the app would begin with an empty "+store+"_pg")
	require.Equal(t, runs, identities(h.containers("db")))
	h.deployed("Say it in the Compose file", databaseAt(h, store, "2", "pg", obj{"x-gitring": obj{"from": shop}}))
	require.Equal(t, runs, identities(h.containers("db")), "it has what it says")
	vols, err := h.engine.volumes("gitring.host=" + h.name)
	require.NoError(t, err)
	require.NotContains(t, vols, store+"_pg", "no empty volume was made")
}
