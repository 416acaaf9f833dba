package e2e

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// I19: an engine that ends, with gitring watching all the while, is nobody's crash:
// restart policies stay what the Compose file says, so that the next boot finds
// everything, whether or not gitring is there.
func TestAnEngineThatEndsIsNobodysCrash(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	h := hostOn(t, e.engine)
	app := h.app("web")
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{
		"web": web("1", replicas(2)), "slow": web("1", obj{"environment": obj{"STOP_AFTER": "2500"}}),
	})})
	h.start()
	h.synced(first)
	settled(h)

	for range 2 {
		was := ids(h.containers())
		e.end(syscall.SIGTERM)
		h.await("status says that the engine is away", func(st status) bool { return st.Engine != "" })
		e.start()
		h.events = e.listen(t, h.name)
		h.await("all of it is back", func(st status) bool {
			return st.Engine == "" && st.service(app, "web").Ready == 2 && st.service(app, "slow").Ready == 1
		})
		require.Equal(t, was, ids(h.containers()))
		for _, c := range h.containers() {
			require.Equal(t, "always", c.HostConfig.RestartPolicy.Name, c.Name)
		}
	}
	code, out := h.run("events", "-o", "json", "-n", "0")
	require.Equal(t, 0, code, out)
	require.NotContains(t, out, "instance.crashed")
	require.NotContains(t, out, "drift.", "nor anybody's hands")
	require.NotContains(t, out, "step.failed", "and nothing is asked of an engine that is on its way out")
	code, out = h.run("crashes")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "nothing crashed")

	h.kill() // and gitring never comes back
	e.end(syscall.SIGTERM)
	e.start()
	h.until("everything that was ready runs again, without us", func() bool {
		running := 0
		for _, c := range h.containers() {
			if c.State.Running {
				running++
			}
		}
		return running == 3
	})
}

// A crash is seen within a second of it, and what it said is kept.
func TestACrashIsRecordedWithItsLastWords(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1")})})
	h.start()
	h.synced(first)
	settled(h)
	c := h.containers()[0]

	var groups []struct {
		App, Service, Signature, Words string
		Count                          int
		Newest                         struct {
			ExitCode int `json:"exit_code"`
			Class    string
			Uptime   time.Duration
			Log      []string
		}
	}
	mark := h.events.mark()
	h.tell(c, "/exit?code=3") // its policy is always: the engine restarts it
	h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "die" && e.Actor.ID == c.ID })
	h.until("the crash is recorded", func() bool {
		groups = nil
		h.fromJSON(&groups, "crashes", app+"/web", "--logs")
		return len(groups) == 1 && len(groups[0].Newest.Log) > 0
	})
	require.Equal(t, 3, groups[0].Newest.ExitCode, "though the engine has started it again")
	require.Equal(t, "transient", groups[0].Newest.Class)
	require.Regexp(t, `^exit 3 [0-9a-f]{8}$`, groups[0].Signature)
	require.Positive(t, groups[0].Newest.Uptime)
	require.Contains(t, groups[0].Words, "told to exit, after")

	h.await("it is ready again", func(st status) bool { return st.service(app, "web").Ready == 1 })
	h.until("the backoff is ours", func() bool { return h.containers()[0].HostConfig.RestartPolicy.Name == "no" })
	h.tell(c, "/exit?code=3")
	h.until("the same crash once more", func() bool {
		groups = nil
		h.fromJSON(&groups, "crashes", app)
		return len(groups) == 1 && groups[0].Count == 2
	})
	require.Empty(t, groups[0].Newest.Log, "logs only when asked for")
}

// fromJSON reads what a client verb says.
func (h *host) fromJSON(into any, args ...string) {
	h.t.Helper()
	out, err := h.command(append(args, "-o", "json")...).Output()
	require.NoError(h.t, err, string(out))
	require.NoError(h.t, json.Unmarshal(out, into), string(out))
}

// A version that is restored because a check failed says what that check printed, be it the
// engine's HEALTHCHECK or a check of gitring's own.
func TestWhatAFailedCheckPrintedIsToldWithTheOutcome(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"engines": web("1"), "own": web("1")})})
	h.start()
	h.synced(first)

	quick := rollout(obj{"start_timeout": "3s", "failure_threshold": 1})
	own := obj{"checks": []any{obj{"name": "db", "for": "readiness", "exec": []any{"/app", "tell", "1", "no tables"}, "interval": "500ms"}}}
	h.repo.pushed("Version 2", files{app + "/compose.yaml": h.compose(app, obj{
		"engines": web("2", obj{"healthcheck": obj{"test": []any{"CMD", "/app", "tell", "1", "no database"}, "interval": "1s", "retries": 1}}, quick),
		"own":     web("2", obj{"x-gitring": own}, quick),
	})})
	code, out := h.run("sync", "--wait")
	require.Equal(t, 6, code, out)
	for _, verb := range [][]string{{"status"}, {"crashes", "--logs"}, {"inspect", app + "/engines"}, {"inspect", app + "/own"}} {
		h.until(strings.Join(verb, " ")+" says what the check printed", func() bool {
			_, out = h.run(verb...)
			return strings.Contains(out, "printed:") && strings.Contains(out, map[string]string{app + "/engines": "no database"}[verb[len(verb)-1]]) &&
				(verb[0] == "inspect" || strings.Contains(out, "no database") && strings.Contains(out, "no tables"))
		})
	}
	require.Contains(t, out, "no tables", "of its own service")
	code, out = h.run("sync", "--wait")
	require.Equal(t, 6, code, out)
	require.Contains(t, out, "the check printed:")
}
