package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Config is the engine's, as far as these tests send it.
type Config struct {
	Labels map[string]string
	Env    []string
}

// Body is a container's request, by the names of its fields.
type Body struct {
	Config     *Config
	HostConfig *Host
}

// Host is the engine's HostConfig, as far as these tests send it.
type Host struct {
	Mounts  []Mount
	Runtime string
}

func init() { roots["policy.Config"], roots["policy.Host"] = "Config", "HostConfig" } // as they stand inside a request

const (
	allow = ""
	deny  = "labels.steering"
)

// Labels that programs with the engine's socket read, as their documentation writes them.
var steeringLabels = []struct{ label, value, rule string }{
	{"traefik.enable", "true", allow},
	{"traefik.http.routers.web.rule", "Host(`example.org`)", allow},
	{"traefik.http.routers.web.service", "web", allow},
	{"traefik.http.routers.web.service", "web@docker", allow},
	{"traefik.http.routers.web.service", "noop@internal", allow},
	{"traefik.http.routers.web.middlewares", "auth@file,secure@internal", allow},
	{"traefik.http.routers.web.tls.options", "default@file", allow},
	{"traefik.http.services.web.loadbalancer.serverstransport", "insecure@file", allow},
	{"traefik.docker.network", "proxy", allow},
	{"traefik.http.routers.web.service", "api@internal", deny},
	{"traefik.http.routers.web.service", "dashboard@internal", deny},
	{"traefik.http.routers.web.service", "rest@internal", deny},
	{"traefik.http.routers.web.service", "admin@file", deny},
	{"traefik.tcp.routers.web.service", "db@file", deny},
	{"Traefik.HTTP.Routers.web.Service", " API@Internal ", deny},
	{"traefik.http.middlewares.e.errors.service", "errors@file", deny},
	{"traefik.http.services.web.weighted.services[0].name", "api@internal", deny},
	{"traefik.http.services.web.failover.fallback", "x@file", deny},

	{"ofelia.enabled", "true", allow},
	{"ofelia.job-exec.backup.schedule", "@daily", allow},
	{"ofelia.job-exec.backup.command", "container", allow},
	{"ofelia.job-exec.container.command", "x", allow},
	{"ofelia.job-run.x.image", "alpine", deny},
	{"ofelia.job-local.x.command", "sh", deny},
	{"ofelia.job-service-run.x.image", "a", deny},
	{"ofelia.job-exec.x.container", "other", deny},
	{"ofelia.job-exec.x.Container", "other", deny},
	{"ofelia.job-exec.x.container.y", "other", deny},
	{"OFELIA.job-exec.x.privileged", "true", deny},
	{"chadburn.job-run.x.volume", "/:/host", deny},

	{"io.portainer.accesscontrol.public", "", deny},
	{"io.portainer.accesscontrol.teams", "dev", deny},
	{"io.portainer.agent", "true", allow},
	{"com.docker.stack.namespace", "shop", deny},
	{"com.docker.swarm.service.name", "shop", deny},

	{"caddy", "example.org", allow},
	{"caddy_0", "example.org", allow},
	{"caddy_ingress_network", "proxy", allow},
	{"caddyfile", "x", allow},
	{"caddy.reverse_proxy", "{{upstreams 80}}", allow},
	{"caddy_1.reverse_proxy", "{{ upstreams https 443 }}", allow},
	{"caddy.reverse_proxy", `/api/* {{upstreams "http" 8080}}`, allow},
	{"caddy.1_handle.reverse_proxy", "{{upstreams}}", allow},
	{"caddy.handle_0.0_reverse_proxy", "{{upstreams}}", allow},
	{"caddy.@match.path", "/x", allow},
	{"caddy.@match.not.root", "/x", allow},
	{"caddy.tls.dns", "cloudflare {env.TOKEN}", allow},
	{"caddy.tls", "{$EMAIL}", allow},
	{"caddy.basic_auth.admin", "{env.HASH}", allow},
	{"caddy.header.Strict-Transport-Security", `"max-age=31536000;"`, allow},
	{"caddy.header./*.X-Frame-Options", "DENY", allow},
	{"caddy.reverse_proxy.header_up", "X-Real-IP {remote_host}", allow},
	{"caddy.reverse_proxy.transport.tls_insecure_skip_verify", "", allow},
	{"caddy.encode", "zstd gzip", allow},
	{"caddy.redir", "https://example.org{uri} permanent", allow},
	{"caddy.log.output", "stdout", allow},
	{"caddy.route.uri", "strip_prefix /x", allow},
	{"caddy.handle_path.@x.path", "/y", allow},
	{"caddy.respond", `/ "{http.request.host}" 200`, allow},
	{"caddy.import", "snippet", deny},
	{"caddy.handle.root", "* /data", deny},
	{"caddy.handle.1_root", "* /data", deny},
	{"caddy.root", "* /", deny},
	{"caddy.file_server", "browse", deny},
	{"caddy.1_import", "x", deny},
	{"caddy.import_1", "x", deny},
	{"caddy_0.import", "x", deny},
	{"caddy.admin", "0.0.0.0:2019", deny},
	{"caddy.email", "x@example.org", deny},
	{"caddy.route.handle.file_server", "", deny},
	{"caddy.reverse_proxy.handle_response.file_server", "", deny},
	{"caddy.reverse_proxy.1_handle_response_0.root", "/data", deny},
	{`caddy.a\.import`, "x", deny},
	{"caddy..import", "x", deny},
	{"caddy.", "x", deny},
	{"caddy.log.}", "", deny},
	{"caddy.log.a\tb", "", deny},
	{"caddy.handle", "{ root * /data", deny},
	{"caddy.respond", "x\n} import y", deny},
	{"caddy.respond", `{{ env "CF_TOKEN" }}`, deny},
	{"caddy", `{{ index .Labels "x" }}`, deny},
	{"caddy.respond", "{env.CF_TOKEN}", deny},
	{"caddy.header.X", "{$CF_TOKEN}", deny},
	{"caddy.respond", "{file./data/key}", deny},
	{"caddy.tls.dns", "{file./data/key}", deny},
	{"caddy_controlled_server", "", deny},

	{"com.centurylinklabs.watchtower.enable", "true", allow},
	{"homepage.href", "http://x", allow},
	{"diun.enable", "true", allow},
	{"dozzle.group", "x", allow},
	{"org.opencontainers.image.source", "https://example.org", allow},
	{"docker-volume-backup.stop-during-backup", "true", allow},
	{"autoheal", "true", allow},
	{"com.github.nginx-proxy.nginx-proxy.keepalive", "64", allow},
}

