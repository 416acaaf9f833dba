package e2e

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// onEngine are the stacks of testdata/corpus that are run here, with what of
// the engine's is looked at afterwards; needs is a device that not every machine has.
var onEngine = []struct {
	name, needs string
	services    int // containers that stay
	look        func(t *testing.T, h *host, app string)
}{
	{name: "behind-proxy", services: 2, look: onTwoNetworks},
	{name: "postgres-folder", services: 1, look: mountsOf("postgres", "/var/lib/postgresql/data rw", "/docker-entrypoint-initdb.d ro")},
	{name: "vpn-joined", needs: "/dev/net/tun", services: 3, look: joined},
	{name: "photo-library", services: 4, look: photos},
	{name: "git-forge", services: 2, look: mountsOf("server", "/data rw", "/etc/timezone ro", "/etc/localtime ro")},
	{name: "backup-job", services: 1, look: mountsOf("db", "/var/lib/mysql rw")},
	{name: "init-containers", services: 2, look: mountsOf("shop", "/data rw")},
	{name: "replicated-stateless", services: 4, look: mountsOf("gateway", "/etc/nginx/nginx.conf ro")},
	{name: "nextcloud", services: 4, look: mountsOf("db", "/var/lib/postgresql/data rw", "/run/secrets/postgres_db ro", "/run/secrets/postgres_password ro")},
	{name: "static-addresses", services: 2, look: func(t *testing.T, h *host, app string) {
		require.Equal(t, "10.213.8.53", h.of(app, "dns").address())
	}},
	{name: "include-stack", services: 3, look: mountsOf("db", "/docker-entrypoint-initdb.d/seed.sql ro", "/var/lib/postgresql/data rw")},
	{name: "extends-base", services: 3, look: mountsOf("web", "/app/settings.py ro")},
	{name: "old-style-links", services: 4, look: mountsOf("files", "/var/www rw")},
	{name: "external-volume", services: 1, look: mountsOf("vault", "/data rw")},
	{name: "site-only", services: 1, look: mountsOf("web", "/etc/nginx/conf.d/default.conf ro", "/usr/share/nginx/html ro")},
	{name: "seeded-data", services: 1, look: mountsOf("zabbix", "/export rw", "/var/lib/zabbix/conf rw")},
	{name: "sidecar-pid", services: 2, look: mountsOf("app", "/dumps rw")},
	{name: "hooks", services: 1, look: mountsOf("app", "/data rw")},
}

// TestWhatPeopleBringRuns deploys a third of the corpus in one commit, as an
// owner's host would, holds the requests to those of Compose, and a commit that changes
// nothing to touch nothing.
func TestWhatPeopleBringRuns(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	idle := idleImage(t, h.engine)
	h.config["policy"] = obj{"profile": "owner"}
	outside := h.app("outside")
	h.external(outside)

	ours := newRecorder(t, filepath.Join(h.dir, "ours"), h.engine)
	h.config["engine"] = obj{"kind": "docker", "url": ours.at}

	fs := files{}
	apps := map[string]string{}
	held := h.newStacks(idle, filepath.Join(h.dir, "data"))
	for _, c := range onEngine {
		if _, err := os.Stat(c.needs); c.needs != "" && err != nil {
			t.Logf("%s is left out: %v", c.name, err)
			continue
		}
		app := h.app(c.name)
		apps[c.name] = app
		h.ports = nil
		stack := h.brought(c.name, app, idle, outside)
		for name, text := range stack {
			fs[app+"/"+name] = text
		}
		if c.name != "hooks" { // they are newer than the Compose that was recorded
			held.add(app, c.name, stack, h.ports)
		}
	}
	first := h.repo.pushed("What runs already", fs)
	h.start()
	for _, app := range apps { // patience for each, not for all together
		h.await(app+" runs", func(st status) bool { return st.app(app).Health == "Healthy" && st.app(app).Commit == first })
	}
	h.synced(first)
	h.heldToCompose(held, ours) // TestTheEngineIsAskedForWhatComposeAsksFor has more of it
	for _, c := range onEngine {
		app, ok := apps[c.name]
		if !ok {
			continue
		}
		running := 0
		for _, container := range h.containers() {
			if container.Config.Labels["gitring.app"] == app && container.State.Running {
				running++
			}
		}
		require.Equal(t, c.services, running, app)
		c.look(t, h, app)
	}

	mark := h.events.mark()
	second := h.repo.pushed("Say something", files{"README.md": "hello\n"})
	h.synced(second)
	touched := h.events.after(mark, "create", "start", "kill", "die", "destroy")
	touched = slices.DeleteFunc(touched, func(e engineEvent) bool {
		return e.Actor.Attributes["gitring.service"] == "backup" // a job that runs at every commit
	})
	require.Empty(t, touched, "a commit that changes nothing touches nothing")
}

