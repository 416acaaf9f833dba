package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// personsProxy is one that people have before their apps: how it is told to pass requests from
// one port of this host to another, and how it is run.
type personsProxy struct {
	name   string
	file   string
	config string // %[1]d is its port, %[2]s the app's, %[3]s its folder
	args   []string
}

var personsProxies = []personsProxy{
	{
		name: "nginx", file: "nginx.conf", args: []string{"-p", "%[3]s", "-e", "stderr", "-c", "%[3]s/nginx.conf"},
		config: `daemon off; worker_processes 1; pid %[3]s/pid; error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path %[3]s/body; proxy_temp_path %[3]s/proxy; fastcgi_temp_path %[3]s/f; uwsgi_temp_path %[3]s/u; scgi_temp_path %[3]s/s;
	upstream app { server 127.0.0.1:%[2]s; keepalive 8; }
	server {
		listen 127.0.0.1:%[1]d;
		location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_next_upstream off; }
	}
}
`,
	},
	{
		name: "haproxy", file: "haproxy.cfg", args: []string{"-db", "-f", "%[3]s/haproxy.cfg"},
		config: `defaults
	mode http
	retries 0
	timeout connect 60s
	timeout client 60s
	timeout server 60s
listen web
	bind 127.0.0.1:%[1]d
	server app 127.0.0.1:%[2]s
`,
	},
	{
		name: "caddy", file: "Caddyfile", args: []string{"run", "--config", "%[3]s/Caddyfile"},
		config: `{
	admin off
	persist_config off
	auto_https off
}
http://127.0.0.1:%[1]d {
	reverse_proxy 127.0.0.1:%[2]s
}
`,
	},
	{
		name: "traefik", file: "traefik.yaml", args: []string{"--configFile=%[3]s/traefik.yaml"},
		config: `entryPoints: {web: {address: "127.0.0.1:%[1]d"}}
providers: {file: {filename: "%[3]s/traefik.yaml"}}
http:
  routers: {web: {entryPoints: [web], rule: "PathPrefix(` + "`/`" + `)", service: web}}
  services: {web: {loadBalancer: {servers: [{url: "http://127.0.0.1:%[2]s"}]}}}
`,
	},
}

// byLabels finds the containers of an app by their labels.
var byLabels = personsProxy{
	name: "traefik", file: "traefik.yaml", args: []string{"--configFile=%[3]s/traefik.yaml"},
	config: `entryPoints: {web: {address: "127.0.0.1:%[1]d"}}
providers:
  docker: {exposedByDefault: false, constraints: "Label(` + "`com.docker.compose.project`, `%[2]s`" + `)"}
`,
}

// program is that of a proxy: in the path, or of scripts/proxies.sh.
func (p *personsProxy) program(t *testing.T) string {
	t.Helper()
	built, err := filepath.Abs(filepath.Join("../bin/proxies", p.name))
	require.NoError(t, err)
	if _, err := os.Stat(built); err == nil {
		return built
	}
	at, err := exec.LookPath(p.name)
	if err != nil {
		at, err = exec.LookPath("/usr/sbin/" + p.name)
	}
	if err != nil {
		t.Skipf("%s is not installed", p.name)
	}
	return at
}

// run starts the proxy before a port of this host, or an app, and returns its own port.
func (p *personsProxy) run(t *testing.T, h *host, before string) (port string) {
	t.Helper()
	program, dir := p.program(t), t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	port = h.freePort()
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	text := fmt.Sprintf(p.config, n, before, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, p.file), []byte(text), 0o644))
	var args []string
	for _, a := range p.args {
		args = append(args, strings.ReplaceAll(a, "%[3]s", dir))
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "DOCKER_HOST="+h.engine.url)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Log(said.String())
		}
	})
	h.until(p.name+" listens", func() bool {
		select {
		case <-ended:
			t.Fatalf("%s ended", p.name)
		default:
		}
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, 5*time.Second)
		return err == nil && c.Close() == nil
	})
	return port
}

// A proxy that a person has before the front's port, and that tries nothing twice by itself,
// loses no request in updates. Longer than 30 s, so GITRING_E2E_LONG asks for it.
func TestProxiesOfPeopleBeforeAFrontLoseNoRequest(t *testing.T) {
	if os.Getenv("GITRING_E2E_LONG") != "1" {
		t.Skip("longer than 30 s: GITRING_E2E_LONG=1 asks for it")
	}
	t.Parallel()
	updates := amount(t, "PROXY_UPDATES", 3, 20)
	for _, p := range personsProxies {
		t.Run(p.name, func(t *testing.T) {
			p.program(t)
			h := newHost(t)
			app, port := h.app("web"), h.freePort()
			version := func(n int) files {
				return files{app + "/compose.yaml": h.compose(app, obj{"web": fronted(strconv.Itoa(n), port, replicas(2))})}
			}
			first := h.repo.pushed("Version 0", version(0))
			h.start()
			h.synced(first)
			h.serves(port, "0")
			at := p.run(t, h, port)
			h.serves(at, "0")
			load := ask(at)
			load.more(h, 5)
			for n := 1; n <= updates; n++ {
				h.live(fmt.Sprintf("Version %d", n), version(n))
			}
			h.serves(at, strconv.Itoa(updates))
			all := load.lostNone(t, h)
			t.Logf("%s: %d updates, %d requests, none lost", p.name, updates, all)
		})
	}
}

// A proxy that goes by labels loses no request in updates, nor where a changed label makes the
// front anew: the old one serves until the proxy has left it. The router has another name then,
// because Traefik leaves out one that two containers define in two ways. Engines before 25 call a new
// front healthy after 30 s, so GITRING_E2E_LONG asks for it.
func TestAProxyThatGoesByLabelsLosesNoRequest(t *testing.T) {
	if os.Getenv("GITRING_E2E_LONG") != "1" {
		t.Skip("longer than 30 s: GITRING_E2E_LONG=1 asks for it")
	}
	t.Parallel()
	byLabels.program(t)
	updates, labels := amount(t, "PROXY_UPDATES", 3, 20), amount(t, "PROXY_LABELS", 1, 3)
	h := newHost(t)
	app := h.app("web")
	version := func(n, label int) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(strconv.Itoa(n), replicas(2), rollout(obj{"min_ready_time": "200ms"}), obj{
			"labels": obj{
				"traefik.enable": "true", "traefik.http.services.web.loadbalancer.server.port": "8080",
				fmt.Sprintf("traefik.http.routers.web%d.rule", label): "PathPrefix(`/`)",
			},
			"environment": obj{"ABRUPT": "1"}, "x-gitring": obj{"publish": "front"},
		})})}
	}
	first := h.repo.pushed("Version 0", version(0, 0))
	h.start()
	h.synced(first)
	front := h.one("web-front")
	at := byLabels.run(t, h, app)
	h.serves(at, "0")
	load := ask(at)
	load.more(h, 5)
	for n := 1; n <= updates; n++ {
		h.live(fmt.Sprintf("Version %d", n), version(n, 0))
	}
	require.Equal(t, identities([]*container{front}), identities([]*container{h.one("web-front")}))
	for label := 1; label <= labels; label++ {
		h.live(fmt.Sprintf("Label %d", label), version(updates, label))
		h.until("the old front is gone", func() bool { return len(h.containers("web-front")) == 1 })
	}
	require.NotEqual(t, identities([]*container{front}), identities([]*container{h.one("web-front")}))
	load.more(h, 5)
	all := load.lostNone(t, h)
	t.Logf("%d updates and %d new fronts, %d requests, none lost", updates, labels, all)
}
