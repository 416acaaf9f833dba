package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// migrate is a job of a version that writes its runs to the volume.
func migrate(version string, kv ...string) obj {
	return obj{
		"image": image, "pull_policy": "never", "command": []any{"job"}, "restart": "no",
		"environment": env(append(kv, "VERSION", version, "DATA", "/data")...)["environment"],
		"volumes":     []any{"runs:/data"},
	}
}

func TestAJobGatesItsDependentsAndRunsOncePerVersion(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	version := func(v string, kv ...string) files {
		gated := obj{"depends_on": obj{"migrate": obj{"condition": "service_completed_successfully"}}}
		return files{app + "/compose.yaml": h.compose(app, obj{
			"migrate": migrate(v, kv...), "web": web(v, replicas(2), gated),
		}, obj{"volumes": obj{"runs": obj{}}})}
	}
	runs := func() []string {
		t.Helper()
		var versions []string
		for _, line := range h.journal(h.one("migrate")) {
			versions = append(versions, strings.Fields(line)[1])
		}
		return versions
	}

	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	st := h.synced(first)
	require.Equal(t, "Completed", st.service(app, "migrate").Phase)
	require.Equal(t, []string{"1"}, runs())
	finished := h.one("migrate").State.FinishedAt
	for _, c := range h.containers("web") {
		require.True(t, c.State.StartedAt.After(finished), "%s started before the job was done", c.Name)
	}

	// Again by nobody: not by a restart, not by a commit that does not change it.
	h.kill()
	h.start()
	h.deployed("A word", files{"README.md": "a word"})
	require.Equal(t, []string{"1"}, runs())

	// The daemon dies while it runs: it is followed to its end, not run again.
	mark := h.events.mark()
	second := h.repo.pushed("Version 2", version("2", "TAKES", "2500"))
	h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "start" && e.service() == "migrate" })
	h.kill()
	h.start()
	h.synced(second)
	require.Equal(t, []string{"1", "2"}, runs())

	// A job that fails: what is there stays as it is.
	settled(h)
	before := identities(h.containers("web"))
	bad := h.repo.pushed("Version 3", version("3", "CODE", "4"))
	code, out := h.run("sync", "--wait")
	require.Equal(t, 6, code, out)
	st = h.await("the job failed", func(st status) bool { return st.service(app, "migrate").Phase == "Failed" })
	require.Equal(t, bad, st.app(app).Commit)
	require.Contains(t, st.service(app, "migrate").Reason, "exited with code 4")
	require.Contains(t, st.service(app, "web").Reason, "waits for migrate: failed: exited with code 4")
	require.Equal(t, before, identities(h.containers("web")))
	code, out = h.run("logs", app+"/migrate")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "job 3 runs")

	h.deployed("Version 4", version("4"))
	require.Equal(t, []string{"1", "2", "3", "4"}, runs())
	for _, c := range h.containers("web") {
		require.Equal(t, "4", c.env("VERSION"))
	}
}