// of is the only container of a service of an app.
func (h *host) of(app, service string) *container {
	h.t.Helper()
	for _, c := range h.containers(service) {
		if c.Config.Labels["gitring.app"] == app {
			return c
		}
	}
	require.FailNow(h.t, "no container of "+app+"/"+service)
	return nil
}

// mountsOf are all mounts of a service, "target rw|ro", sorted.
func mountsOf(service string, want ...string) func(*testing.T, *host, string) {
	return func(t *testing.T, h *host, app string) {
		var got []string
		for _, m := range h.of(app, service).Mounts {
			mode := "ro"
			if m.RW {
				mode = "rw"
			}
			got = append(got, m.Destination+" "+mode)
		}
		require.ElementsMatch(t, want, got, "%s/%s", app, service)
	}
}

// photos has names of its own, and a cache whose image declares a volume.
func photos(t *testing.T, h *host, app string) {
	require.Equal(t, "/"+h.app("photos_server"), h.of(app, "server").Name)
	c := h.of(app, "redis")
	require.Len(t, c.Mounts, 1)
	require.Equal(t, "/data", c.Mounts[0].Destination)
	vols, err := h.engine.volumes("gitring.host=" + h.name)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(vols, func(v string) bool {
		return strings.HasPrefix(v, app+"_redis_1_") && strings.Contains(c.Mounts[0].Source, v)
	}), "%s of %v: a volume with a name outlives its container", c.Mounts[0].Source, vols)
}

func onTwoNetworks(t *testing.T, h *host, app string) {
	nets := h.of(app, "app").NetworkSettings.Networks
	require.Len(t, nets, 2)
	require.Contains(t, nets, h.app("outside"))
	require.Len(t, h.of(app, "db").NetworkSettings.Networks, 1)
}

func joined(t *testing.T, h *host, app string) {
	owner := h.of(app, "gluetun").ID
	for _, joiner := range []string{"torrent", "indexer"} {
		var c struct{ HostConfig struct{ NetworkMode string } }
		require.NoError(t, h.engine.call("GET", "/containers/"+h.of(app, joiner).ID+"/json", nil, nil, &c))
		require.Equal(t, "container:"+owner, c.HostConfig.NetworkMode)
	}
}

// external makes a network and a volume of others, and takes them away again.
func (h *host) external(name string) {
	h.t.Helper()
	body := fmt.Sprintf(`{"Name":%q,"Labels":{"gitring-e2e":%q},"IPAM":{"Config":[{"Subnet":%q}]}}`, name, h.name, subnet())
	require.NoError(h.t, h.engine.call("POST", "/networks/create", nil, strings.NewReader(body), nil))
	body = fmt.Sprintf(`{"Name":%q,"Labels":{"gitring-e2e":%q}}`, name, h.name)
	require.NoError(h.t, h.engine.call("POST", "/volumes/create", nil, strings.NewReader(body), nil))
	h.t.Cleanup(func() {
		h.kill()
		_ = h.engine.clear("gitring.host=" + h.name)
		_ = h.engine.call("DELETE", "/networks/"+name, nil, nil, nil)
		_ = h.engine.call("DELETE", "/volumes/"+name, url.Values{"force": {"1"}}, nil, nil)
	})
}

// idleImage makes the image that stands in for all others, and cached(it) for
// those of caches, which declare a VOLUME that no Compose file speaks of. Each test
// gets a name of its own: the first one that ends takes its image away.
func idleImage(t *testing.T, e *engine) string {
	t.Helper()
	name := fmt.Sprintf("gitring-idle:%d-%d", os.Getpid(), idleImages.Add(1))
	bin := filepath.Join(t.TempDir(), "idle")
	require.NoError(t, goBuild(bin, "./testdata/idle"))
	b, err := os.ReadFile(bin)
	require.NoError(t, err)
	paths := []string{"idle", "cron.sh", "api"}
	for _, tool := range []string{"sh", "pg_isready", "redis-cli", "curl", "healthcheck.sh", "true", "chown", "app"} {
		paths = append(paths, "bin/"+tool)
	}
	changes := []string{`ENTRYPOINT ["/idle"]`, `ENV PATH=/bin`}
	require.NoError(t, e.loadProgram(name, b, paths, changes...))
	require.NoError(t, e.loadProgram(cached(name), b, paths, append(changes, `VOLUME /data`)...))
	t.Cleanup(func() { e.unload(name); e.unload(cached(name)) })
	return name
}

