package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ran are the versions that ran on the volume of the jobs, in order.
func (h *host) ran(folder string) []string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "journal"))
	require.NoError(h.t, err)
	var out []string
	for line := range strings.Lines(string(b)) {
		out = append(out, strings.Fields(line)[1])
	}
	return out
}

// Lesson L51, with all that was written down gone but the marks, which are files:
// neither the database nor a container tells that the job ran.
func TestLesson51AJobIsNotRunAgainAfterTheLossOfTheDatabase(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	version := func(v string, kv ...string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"migrate": migrate(v, kv...), "web": web("1")}, obj{"volumes": obj{"runs": obj{}}})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)
	job := h.one("migrate")
	folder := job.Mounts[0].Source
	require.Equal(t, []string{"1"}, h.ran(folder))

	require.NoError(t, h.stop())
	require.NoError(t, h.engine.remove(job.ID))
	left, err := filepath.Glob(filepath.Join(h.dir, "state", "gitring.db*"))
	require.NoError(t, err)
	require.NotEmpty(t, left)
	for _, name := range left {
		require.NoError(t, os.Remove(name))
	}
	h.start()
	h.deployed("A word", files{"README.md": "a word"})
	settled(h)
	require.Equal(t, []string{"1"}, h.ran(folder), "the job ran again for the loss of the database")
	require.Equal(t, "Completed", h.status().service(app, "migrate").Phase)

	// A person may run it once more, follow it, and read what it wrote after its
	// container is gone.
	code, out := h.run("run", app+"/migrate", "--reason", "the data came back from a backup", "--wait")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "succeeded")
	require.Equal(t, []string{"1", "1"}, h.ran(folder))
	h.until("the log is kept", func() bool {
		code, out = h.run("jobs", "--logs", app+"/migrate")
		return code == 0 && strings.Contains(out, "job 1 runs")
	})
	require.NoError(t, h.engine.remove(h.one("migrate").ID))
	code, out = h.run("jobs", "--logs", app+"/migrate")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "job 1 runs")
	code, out = h.run("run", app+"/web", "--reason", "a mistake")
	require.Equal(t, 5, code, out)
	code, out = h.run("jobs", app)
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "exit code 0")
}

// A backup that fails keeps the version that serves; one that succeeds lets the
// new one come, once for each, however often the daemon dies.
func TestABackupRunsBeforeEachRolloutAndMustSucceed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	version := func(v, backup string, kv ...string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{
			"backup": migrate(backup, kv...), "web": web(v, obj{"x-gitring": obj{"before": "backup", "rollout": obj{"min_ready_time": "100ms"}}}),
		}, obj{"volumes": obj{"runs": obj{}}})}
	}
	first := h.repo.pushed("Version 1", version("1", "a"))
	h.start()
	h.synced(first)
	folder := h.one("backup").Mounts[0].Source
	require.Equal(t, []string{"a"}, h.ran(folder))

	mark := h.events.mark()
	second := h.repo.pushed("Version 2", version("2", "a", "TAKES", "1500"))
	h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "start" && e.service() == "backup" })
	h.kill()
	require.Equal(t, "1", h.one("web").env("VERSION"))
	h.start()
	h.synced(second)
	require.Equal(t, "2", h.one("web").env("VERSION"))
	require.Equal(t, []string{"a", "a"}, h.ran(folder))

	serving := identities(h.containers("web"))
	h.repo.pushed("Version 3", version("3", "b", "CODE", "4"))
	code, out := h.run("sync", "--wait")
	require.Equal(t, 6, code, out)
	st := h.await("the rollout failed", func(st status) bool { return st.service(app, "web").Rollout != nil })
	require.Contains(t, st.service(app, "web").Rollout.Reason, "backup, which runs before it, failed: exited with code 4")
	require.Equal(t, serving, identities(h.containers("web")))
	require.Equal(t, []string{"a", "a", "b"}, h.ran(folder))

	// The job alone is mended: that is enough.
	h.deployed("Mend the backup", version("3", "c"))
	require.Equal(t, "3", h.one("web").env("VERSION"))
	require.Equal(t, []string{"a", "a", "b", "c"}, h.ran(folder))
}

// A cron job begins by itself when it is due, once, though the daemon dies as it
// begins; what it wrote stays when its container is gone.
func TestACronJobRunsWhenItIsDueAndItsLogIsKept(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	nightly := merged(migrate("1", "TAKES", "1000"), obj{"x-gitring": obj{"kind": "cron", "cron": obj{"schedule": "* * * * *", "timezone": "Europe/Berlin"}}})
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{
		"nightly": nightly, "web": web("1"),
	}, obj{"volumes": obj{"runs": obj{}}})})
	h.start()
	st := h.synced(first)
	require.Equal(t, "Ready", st.service(app, "nightly").Phase)
	mark := h.events.mark()
	begun := h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "start" && e.service() == "nightly" })
	require.Less(t, begun.at().Second(), 30, "it did not begin with the minute")
	h.kill()
	h.start()
	h.until("the run is told", func() bool {
		_, out := h.run("jobs", app+"/nightly")
		return strings.Contains(out, "schedule") && strings.Contains(out, "succeeded")
	})
	h.until("its log is kept", func() bool {
		code, out := h.run("jobs", "--logs", app+"/nightly")
		return code == 0 && strings.Contains(out, "job 1 runs")
	})
	job := h.one("nightly")
	require.Equal(t, []string{"1"}, h.ran(job.Mounts[0].Source), "the due time began two runs")
	require.NoError(t, h.engine.remove(job.ID))
	code, out := h.run("jobs", "--logs", app+"/nightly")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "job 1 runs")
}

// A run that was due while the daemon was away begins when it is back, once; and a
// host that is asked again has nothing more to catch up.
func TestACronJobIsCaughtUpOnceAfterTheDaemonWasAway(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	nightly := merged(migrate("1"), obj{"x-gitring": obj{"kind": "cron", "cron": obj{"schedule": "* * * * *", "missed": "10m"}}})
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{
		"nightly": nightly, "web": web("1"),
	}, obj{"volumes": obj{"runs": obj{}}})})
	h.start()
	h.synced(first)
	require.NoError(t, h.stop())
	away := time.Now()
	before := len(h.containers("nightly"))
	due := away.Truncate(time.Minute).Add(time.Minute)
	h.until("a due time passes", func() bool { return time.Now().After(due.Add(2 * time.Second)) })
	require.Len(t, h.containers("nightly"), before, "nobody was there to begin it")

	mark := h.events.mark()
	h.start()
	begun := h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "start" && e.service() == "nightly" })
	require.Less(t, begun.at(), due.Add(40*time.Second), "it is the next one, and none was caught up")
	h.until("the run is told", func() bool {
		code, out := h.run("jobs", app+"/nightly")
		return code == 0 && strings.Contains(out, "succeeded")
	})
	h.kill()
	h.start()
	settled(h)
	folder := h.one("nightly").Mounts[0].Source
	require.LessOrEqual(t, len(h.ran(folder)), before+1+int(time.Since(due)/time.Minute), "it was caught up twice")
}
