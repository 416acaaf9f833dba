package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An undo is for the hour in which nothing else works. It is counted here: not one
// request to the remote, none that has the engine ask a registry, none to a forge that is
// waited for, and what is asked of the engine itself before it starts the first instance.
// How long that takes is the engine's affair on a busy machine, so it is held against what
// the engine takes for the same two calls by themselves.
func TestUndoMakesNoCallToGitOrARegistry(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	h := newHost(t)
	b := newBetween(t, h.dir, h.engine, rand.New(rand.NewPCG(1, 1)))
	at, asked := gitHTTP(t, h.dir, "")
	f := newStubborn(t)
	h.tells("gitea", f.at)
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
	require.Positive(t, f.asked.Load(), "the commits were told to no forge: the test shows nothing of it")

	f.silent.Store(true)
	reg.stop()
	mark, before := h.events.mark(), asked.Load()
	calls := len(b.asked())
	began := time.Now()
	code, out := h.run("rollout", "undo", app, "--reason", "checkout answers 500")
	require.Equal(t, 0, code, out)
	first := h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "start" })
	took := first.at().Sub(began)
	own := h.engine.ownTime(t, h.name)
	t.Logf("%s from the command to the engine's first start; the engine alone took %s to create and start one", took.Round(time.Millisecond), own.Round(time.Millisecond))
	require.LessOrEqual(t, took, max(5*time.Second, 10*own))
	h.await("it is undone", func(st status) bool {
		return h.ranAs("web", "one") && st.Sources[0].Sync == "Held" && st.service(app, "web").Phase == "Ready"
	})
	require.Equal(t, before, asked.Load(), "the remote was asked")
	all := b.asked()
	outside := regexp.MustCompile(`POST .*/(images/create|auth|build)$|GET .*/distribution/`)
	require.False(t, slices.ContainsFunc(all[calls:], outside.MatchString), "a registry was asked: %q", all[calls:])
	require.True(t, slices.ContainsFunc(all[:calls], outside.MatchString), "the pulls of the commits were not seen: the test shows nothing")

	// A look may come at any time, and is the same two lists whatever is to be done.
	look := regexp.MustCompile(`GET .*/(containers/json|networks|events)$`)
	starts := regexp.MustCompile(`POST .*/containers/[^/]+/start$`)
	n := slices.IndexFunc(all[calls:], starts.MatchString)
	require.GreaterOrEqual(t, n, 0)
	asks := slices.DeleteFunc(slices.Clone(all[calls:calls+n]), look.MatchString)
	slices.Sort(asks) // a look that came between asks the same again
	asks = slices.Compact(asks)
	t.Logf("asked of the engine before the first start, besides the lists of looks: %q", asks)
	require.LessOrEqual(t, len(asks), 6, "it needs to know that the image is here, and to create: %q", asks)
}

// ownTime is how long the engine takes by itself to create and start a container: the
// longest of three, since a busy machine is not busy all the time.
func (e *engine) ownTime(t *testing.T, host string) (longest time.Duration) {
	t.Helper()
	for i := range 3 {
		began := time.Now()
		id, err := e.start(fmt.Sprintf("%s-own-%d", host, i), "none", map[string]string{"gitring.e2e.own": host}, "serve")
		longest = max(longest, time.Since(began))
		if id != "" {
			t.Cleanup(func() { _ = e.remove(id) })
		}
		require.NoError(t, err)
	}
	return longest
}

// stubborn is a forge that takes every status, until it answers nobody any more.
type stubborn struct {
	at     string
	asked  atomic.Int64
	silent atomic.Bool
}

func newStubborn(t *testing.T) *stubborn {
	f, over := &stubborn{}, make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		if f.silent.Load() {
			select {
			case <-over:
			case <-r.Context().Done():
			}
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":1}`))
	}))
	f.at = s.URL
	t.Cleanup(func() { close(over); s.Close() })
	return f
}
