package e2e

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What becomes of files in memory that are gone, for a hand or a reboot took them. The engine
// never makes a folder in the place of one, gitring has all of it back, and what nothing opens
// any more is told and replaced by nothing.
func TestFilesOfSecretsThatAreGoneComeBack(t *testing.T) {
	t.Parallel()
	memory, err := os.MkdirTemp("/dev/shm", "gitring-e2e-")
	if err != nil {
		t.Skip("needs /dev/shm")
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(memory)) })
	dir := filepath.Join(memory, "secrets")
	h := newHost(t)
	app, key := h.app("web"), filepath.Join(h.dir, "age.key")
	mine := ageKey(t, key)
	h.config["secrets"] = obj{"keys": []any{obj{"age_file": key}}, "at_rest": "memory", "dir": dir}
	const services = 20
	all := obj{"folder": web("1", obj{"volumes": []any{"./conf:/conf:ro"}}), "env": web("1", obj{"env_file": []any{"db.enc.env"}})}
	for i := range services {
		file := obj{"image": image, "pull_policy": "never", "network_mode": "none", "secrets": []any{"tls"}}
		if i == 0 {
			file = web("1", obj{"secrets": []any{"tls"}})
		}
		all["f"+string(rune('a'+i))] = file
	}
	sha := h.repo.pushed("With secrets", files{
		app + "/compose.yaml":    h.compose(app, all, obj{"secrets": obj{"tls": obj{"file": "./tls.enc"}}}),
		app + "/tls.enc":         encrypted(t, "tls.key", "cana.ry-tls", mine),
		app + "/db.enc.env":      encrypted(t, "db.env", "PASSWORD=cana.ry-env\n", mine),
		app + "/conf/a.enc.env":  encrypted(t, "a.env", "A=cana.ry-folder\n", mine),
		app + "/conf/plain.conf": "plain",
	})
	h.start()
	h.synced(sha)
	settled(h)
	has := func() {
		t.Helper()
		_, body := h.ask(h.one("folder"), "/file?path=/conf/a.enc.env")
		require.Equal(t, "A=cana.ry-folder\n", body)
		_, body = h.ask(h.one("fa"), "/file?path=/run/secrets/tls")
		require.Equal(t, "cana.ry-tls", body)
	}
	has()
	empty := func() {
		t.Helper()
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}

	// --- emptied by hand ---------------------------------------------------------------------
	folder, file := h.one("folder").ID, h.one("fa").ID
	empty()
	h.until("what mounts the folder is rolled", func() bool {
		cs := h.containers("folder")
		return len(cs) == 1 && cs[0].ID != folder && cs[0].State.Running
	})
	settled(h)
	has()
	require.Equal(t, file, h.one("fa").ID, "a file that is mounted by itself stays")

	// --- a reboot without the unit -----------------------------------------------------------
	h.kill()
	before := map[string]string{}
	for _, c := range h.containers() {
		before[c.Name] = c.ID
		require.NoError(t, h.engine.call("POST", "/containers/"+c.ID+"/stop", url.Values{"t": {"0"}}, nil, nil))
	}
	empty()
	var missing string
	for _, m := range h.containers("fa")[0].Mounts {
		if m.Destination == "/run/secrets/tls" {
			missing = m.Source
		}
	}
	require.True(t, strings.HasPrefix(missing, dir), missing)
	for range 100 {
		require.Error(t, h.engine.call("POST", "/containers/"+file+"/start", nil, nil, nil))
		require.NoFileExists(t, missing)
		require.NoDirExists(t, missing)
	}
	for _, c := range h.containers() {
		_ = h.engine.call("POST", "/containers/"+c.ID+"/start", nil, nil, nil) // as the engine does at a boot
	}
	h.start()
	h.until("all are back", func() bool {
		up := 0
		for _, c := range h.containers() {
			if c.State.Running {
				up++
			}
		}
		return up == services+2
	})
	after := map[string]string{}
	for _, c := range h.containers() {
		after[c.Name] = c.ID
	}
	require.Equal(t, before, after, "they were started, and not made anew")
	h.synced(sha)
	has()

	// --- nothing opens it any more -----------------------------------------------------------
	h.kill()
	require.NoError(t, os.Rename(key, key+".away"))
	ageKey(t, key)
	require.NoError(t, h.engine.call("DELETE", "/containers/"+h.one("env").ID, url.Values{"force": {"1"}}, nil, nil))
	h.start()
	st := h.await("the instance is Degraded", func(st status) bool {
		s := st.service(app, "env")
		return s.Phase == "Degraded" && strings.Contains(s.Reason, "cannot open PASSWORD of "+app+"/db.enc.env")
	})
	require.NotContains(t, st.service(app, "env").Reason, "cana.ry")
	require.Empty(t, h.containers("env"), "nothing takes its place")
	h.kill()
	require.NoError(t, os.Rename(key+".away", key))
	h.start()
	h.until("it is back with its key", func() bool {
		cs := h.containers("env")
		return len(cs) == 1 && cs[0].State.Running && cs[0].env("PASSWORD") == "cana.ry-env"
	})
}