func TestALabelDoesNotSteerWhatHoldsTheEngine(t *testing.T) {
	for _, c := range steeringLabels {
		t.Run(c.label+"="+c.value, func(t *testing.T) {
			for _, profile := range []Profile{Compose, Owner} {
				found := Check(Rules{Profile: profile}, container(Body{Config: &Config{Labels: map[string]string{c.label: c.value}}}))
				if c.rule == allow {
					require.Empty(t, found)
					continue
				}
				require.Len(t, found, 1)
				require.Equal(t, c.rule, found[0].Rule)
				require.Equal(t, profile == Owner, found[0].Verdict == Power)
			}
		})
	}
}

// Traefik routes to its own dashboard by labels of its own container, which mounts the
// socket; what only looks like a socket gives nothing.
func TestOnlyWhoHoldsTheSocketNamesTraefiksOwnServices(t *testing.T) {
	for source, want := range map[string]string{
		"/var/run/docker.sock": "", "/run/podman/podman.sock": "", "/srv/web/docker.sock": "labels.steering", "/etc/localtime": "labels.steering",
	} {
		body := Body{
			Config:     &Config{Labels: map[string]string{"traefik.http.routers.api.service": "api@internal"}},
			HostConfig: &Host{Mounts: []Mount{{Type: "bind", Source: source, Target: "/s", ReadOnly: true}}},
		}
		got := ""
		for _, f := range Check(Rules{Profile: Owner}, container(body)) {
			if f.Rule == deny {
				got = f.Rule
			}
		}
		require.Equal(t, want, got, source)
	}
}
