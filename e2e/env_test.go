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
// containers, the env folder itself and the contents, which only root may enter.
func (h *host) nowhere(value string) {
	h.t.Helper()
	found := func(where string, b []byte) {
		h.t.Helper()
		require.NotContains(h.t, string(b), value, where)
	}
	state := filepath.Join(h.dir, "state")
	read := 0
	require.NoError(h.t, filepath.WalkDir(state, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && d.Name() == "content" {
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
