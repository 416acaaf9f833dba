package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARequestIsToldWithoutAnyName(t *testing.T) {
	for path, want := range map[string]string{
		"/v1.41/containers/json":                              "/containers/json",
		"/v1.41/containers/create":                            "/containers/create",
		"/v1.41/containers/3f2a/json":                         "/containers/{id}/json",
		"/v1.41/containers/3f2a":                              "/containers/{id}",
		"/v1.41/images/create":                                "/images/create",
		"/v1.41/images/registry.example:5000/team/api:1.2":    "/images/{id}",
		"/v1.41/images/team/api":                              "/images/{id}",
		"/v1.41/images/registry.example/team/api:1/json":      "/images/{id}/json",
		"/v1.41/distribution/ghcr.io/team/api@sha256:ab/json": "/distribution/{id}/json",
		"/v1.41/exec/99/start":                                "/exec/{id}/start",
		"/v1.41/networks/shop_default/connect":                "/networks/{id}/connect",
		"/_ping":                                              "/_ping",
		"/v1.41/events":                                       "/events",
		"/v1.41/volumes/shop_data":                            "/volumes/{id}",
	} {
		require.Equal(t, want, boundedRoute(path), path)
	}
}
