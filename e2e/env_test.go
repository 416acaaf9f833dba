package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostValue writes a file of the host's env folder.
func (h *host) hostValue(name, text string) {
	h.t.Helper()
	file := filepath.Join(h.dir, "env", name)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(h.t, os.WriteFile(file+".new", []byte(text), 0o600))
	require.NoError(h.t, os.Rename(file+".new", file))
}

// nowhere holds that a value is found nowhere but where it belongs: not outside the
// containers, the env folder itself and the files with values, which only root may enter.
func (h *host) nowhere(value string) {
	h.t.Helper()
	found := func(where string, b []byte) {
		h.t.Helper()
		require.NotContains(h.t, string(b), value, where)
	}
	state := filepath.Join(h.dir, "state")
	read := 0
	require.NoError(h.t, filepath.WalkDir(state, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && d.Name() == "secrets" {
			return fs.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return nil // it went meanwhile
		}
		if b, err := os.ReadFile(p); err == nil {
			found(p, b)
			read++
		}
		return nil
	}))
	require.Greater(h.t, read, 2, "the database and its log were looked at")
	log, err := os.ReadFile(filepath.Join(h.dir, "log"))
	require.NoError(h.t, err)
	found("the log", log)
	for _, args := range [][]string{
		{"status", "-o", "json"}, {"status", "-o", "wide"}, {"events", "-o", "json", "-n", "0"}, {"history", "-o", "json"}, {"plan", "-o", "json"}, {"plan", h.repo.work},
	} {
		_, out := h.run(args...)
		found(strings.Join(args, " "), []byte(out))
	}
	for _, c := range h.containers() {
		b, err := json.Marshal(c.Config.Labels)
		require.NoError(h.t, err)
		found("labels of "+c.Name, b)
	}
	st, err := os.Stat(state)
	require.NoError(h.t, err)
	require.Equal(h.t, fs.FileMode(0o700), st.Mode().Perm())
}

// holding are the files below the state folder that hold a text, the contents among them.
func (h *host) holding(text string) (names []string) {
	h.t.Helper()
	require.NoError(h.t, filepath.WalkDir(filepath.Join(h.dir, "state"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // it went meanwhile
		}
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), text) {
			names = append(names, p)
		}
		return nil
	}))
	return names
}

func TestAValueOfTheHostReachesItsContainersAndNothingElse(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, "env"), 0o700))
	h.config["env"] = obj{"dir": filepath.Join(h.dir, "env")}
	const one, two = "cor.rect-horse-1", "cor.rect-horse-2"
	h.hostValue(app+"/.env", "PASSWORD="+one+"\nOTHER=unchanged-value\n")
	sha := h.repo.pushed("With a password", files{app + "/compose.yaml": h.compose(app, obj{
		"db":    web("1", env("PASSWORD", "${PASSWORD}", "URL", "pg://u:${PASSWORD}@db")),
		"file":  web("1", obj{"secrets": []any{"pass"}}),
		"other": web("1", env("OTHER", "${OTHER}")),
		"plain": web("1"),
	}, obj{"secrets": obj{"pass": obj{"environment": "PASSWORD"}}})})
	h.start()
	h.synced(sha)
	has := func(value string) {
		t.Helper()
		require.Equal(t, value, h.one("db").env("PASSWORD"))
		require.Equal(t, "pg://u:"+value+"@db", h.one("db").env("URL"))
		_, body := h.ask(h.one("file"), "/file?path=/run/secrets/pass")
		require.Equal(t, value, body)
		require.Equal(t, "unchanged-value", h.one("other").env("OTHER"))
	}
	has(one)
	h.nowhere(one)
	h.nowhere("unchanged-value")
	settled(h)
	before := map[string]string{}
	for _, s := range []string{"db", "file", "other", "plain"} {
		before[s] = h.one(s).ID
	}

	h.hostValue(app+"/.env", "PASSWORD="+two+"\nOTHER=unchanged-value\n")
	h.until("the new value is live", func() bool {
		cs := h.containers("db", "file")
		for _, c := range cs {
			if c.ID == before[c.service()] || !c.State.Running {
				return false
			}
		}
		return len(cs) == 2
	})
	h.synced(sha)
	has(two)
	require.Equal(t, before["other"], h.one("other").ID, "its value is the same")
	require.Equal(t, before["plain"], h.one("plain").ID)
	for _, value := range []string{one, two, "unchanged-value"} {
		h.nowhere(value)
	}

	// A file that others can read refuses the app, and what runs goes on.
	settled(h)
	mark := h.events.mark()
	require.NoError(t, os.Chmod(filepath.Join(h.dir, "env", app, ".env"), 0o644))
	st := h.await("the app is refused", func(st status) bool { return st.app(app).Refusal != nil })
	require.Contains(t, st.app(app).Refusal.Says, "is open to others (mode 0644)")
	require.Contains(t, st.app(app).Refusal.Hint, "chmod 600")
	require.NoError(t, os.Chmod(filepath.Join(h.dir, "env", app, ".env"), 0o600))
	h.synced(sha)
	require.Empty(t, h.events.after(mark, mutations...))

	code, out := h.run("validate", h.repo.work)
	require.Equal(t, 7, code, "without the configuration the values are not known: %s", out)
	require.Contains(t, out, "UndefinedVariable")
	code, out = h.run("validate", "--config", h.configFile(), h.repo.work)
	require.Equal(t, 0, code, out)
}

