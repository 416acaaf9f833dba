package e2e

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// underCompose runs the tests' app as Compose would: with its labels, names and
// volume, on the data folder of a database.
func (h *host) underCompose(app string) (id string) {
	h.t.Helper()
	volume := app + "_pg"
	h.asks("/volumes/create", nil, obj{"Name": volume, "Labels": obj{"com.docker.compose.project": app, "com.docker.compose.volume": "pg"}}, nil)
	var made struct{ ID string }
	h.asks("/containers/create", url.Values{"name": {app + "-db-1"}}, obj{
		"Image": image, "Env": []string{"DATA=/data"},
		"Labels": obj{
			"com.docker.compose.project": app, "com.docker.compose.service": "db", "com.docker.compose.container-number": "1",
			"com.docker.compose.oneoff": "False", "com.docker.compose.project.working_dir": "/opt/" + app,
			"com.docker.compose.project.config_files": "/opt/" + app + "/compose.yaml",
		},
		"HostConfig": obj{"NetworkMode": "none", "Mounts": []any{obj{"Type": "volume", "Source": volume, "Target": "/data"}}},
	}, &made)
	h.t.Cleanup(func() { // the volume has no label of ours to be found by
		h.kill()
		_ = h.engine.remove(made.ID)
		_ = h.engine.clear("gitring.host=" + h.name)
		_ = h.engine.call("DELETE", "/volumes/"+volume, nil, nil, nil)
	})
	h.asks("/containers/"+made.ID+"/start", nil, nil, nil)
	return made.ID
}

// asks posts to the engine.
func (h *host) asks(path string, q url.Values, body obj, into any) {
	h.t.Helper()
	var b []byte
	if body != nil {
		var err error
		b, err = json.Marshal(body)
		require.NoError(h.t, err)
	}
	require.NoError(h.t, h.engine.call("POST", path, q, bytes.NewReader(b), into))
}

// What ran under Compose yesterday evening goes on under gitring, on its data,
// and at no moment twice.
func TestAProjectThatRunsUnderComposeIsTakenOverWhenItIsDown(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("db")
	theirs := h.underCompose(app)
	h.until("the database runs under Compose", func() bool {
		c, err := h.engine.inspect(theirs)
		require.NoError(t, err)
		_, err = os.Stat(filepath.Join(c.Mounts[0].Source, "journal"))
		return c.State.Running && err == nil
	})
	was, err := h.engine.inspect(theirs)
	require.NoError(t, err)

	sha := h.repo.pushed("As it is", files{app + "/compose.yaml": h.compose(app, obj{"db": db("1", "pg")}, obj{"volumes": obj{"pg": obj{}}})})
	h.start()
	st := h.await("the app is refused", func(st status) bool { return st.app(app).Refusal != nil })
	r := st.app(app).Refusal
	require.Equal(t, "ForeignProject", r.Code)
	require.Equal(t, sha, r.Commit)
	require.Contains(t, r.Says, app+"-db-1")
	require.Contains(t, r.Hint, "docker compose down in /opt/"+app+", never with -v")
	code, out := h.run("status")
	require.Equal(t, 7, code, out)
	require.Empty(t, h.containers())
	now, err := h.engine.inspect(theirs)
	require.NoError(t, err)
	require.Equal(t, identities([]*container{was}), identities([]*container{now}), "nobody touched it")

	// docker compose down
	require.NoError(t, h.engine.stop(theirs))
	require.NoError(t, h.engine.call("DELETE", "/containers/"+theirs, nil, nil, nil))
	h.synced(sha)
	c := h.one("db")
	require.Equal(t, was.Mounts[0].Source, c.Mounts[0].Source, "the same volume")
	journal := h.journal(c)
	require.Equal(t, 2, onlyOne(t, journal), "%v", journal)
}

// A disk that is not mounted looks like a data root without data. Nothing is
// made there: the data would be hidden below the disk when it comes back.
func TestNothingIsMadeOnADataRootWhoseDiskIsAway(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	disk := filepath.Join(h.dir, "disk")
	require.NoError(t, os.Mkdir(disk, 0o755))
	h.source()["data_root"] = filepath.Join(disk, "gitring")
	app := h.app("db")
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"db": db("1", "./pg")})})
	h.start()
	h.synced(first)
	folder := filepath.Join(disk, "gitring", app, "pg")
	require.Equal(t, folder, h.one("db").Mounts[0].Source)
	journal := h.journal(h.one("db"))

	for _, away := range []string{"gitring", ""} { // the mount point stays, or goes too
		require.NoError(t, os.Rename(filepath.Join(disk, away), filepath.Join(h.dir, "away")))
		if away != "" {
			require.NoError(t, os.Mkdir(filepath.Join(disk, away), 0o755))
		}
		require.NoError(t, h.engine.remove(h.one("db").ID))
		h.await("it says that the disk is away", func(st status) bool {
			b, err := json.Marshal(st)
			require.NoError(t, err)
			return bytes.Contains(b, []byte("held data and is "))
		})
		require.Empty(t, h.containers("db"))
		require.NoDirExists(t, folder)

		// mount
		_ = os.Remove(filepath.Join(disk, "gitring"))
		require.NoError(t, os.Rename(filepath.Join(h.dir, "away"), filepath.Join(disk, away)))
		h.until("it is back", func() bool {
			cs := h.containers("db")
			return len(cs) == 1 && cs[0].State.Running
		})
		h.synced(first)
		now := h.journal(h.one("db"))
		require.Equal(t, journal, now[:len(journal)], "on the data of the first day")
		journal = now
	}
}
