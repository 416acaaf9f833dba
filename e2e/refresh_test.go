package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// outdated is what the verb says of the one service.
func (h *host) outdated() (row struct {
	App, Service, Image, Pinned, Now, Reason string
	Newer                                    bool
},
) {
	h.t.Helper()
	code, out := h.run("outdated", "-o", "json")
	require.Equal(h.t, 0, code, out)
	rows := []any{&row}
	require.NoError(h.t, json.Unmarshal([]byte(out), &rows), out)
	require.Len(h.t, rows, 1)
	return row
}

// A tag that moves changes nothing by itself. Who asks is told, and who asks
// for it gets it, as a rollout like any other. A registry that is away keeps
// nothing from being healed, and is named.
func TestRefresh(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	h := newHost(t)
	app := h.app("web")
	service := web("", obj{"image": reg.at + "/web:1", "pull_policy": nil, "environment": nil})
	first := reg.push("one")
	h.start()
	h.deployed("The first", files{app + "/compose.yaml": h.compose(app, obj{"web": service})})
	before := h.one("web")
	require.Equal(t, "one", before.env("VERSION"))
	require.False(t, h.outdated().Newer)

	second := reg.push("two")
	h.deployed("Of no matter", files{"README.md": "hello"})
	row := h.outdated()
	require.Equal(t, reg.at+"/web:1", row.Image)
	require.Equal(t, first, row.Pinned)
	require.Equal(t, second, row.Now)
	require.True(t, row.Newer)
	code, out := h.run("outdated", app, "--detailed-exitcode")
	require.Equal(t, 2, code, out)
	require.Contains(t, out, app+"/web")
	require.Equal(t, identities([]*container{before}), identities(h.containers()), "a moved tag moves nothing")

	reg.pushAs("next", "2", "2-rc1")
	code, out = h.run("outdated", app, "--tags", "-o", "json")
	require.Equal(t, 0, code, out)
	require.Regexp(t, `"tags":\s*\[\s*"2"\s*\]`, out, "of the same shape alone")

	code, out = h.run("refresh")
	require.Equal(t, 2, code, out)
	code, out = h.run("refresh", "nothing", "--reason", "r")
	require.Equal(t, 4, code, out)
	code, out = h.run("refresh", app+"/web", "--reason", "a fix in the base image")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, app+"/web "+reg.at+"/web:1: "+first[:19]+" -> "+second[:19])
	h.await("the new image runs", func(st status) bool {
		cs := h.containers("web")
		return len(cs) == 1 && cs[0].env("VERSION") == "two" && st.Sources[0].Sync == "Synced"
	})
	code, out = h.run("events", "-o", "json")
	require.Equal(t, 0, code, out)
	require.Regexp(t, `"kind":"refresh.asked",.*"actor":"[^"]+","via":"socket","reason":"a fix in the base image"`, out)
	require.False(t, h.outdated().Newer)

	// Unchanged is a no-op.
	after := h.one("web")
	code, out = h.run("refresh", app, "--reason", "once more")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "nothing is newer")
	h.await("it was looked up", func(st status) bool { return st.Sources[0].Sync == "Synced" })
	h.deployed("Of no matter either", files{"README.md": "hello again"})
	require.Equal(t, identities([]*container{after}), identities(h.containers()))

	// The registry is away.
	reg.stop()
	require.NoError(t, h.engine.remove(after.ID))
	h.await("it is healed", func(st status) bool {
		cs := h.containers("web")
		return len(cs) == 1 && cs[0].ID != after.ID && st.service(app, "web").Phase == "Ready"
	})
	require.Equal(t, "two", h.one("web").env("VERSION"))
	healed := identities(h.containers())
	code, out = h.run("refresh", app, "--reason", "now")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "error: cannot refresh "+app+"/web: cannot resolve image "+reg.at+"/web:1")
	require.Contains(t, out, "hint: what runs stays as it is; try again when the registry answers")
	row = h.outdated()
	require.Empty(t, row.Now)
	require.False(t, row.Newer)
	require.Contains(t, row.Reason, "connection refused")
	require.Equal(t, "Synced", h.status().Sources[0].Sync)
	require.Equal(t, healed, identities(h.containers()))

	// No registry is asked about an image that only this host has.
	h.deployed("An image of its own", files{app + "/compose.yaml": h.compose(app, obj{"web": web("", nil)})})
	code, out = h.run("outdated", app, "--tags", "-o", "json")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "this host's own image")
	require.NotContains(t, out, "tags_reason")
}