func TestAReplacedValueIsNowhereBelowTheStateAlsoAfterAKill(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, "env"), 0o700))
	h.config["env"] = obj{"dir": filepath.Join(h.dir, "env")}
	commit := func(version string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{
			"file": web(version, obj{"secrets": []any{"pass"}}),
		}, obj{"secrets": obj{"pass": obj{"environment": "PASSWORD"}}})}
	}
	value := func(says string) { h.hostValue(app+"/.env", "PASSWORD="+says+"\n") }
	before := ""
	live := func(says string) {
		t.Helper()
		h.until(says+" is live", func() bool {
			cs := h.containers("file")
			return len(cs) == 1 && cs[0].State.Running && cs[0].ID != before
		})
		settled(h)
		before = h.one("file").ID
		_, body := h.ask(h.one("file"), "/file?path=/run/secrets/pass")
		require.Equal(t, says, body)
	}
	nothingHolds := func(says string) {
		t.Helper()
		h.until("no file below the state folder holds "+says, func() bool { return len(h.holding(says)) == 0 })
	}

	value("canary-1")
	h.start()
	h.synced(h.repo.pushed("The first", commit("one")))
	require.NotEmpty(t, h.holding("canary-1"), "it is mounted from there")
	live("canary-1")
	value("canary-2")
	live("canary-2")
	nothingHolds("canary-1")

	code, out := h.run("rollout", "undo", app, "--reason", "r")
	require.Equal(t, 5, code, out)
	require.Contains(t, out, "a value of the host's env folder or the configuration changed since")
	require.Contains(t, out, "gitring rollback")
	require.Empty(t, h.holding("canary-1"))

	h.synced(h.repo.pushed("The second", commit("two")))
	live("canary-2")
	value("canary-3")
	h.until("the new value is on the disk", func() bool { return len(h.holding("canary-3")) > 0 })
	h.kill()
	h.start()
	live("canary-3")
	nothingHolds("canary-2")

	// What "gitring rollback" makes: the value is the host's, not the commit's.
	h.synced(h.repo.pushed("Back to the first", commit("one")))
	live("canary-3")
	require.Empty(t, h.holding("canary-1"))
	require.Empty(t, h.holding("canary-2"))
}

// A bad value of the host fails a version that no commit asked for: it is named, and the
// commit, which ran well, is not blamed.
func TestABadValueOfTheHostIsNamedAsTheCause(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, "env"), 0o700))
	h.config["env"] = obj{"dir": filepath.Join(h.dir, "env")}
	h.hostValue(app+"/.env", "DELAY=0\n")
	sha := h.repo.pushed("One", files{app + "/compose.yaml": h.compose(app, obj{
		"web": web("1", env("READY_AFTER", "${DELAY}"), rollout(obj{"start_timeout": "3s", "failure_threshold": 1})),
	})})
	h.start()
	h.synced(sha)
	settled(h)
	h.hostValue(app+"/.env", "DELAY=3600000\n")
	st := h.await("the version with the value failed", func(st status) bool {
		r := st.service(app, "web").Rollout
		return r != nil && r.Phase == "Restored"
	})
	cause := "nothing of it changed but the host's DELAY in " + filepath.Join(h.dir, "env", app, ".env") + ", seen 20"
	require.Contains(t, st.service(app, "web").Rollout.Reason, cause)
	_, out := h.run("status")
	require.Contains(t, out, cause)
	require.NotContains(t, out, "3600000")

	h.hostValue(app+"/.env", "DELAY=soon:80:80\n")
	h.repo.pushed("Two", files{app + "/compose.yaml": h.compose(app, obj{"web": web("2", env("READY_AFTER", "${DELAY}"), obj{"mem_limit": "${DELAY}"})})})
	st = h.await("a value that will not do is refused", func(st status) bool { return st.app(app).Refusal != nil })
	require.Contains(t, st.app(app).Refusal.Hint, "the value is the host's: DELAY in ")
	require.NotContains(t, st.app(app).Refusal.Says, "soon")
}
