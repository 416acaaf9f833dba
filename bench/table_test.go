package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpread(t *testing.T) {
	ms := time.Millisecond
	require.Equal(t, 3*ms, spread{5 * ms, ms, 3 * ms}.median())
	require.Equal(t, 3*ms, spread{5 * ms, ms, 2 * ms, 4 * ms}.median(), "of two in the middle, the mean")
	require.Equal(t, "3.0 ms (1.0 ms to 50 ms)", spread{50 * ms, ms, 3 * ms}.String())
	require.Equal(t, "nothing", spread{}.String())
}

func TestRouteLeavesIDsOut(t *testing.T) {
	for path, want := range map[string]string{
		"/_ping":                             "/_ping",
		"/v1.41/containers/json":             "/containers/json",
		"/v1.41/containers/create":           "/containers/create",
		"/v1.41/containers/0a1b/start":       "/containers/{id}/start",
		"/v1.41/containers/0a1b":             "/containers/{id}",
		"/v1.41/networks":                    "/networks",
		"/v1.41/images/sha256:0a1b/json":     "/images/{id}/json",
		"/v1.41/distribution/web:1.2.3/json": "/distribution/{id}/json",
	} {
		require.Equal(t, want, route(path), path)
	}
}

func TestTable(t *testing.T) {
	var b table
	b.add(row{"look", "1.0 ms", "50 ms", "", "by hand"})
	var out strings.Builder
	b.print(&out, "a machine")
	require.Equal(t, "\na machine\n\nfigure  measured  target  peer  how\nlook    1.0 ms    50 ms   -     by hand\n", out.String())
	require.Equal(t, "2 GET /b, 1 GET /a", counts(map[string]int{"GET /a": 1, "GET /b": 2}))
}
