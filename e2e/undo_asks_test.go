package e2e

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An undo is for the hour in which nothing else works. It is counted here: not one
// request to the remote, and none that has the engine ask a registry.
func TestUndoMakesNoCallToGitOrARegistry(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	h := newHost(t)
	b := newBetween(t, h.dir, h.engine, rand.New(rand.NewPCG(1, 1)))
	at, asked := gitHTTP(t, h.dir, "")
	h.config["engine"] = obj{"kind": "docker", "url": b.at}
	h.config["poll"] = "1h"
	h.source()["url"] = at + "/remote.git"
	app := h.app("web")
	h.start()
	for _, version := range []string{"one", "two"} {
		h.repo.pushed("Version "+version, files{app + "/compose.yaml": h.compose(app, obj{
			"web": web("", obj{"image": reg.at + "/web@" + reg.push(version), "pull_policy": nil, "environment": nil}, replicas(2)),
		})})
		code, out := h.run("sync", "--wait")
		require.Equal(t, 0, code, out)
		require.True(t, h.ranAs("web", version))
	}
	settled(h)

	mark, before := h.events.mark(), asked.Load()
	b.mu.Lock()
	calls := len(b.calls)
	b.mu.Unlock()
	began := time.Now()
	code, out := h.run("rollout", "undo", app, "--reason", "checkout answers 500")
	require.Equal(t, 0, code, out)
	first := h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "start" })
	t.Logf("%s from the command to the engine's first start", first.at().Sub(began).Round(time.Millisecond))
	h.await("it is undone", func(st status) bool {
		return h.ranAs("web", "one") && st.Sources[0].Sync == "Held" && st.service(app, "web").Phase == "Ready"
	})
	require.Equal(t, before, asked.Load(), "the remote was asked")
	b.mu.Lock()
	defer b.mu.Unlock()
	outside := regexp.MustCompile(`POST .*/(images/create|auth|build)$|GET .*/distribution/`)
	require.False(t, slices.ContainsFunc(b.calls[calls:], outside.MatchString), "a registry was asked: %q", b.calls[calls:])
	require.True(t, slices.ContainsFunc(b.calls[:calls], outside.MatchString), "the pulls of the commits were not seen: the test shows nothing")
}
