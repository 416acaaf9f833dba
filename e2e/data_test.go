package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// db is a service whose folder two processes would destroy: it takes a lock on
// it and writes down whoever comes while somebody else holds it. It is slow to
// stop, so that who does not wait is caught.
func db(version, volume string, more ...obj) obj {
	own := obj{"volumes": []any{volume + ":/data"}, "environment": obj{"DATA": "/data", "STOP_AFTER": "400"}}
	return web(version, append([]obj{own}, more...)...)
}

// journal reads what the processes on a folder wrote down.
func (h *host) journal(c *container) []string {
	h.t.Helper()
	i := slices.IndexFunc(c.Mounts, func(m mount) bool { return m.Destination == "/data" })
	require.GreaterOrEqual(h.t, i, 0, "no /data in %s", c.Name)
	b, err := os.ReadFile(filepath.Join(c.Mounts[i].Source, "journal"))
	require.NoError(h.t, err)
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// onlyOne holds a journal to one process at a time.
func onlyOne(t *testing.T, journal []string) (starts int) {
	t.Helper()
	for i, line := range journal {
		require.False(t, strings.HasPrefix(line, "held "), "two at once on one folder, line %d:\n%s", i+1, strings.Join(journal, "\n"))
		if strings.HasPrefix(line, "start ") {
			starts++
		}
	}
	return starts
}

func TestTwoDatabasesAreNeverOnOneFolder(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name, volume string
		steps        []string // at which the daemon dies
	}{
		{"a named volume", "pg", []string{"create", "kill", "die", "start", "destroy"}},
		{"a data folder", "./pg", []string{"kill", "start"}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			twoDatabases(t, kind.volume, kind.steps)
		})
	}
}

func twoDatabases(t *testing.T, volume string, steps []string) {
	h := newHost(t)
	app := h.app("db")
	file := app + "/compose.yaml"
	version := func(v string, more ...obj) files {
		top := obj{}
		if !strings.HasPrefix(volume, ".") {
			top["volumes"] = obj{volume: obj{}}
		}
		return files{file: h.compose(app, obj{"db": db(v, volume, more...)}, top)}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)
	require.Equal(t, 1, onlyOne(t, h.journal(h.one("db"))))

	// An update: the old one is stopped before the new one starts.
	h.deployed("Version 2", version("2"))
	require.Equal(t, "2", h.one("db").env("VERSION"))
	require.Equal(t, 2, onlyOne(t, h.journal(h.one("db"))))

	// A version that fails: the kept old one is started again.
	kept := h.one("db").ID
	bad := h.repo.pushed("Never ready", version("3", broken()))
	h.await("the bad version is restored", func(st status) bool {
		r := st.service(app, "db").Rollout
		return r != nil && r.Phase == "Restored" && r.Commit == bad
	})
	require.Equal(t, kept, h.one("db").ID, "the old instance came back")
	require.Equal(t, 4, onlyOne(t, h.journal(h.one("db"))))

	// One whose program ends at once.
	bad = h.repo.pushed("Crashes", version("4", env("EXIT_AFTER", "100")))
	h.await("the crashing version is restored", func(st status) bool {
		r := st.service(app, "db").Rollout
		return r != nil && r.Phase == "Restored" && r.Commit == bad
	})
	require.Equal(t, kept, h.one("db").ID)
	onlyOne(t, h.journal(h.one("db")))

	// The daemon dies in the middle of a recreate, at each of its steps.
	for i, step := range steps {
		mark := h.events.mark()
		v := string(rune('a' + i))
		sha := h.repo.pushed("Killed at "+step, version(v))
		h.events.first(t, mark, func(e engineEvent) bool { return e.Action == step })
		h.kill()
		h.start()
		h.synced(sha)
		require.Equal(t, v, h.one("db").env("VERSION"))
		onlyOne(t, h.journal(h.one("db")))
	}

	// The process dies by itself: the same container is started again.
	was := h.one("db")
	require.NoError(t, h.engine.kill(was.ID))
	h.until("it runs again", func() bool {
		s := h.one("db").State
		return s.Running && s.StartedAt.After(was.State.StartedAt)
	})
	require.Equal(t, was.ID, h.one("db").ID)
	journal := h.journal(h.one("db"))
	onlyOne(t, journal)
	require.True(t, strings.HasPrefix(journal[0], "start 1 "), "the data of the first day is there")
	vols, err := h.engine.volumes("gitring.host=" + h.name)
	require.NoError(t, err)
	if !strings.HasPrefix(volume, ".") {
		require.Equal(t, []string{app + "_" + volume}, vols)
	}

	// An app that leaves the commit leaves its data.
	source := h.one("db").Mounts[0].Source
	gone := h.repo.pushed("Without the app", files{app: "", "README.md": "nothing"}, "-m", "Gitring-Allow: remove=1")
	h.synced(gone)
	require.Empty(t, h.containers())
	after, err := os.ReadFile(filepath.Join(source, "journal"))
	require.NoError(t, err, "a volume or data folder is never removed")
	require.Contains(t, string(after), journal[0])
}
