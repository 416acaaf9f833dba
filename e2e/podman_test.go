package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The demo's story on Podman's socket. It takes a Podman of its own, and a minute: make podman.
func TestTheStoryOfTheDemoIsToldOnPodman(t *testing.T) {
	if os.Getenv("GITRING_PODMAN") == "" || os.Getenv("GITRING_E2E_LONG") == "" {
		t.Skip("takes a Podman of its own: make podman")
	}
	reg := newRegistry(t)
	reg.push("one")
	res, err := local.http.Get("http://engine/v1.41/distribution/" + reg.at + "/web:1/json")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	if res.StatusCode != http.StatusNotFound {
		t.Logf("this Podman asks registries by itself: %s", res.Status)
	}
	h := newHost(t)
	app := h.app("demo")
	tagged := func(version string) obj {
		return web("", obj{"image": reg.at + "/web:" + version, "pull_policy": "missing", "environment": nil})
	}
	checked := func(version string) obj {
		return obj{
			"image": image, "pull_policy": "never", "environment": obj{"VERSION": version},
			"healthcheck": obj{"test": []string{"CMD", "/app", "check", "http://127.0.0.1:8080/healthz"}, "interval": "1s", "timeout": "20s", "retries": 3},
			"x-gitring":   obj{"rollout": obj{"min_ready_time": "500ms", "start_timeout": "80s", "failure_threshold": 1}},
		}
	}
	joined := func(version string) obj {
		return obj{
			"image": image, "pull_policy": "never", "environment": obj{"VERSION": version, "TAKES": "3600000"}, "network_mode": "service:owner",
			"command": []string{"job"}, "x-gitring": obj{"rollout": obj{"min_ready_time": "500ms"}},
		}
	}
	file := func(web, tag, health, owner, side obj) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web, "tag": tag, "health": health, "owner": owner, "side": side})}
	}
	h.start()
	h.deployed("The first", file(web("1", replicas(2)), tagged("1"), checked("1"), web("1"), joined("1")))
	h.await("all is well", func(st status) bool { return st.app(app).Health == "Healthy" })
	require.Contains(t, h.one("tag").env("VERSION"), "one", "the tag is resolved and pulled")
	settled(h)
	first := ids(h.containers("web"))

	// A rolling update, of each kind of service.
	reg.push("two")
	good := file(web("2", replicas(2)), tagged("two"), checked("2"), web("2"), joined("2"))
	h.deployed("The second", good)
	h.await("all is well", func(st status) bool { return st.app(app).Health == "Healthy" })
	settled(h)
	for _, service := range []string{"web", "health", "owner", "side"} {
		require.True(t, h.ranAs(service, "2"), service)
	}
	require.True(t, h.ranAs("tag", "two"))
	require.NotSubset(t, first, ids(h.containers("web")))
	require.Equal(t, "container:"+h.one("owner").ID, modeOf(t, h.one("side").ID), "it is in the namespace of the one that serves")

	// What never becomes ready is taken back; the others were not touched.
	before := identities(h.containers())
	h.repo.pushed("A broken one", file(web("3", replicas(2), broken()), tagged("two"), checked("2"), web("2"), joined("2")))
	h.until("the broken one is taken back", func() bool { _, ok := h.journalled("rollout.restored", app, "web", ""); return ok })
	h.until("the good ones serve alone", func() bool { return len(h.containers("web")) == 2 })
	require.Equal(t, before, identities(h.containers()), "nothing that served was touched")

	// An unsigned commit changes nothing.
	h.repo.write(file(web("4", replicas(2)), tagged("two"), checked("2"), web("2"), joined("2")))
	h.repo.commit("An unsigned one", "--no-gpg-sign")
	h.repo.push()
	h.await("the unsigned one is refused", func(st status) bool {
		return st.Sources[0].Refusal != nil && st.Sources[0].Refusal.Code == "Unsigned"
	})
	require.Equal(t, before, identities(h.containers()))
	h.repo.git("reset", "-q", "--hard", "HEAD~1")

	// Taking the broken one back creates nothing.
	h.deployed("Back", good)
	settled(h)
	require.Equal(t, before, identities(h.containers()))

	// Podman's service is started again, and containers go on; events are heard afterwards.
	_, drifts := h.journalled("drift.seen", app, "web", "")
	require.False(t, drifts, "nobody did anything by hand")
	old := servicePID(t)
	require.NoError(t, syscall.Kill(old, syscall.SIGTERM))
	h.until("Podman's service is another one", func() bool { return servicePID(t) != old && local.ping() == nil })
	told := h.events.after(0)
	h.events = local.listen(t, h.name)
	for _, e := range told {
		h.events.add(e)
	}
	h.await("the engine is there", func(st status) bool { return st.Engine == "" && st.app(app).Health == "Healthy" })
	require.Equal(t, before, identities(h.containers()))
	require.NoError(t, local.kill(h.containers("web")[0].ID))
	h.until("what died runs again", func() bool { return len(h.containers("web")) == 2 && h.ranAs("web", "2") })
	h.deployed("After the restart", file(web("5", replicas(2)), tagged("two"), checked("5"), web("2"), joined("2")))
	settled(h)
	require.True(t, h.ranAs("web", "5"))
	require.True(t, h.ranAs("health", "5"))
}

// modeOf is the network mode of a container.
func modeOf(t *testing.T, id string) string {
	t.Helper()
	var c struct{ HostConfig struct{ NetworkMode string } }
	require.NoError(t, local.call("GET", "/containers/"+id+"/json", nil, nil, &c))
	return c.HostConfig.NetworkMode
}

// servicePID is the process of Podman's service by now.
func servicePID(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile(os.Getenv("GITRING_PODMAN_PID"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	require.NoError(t, err, fmt.Sprintf("%q", b))
	return pid
}
