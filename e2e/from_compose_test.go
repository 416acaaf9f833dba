package e2e

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// up runs a shop as "docker compose up -d" in dir would: a database on a volume
// and a web application that writes into a folder beside the Compose file.
func (h *host) up(app, dir, web string) (ids []string) {
	h.t.Helper()
	run := func(service string, env []string, mount obj) {
		var made struct{ ID string }
		h.asks("/containers/create", url.Values{"name": {app + "-" + service + "-1"}}, obj{
			"Image": image, "Env": env,
			"Labels": obj{
				"com.docker.compose.project": app, "com.docker.compose.service": service, "com.docker.compose.container-number": "1",
				"com.docker.compose.oneoff": "False", "com.docker.compose.config-hash": "theirs", "com.docker.compose.project.working_dir": dir,
				"com.docker.compose.project.config_files": filepath.Join(dir, "compose.yaml"), "gitring-e2e": h.name,
			},
			"HostConfig": obj{"NetworkMode": "none", "RestartPolicy": obj{"Name": "unless-stopped"}, "Mounts": []any{mount}},
		}, &made)
		h.asks("/containers/"+made.ID+"/start", nil, nil, nil)
		ids = append(ids, made.ID)
	}
	h.asks("/volumes/create", nil, obj{"Name": app + "_db", "Labels": obj{
		"com.docker.compose.project": app, "com.docker.compose.volume": "db", "gitring-e2e": h.name,
	}}, nil)
	run("db", []string{"DATA=/data", "PASSWORD=hunter2"}, obj{"Type": "volume", "Source": app + "_db", "Target": "/data"})
	run(web, nil, obj{"Type": "bind", "Source": filepath.Join(dir, "uploads"), "Target": "/uploads"})
	return ids
}

// down is "docker compose down", without -v.
func (h *host) down(ids []string) {
	h.t.Helper()
	for _, id := range ids {
		require.NoError(h.t, h.engine.stop(id))
		require.NoError(h.t, h.engine.remove(id))
	}
}

// The steps are those of docs/how-to/from-compose.md, by somebody whose clone
// holds what Git ignores: a password, and uploads that are closed to others.
func TestAStackWithDataMovesFromComposeAndBack(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	clone := filepath.Join(h.dir, "opt", app)
	t.Cleanup(func() {
		h.kill()
		_ = h.engine.clear("gitring.host=" + h.name)
		_ = h.engine.clear("gitring-e2e=" + h.name)
	})
	service := func(o obj) obj {
		return merged(obj{"image": image, "pull_policy": "never", "restart": "unless-stopped", "x-gitring": obj{"rollout": obj{"min_ready_time": "500ms"}}}, o)
	}
	h.repo.pushed("A shop", files{
		".gitignore": ".env\nuploads/\n", "site.conf": "a=1\n",
		"compose.yaml": h.compose(app, obj{
			"db":  service(obj{"environment": obj{"DATA": "/data", "PASSWORD": "${PASSWORD}"}, "volumes": []any{"db:/data"}}),
			"web": service(obj{"depends_on": []any{"db"}, "volumes": []any{"./uploads:/uploads", "./site.conf:/etc/site.conf:ro"}}),
		}, obj{"name": app, "volumes": obj{"db": obj{}}}),
	})
	out, err := exec.Command("git", "clone", "-q", h.repo.bare, clone).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Mkdir(filepath.Join(clone, "uploads"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(clone, "uploads", "1.jpg"), []byte("a picture"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(clone, ".env"), []byte("PASSWORD=hunter2\n"), 0o600))
	theirs := h.up(app, clone, "web")
	h.until("the database runs under Compose", func() bool {
		c, err := h.engine.inspect(theirs[0])
		require.NoError(t, err)
		_, err = os.Stat(filepath.Join(c.Mounts[0].Source, "journal"))
		return c.State.Running && err == nil
	})

	// Check it: the clone is read as others would get it.
	code, text := h.run("validate", clone)
	require.Equal(t, 7, code, text)
	require.Contains(t, text, "variable PASSWORD is not set")

	// Set up the host.
	h.config["env"] = obj{"dir": filepath.Join(h.dir, "env")}
	h.source()["data_root"] = clone
	h.hostValue(app+"/.env", "PASSWORD=hunter2\n")
	h.writeConfig()
	code, text = h.run("validate", "--config", h.configFile(), clone)
	require.Equal(t, 0, code, text)
	require.Contains(t, text, "./uploads is the app's data")

	// The daemon beside the running stack.
	h.start()
	st := h.await("the app is refused", func(st status) bool { return st.app(app).Refusal != nil })
	require.Equal(t, "ForeignProject", st.app(app).Refusal.Code)
	require.NotContains(t, st.app(app).Refusal.Hint, "mv ", "the data is where it has to be")
	require.Empty(t, h.containers())

	// Hand it over: no waiting between down and sync.
	h.down(theirs)
	code, text = h.run("sync", "--wait")
	require.Equal(t, 0, code, text)
	db, web := h.one("db"), h.one("web")
	require.Equal(t, app+"_db", filepath.Base(filepath.Dir(db.Mounts[0].Source)))
	require.Equal(t, "hunter2", db.env("PASSWORD"))
	require.Equal(t, 2, onlyOne(t, h.journal(db)))
	sources := map[string]string{}
	for _, m := range web.Mounts {
		sources[m.Destination] = m.Source
	}
	require.Equal(t, filepath.Join(clone, "uploads"), sources["/uploads"])
	require.True(t, strings.HasPrefix(sources["/etc/site.conf"], filepath.Join(h.dir, "state")), sources["/etc/site.conf"])

	// Go back: Compose makes its containers in the place of these.
	require.NoError(t, h.stop())
	h.down(ids(h.containers()))
	back := h.up(app, clone, "web")
	h.until("the database runs under Compose again", func() bool {
		c, err := h.engine.inspect(back[0])
		require.NoError(t, err)
		return onlyOne(t, h.journal(c)) == 3
	})
	b, err := os.ReadFile(filepath.Join(clone, "uploads", "1.jpg"))
	require.NoError(t, err)
	require.Equal(t, "a picture", string(b))
}