var idleImages atomic.Int64

func cached(image string) string { return image + "-cache" }

// What of a file would meet the machine, or another test, is replaced.
var (
	anyImage  = regexp.MustCompile(`\bimage: (?:\$\{[^}]*\}|[^,}\n])+`)
	hostPort  = regexp.MustCompile(`(["'\[ ](?:127\.0\.0\.1:)?)\d{2,5}:(\d{2,5}(?:/\w+)?["'\],\n])`)
	published = regexp.MustCompile(`published: "\d+"`)
	pace      = regexp.MustCompile(`interval: \d+[sm]`)
	period    = regexp.MustCompile(`start_period: \d+[sm]`)
	ownName   = regexp.MustCompile(`(?m)^name: .*\n`)
	givenName = regexp.MustCompile(`container_name: (\S+)`)
)

// freePort is the number of a port of the host that nobody has.
func (h *host) freePort() string {
	h.t.Helper()
	_, port, err := net.SplitHostPort(freePort(h.t))
	require.NoError(h.t, err)
	h.ports = append(h.ports, port)
	return port
}

// brought is a stack of the corpus as this host can take it: with the image
// that stands in for all others, free ports, names of its own, and a network
// whose subnet the test chose.
func (h *host) brought(name, app, idle, outside string) files {
	h.t.Helper()
	root := filepath.Join("testdata", "corpus", name)
	fs := files{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		text := string(b)
		if strings.HasSuffix(rel, ".yaml") || strings.HasSuffix(rel, ".yml") {
			text = anyImage.ReplaceAllStringFunc(text, func(s string) string {
				if strings.Contains(s, "redis") || strings.Contains(s, "valkey") {
					return "image: " + cached(idle)
				}
				return "image: " + idle
			})
			text = hostPort.ReplaceAllStringFunc(text, func(s string) string {
				return hostPort.ReplaceAllString(s, "${1}"+h.freePort()+":${2}")
			})
			text = pace.ReplaceAllString(period.ReplaceAllString(text, "start_period: 1s"), "interval: 1s")
			text = strings.ReplaceAll(text, "healthcheck:\n      disable: false", "healthcheck: {test: [CMD, 'true'], interval: 1s}")
			text = strings.ReplaceAll(text, "65536", "1024") // more than this machine may have
			text = published.ReplaceAllStringFunc(text, func(string) string { return fmt.Sprintf("published: %q", h.freePort()) })
			text = ownName.ReplaceAllString(text, "")
			text = givenName.ReplaceAllStringFunc(text, func(s string) string {
				return "container_name: " + h.app(strings.TrimPrefix(s, "container_name: "))
			})
			text = strings.ReplaceAll(text, "name: vaultwarden", "name: "+outside)
			text = strings.ReplaceAll(text, "proxy:\n    external: true", "proxy:\n    name: "+outside+"\n    external: true")
		}
		fs[rel] = text
		return err
	})
	require.NoError(h.t, err)
	if text := fs["docker-compose.yml"]; text != "" {
		fs["compose.yaml"] = text
		delete(fs, "docker-compose.yml")
	}
	fs["compose.override.yaml"] = override(h.t, fs["compose.yaml"])
	return fs
}

// override gives the app a subnet of its own, and lets services count as ready
// soon: what is looked at here does not need the usual ten seconds.
func override(t *testing.T, compose string) string {
	t.Helper()
	var file struct {
		Services map[string]map[string]any
		Networks map[string]struct{ External bool }
	}
	require.NoError(t, yaml.Unmarshal([]byte(compose), &file))
	services := obj{}
	for name, s := range file.Services {
		if s["x-gitring"] == nil {
			services[name] = obj{"x-gitring": obj{"rollout": obj{"min_ready_time": "2s"}}}
		}
	}
	laid := obj{"services": services}
	if !file.Networks["default"].External {
		laid["networks"] = obj{"default": obj{"ipam": obj{"config": []any{obj{"subnet": subnet()}}}}}
	}
	b, err := yaml.Marshal(laid)
	require.NoError(t, err)
	return string(b)
}
