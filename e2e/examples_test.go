package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// The unit's configuration, with every place of it moved into the test's own
// folder, is one that a daemon serves by.
func TestTheSystemdExampleIsServed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	b, err := os.ReadFile("../deploy-examples/systemd/config.yaml")
	require.NoError(t, err)
	text := strings.NewReplacer("/etc/gitring/allowed_signers", h.repo.signers, "/var/lib/gitring", h.dir+"/state", "/srv/gitring", h.dir+"/data",
		"/run/gitring/gitring.sock", h.socket, "unix:///var/run/docker.sock", h.engine.url, "edge-1", h.name,
		"https://git.example.org/acme/infra.git", "file://"+h.repo.bare, "127.0.0.1:9480", freePort(t)).Replace(string(b))
	h.config = nil
	require.NoError(t, yaml.Unmarshal([]byte(text), &h.config))
	app := h.app("web")
	h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1")})})
	h.start()
	h.synced(h.repo.head())
	second := h.repo.pushed("Version 2", files{app + "/compose.yaml": h.compose(app, obj{"web": web("2")})})
	code, out := h.run("sync", "--wait", "prod")
	require.Equal(t, 0, code, out)
	require.Equal(t, second, h.status().Sources[0].Commit)
	require.Equal(t, "2", h.one("web").env("VERSION"))
}
