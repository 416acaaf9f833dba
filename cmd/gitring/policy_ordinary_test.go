package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// What ordinary Compose files hold asks for nothing that has to be told.
var ordinary = map[string]map[string]string{
	"a site, its database and its cache": {"shop/compose.yaml": `
services:
  web:
    image: nginx:1.27
    ports: ["80:80", "81:81", "443:443", "127.0.0.1:8080:8080", "9000-9002:9000-9002/udp", "8443"]
    volumes: [./nginx.conf:/etc/nginx/nginx.conf:ro, ./uploads:/uploads, ./logs:/logs:z, static:/static]
    depends_on: {db: {condition: service_healthy}, cache: {condition: service_started}}
    healthcheck: {test: [CMD, curl, -f, http://localhost], interval: 10s, timeout: 2s, retries: 3, start_period: 5s}
    logging: {driver: json-file, options: {max-size: 10m, max-file: "3"}}
    restart: unless-stopped
    environment: {A: b}
    labels: {traefik.enable: "true", traefik.http.routers.web.rule: "Host(` + "`example.org`" + `)"}
    init: true
    read_only: true
    cap_drop: [ALL]
    cap_add: [NET_BIND_SERVICE, CHOWN, SETUID, SETGID]
    security_opt: ["no-new-privileges:true"]
    tmpfs: [/run, "/tmp:size=64m,mode=1777", "/cache:size=1g,uid=33"]
    networks: [front, back]
  db:
    image: postgres:16
    volumes: [data:/var/lib/postgresql/data, /etc/localtime:/etc/localtime:ro, /usr/share/zoneinfo/UTC:/z:ro]
    shm_size: 256mb
    user: "999:999"
    stop_grace_period: 1m
    networks: [back]
  cache:
    image: redis:7
    command: redis-server --save 60 1
    ulimits: {nofile: {soft: 1024, hard: 65536}, memlock: -1}
    sysctls: {net.core.somaxconn: 1024, net.ipv4.tcp_keepalive_time: 60}
    mem_limit: 512m
    cpus: 0.5
    pids_limit: 100
    oom_score_adj: 100
    networks: {back: {aliases: [redis], ipv4_address: 10.90.0.5}}
volumes: {data: , static: {labels: {a: b}}}
networks:
  front: {external: true, name: proxy}
  back: {driver_opts: {com.docker.network.driver.mtu: 1400}, ipam: {config: [{subnet: 10.90.0.0/24}]}}
`, "shop/nginx.conf": "x"},
	"what sits beside the app": {"compose.yaml": `
services:
  vpn: {image: a, dns: 1.1.1.1, extra_hosts: ["host.docker.internal:host-gateway", "a:10.0.0.1"], hostname: h, domainname: d.example}
  joined: {image: a, network_mode: service:vpn, ipc: service:shared, volumes_from: ["vpn:ro"]}
  shared: {image: a, ipc: shareable, post_start: [{command: [x], user: root}], pre_stop: [{command: [y]}]}
  alone: {image: a, network_mode: none, stdin_open: true, tty: true, annotations: {org.opencontainers.image.title: b}, group_add: ["44"]}
  limited: {image: a, deploy: {replicas: 3, resources: {limits: {cpus: "1", memory: 1G, pids: 50}, reservations: {memory: 100M}}}}
  storing: {image: a, volumes: [/var/lib/anonymous, own:/o, mine:/m, ./data:/d, "/srv/gitring/abs:/a"]}
volumes: {own: {external: true}, mine: {name: a_name}}
`},
	"files that Compose mounts": {"compose.yaml": `
services:
  web: {image: a, configs: [c], secrets: [{source: s, target: /run/secrets/t}], env_file: [x.env], platform: linux/amd64, container_name: site, scale: 1}
configs: {c: {content: "a=b"}}
secrets: {s: {file: ./s.txt}}
`, "s.txt": "x", "x.env": "A=b\n"},
}

func TestOrdinaryComposeFilesAskForNothing(t *testing.T) {
	for name, files := range ordinary {
		for _, profile := range []policy.Profile{policy.Compose, policy.Owner} {
			t.Run(name+" under "+string(profile), func(t *testing.T) {
				plan, refusals := judged(t, profile, files)
				require.Empty(t, refusals)
				require.Len(t, plan.Apps, 1)
				require.Empty(t, plan.Apps[0].Powers)
			})
		}
	}
}

func TestAnAppIsRefusedWithAllThatItAsksForAndItsNeighboursGoOn(t *testing.T) {
	files := map[string]string{
		"shop/compose.yaml": plainWeb,
		"web/compose.yaml":  "services:\n  web:\n    image: nginx\n    privileged: true\n    pid: host\n    network_mode: host\n",
	}
	plan, refusals := judged(t, policy.Compose, files)
	require.Len(t, plan.Apps, 1)
	require.Len(t, refusals, 3, "one for each thing")
	var lines []int
	for _, r := range refusals {
		require.Equal(t, ring.PolicyDenied, r.Code)
		lines = append(lines, r.Line)
	}
	require.Equal(t, []int{4, 5, 6}, lines)
	r := plan.Refused["web"]
	require.Equal(t, "PolicyDenied web/compose.yaml:4: services.web.privileged: gives the container the host: every device and the whole kernel (and 2 more: "+
		"line 5: services.web.pid host: lets the container see and stop every process of the host; "+
		"line 6: services.web.network_mode host: shares the host's network, with every service on it)", r.Error())
	require.Equal(t, "remove it; or grant it on this host: gitring policy suggest --app web prints the lines", r.Hint)
	require.Equal(t, "nginx", plan.Claims["web"].Services[0].Spec.Image, "what it would take over is known")

	plan, refusals = judged(t, policy.Owner, files)
	require.Empty(t, refusals)
	web, _ := plan.App("web")
	require.Equal(t, []string{
		"services.web.network_mode host: shares the host's network, with every service on it",
		"services.web.pid host: lets the container see and stop every process of the host",
		"services.web.privileged: gives the container the host: every device and the whole kernel",
	}, web.Powers)
}

// The daemon's own paths are those of its configuration, wherever they are.
func TestNoProfileMountsWhatTheConfigurationNames(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`host: edge-1
state: /mnt/state
data_root: /mnt/data
env: {dir: /mnt/env}
listen: {socket: /mnt/sock/g.sock}
policy: {profile: owner}
sources:
  - name: prod
    url: https://git.example.org/infra.git
    auth: {username: bot, password_file: /opt/keys/token}
    trust: {allowed_signers: /opt/trust/signers, signers: /opt/bound/signers.yaml}
    webhook: {forge: github, secret_file: /opt/keys/hook}
    status: {forge: gitea, token_file: /opt/keys/status, api_url: "https://git.example.org/api/v1", repo: a/b}
`), 0o600))
	c, err := config.Read(file)
	require.NoError(t, err)
	j := admission.For(c)
	app := ring.App{Name: "web", Path: "web"}
	for path, may := range map[string]bool{
		"/mnt/state": false, "/mnt/state/gitring.db": false, "/mnt/env/web/.env": false, "/mnt/sock/g.sock": false, file: false,
		"/opt/keys/token": false, "/opt/keys/hook": false, "/opt/keys/status": false, "/opt/trust/signers": false, "/opt/bound/signers.yaml": false, "/etc/gitring/x": false,
		"/mnt/data/web/x": true, "/mnt": true, "/opt": true, "/mnt/stately": true, "/": true,
	} {
		s := ring.Service{Name: "web", Spec: ring.Spec{Image: "a", Mounts: []ring.Mount{{Kind: ring.MountBind, Source: path, Target: "/x", ReadOnly: true}}}}
		app.Services = []ring.Service{s}
		refusals, powers := j.App(&app, policy.Whose{})
		require.Equal(t, may, len(refusals) == 0, "%s: %v", path, refusals)
		require.Equal(t, may && path != "/mnt/data/web/x", len(powers) == 1, path)
	}
}

// Right before the call the same judge looks at what is sent: a plan that came
// into force under another policy is not carried on.
func TestWhatIsSentIsJudgedOnceMore(t *testing.T) {
	compose, owner := admission.Anywhere(policy.Compose), admission.Anywhere(policy.Owner)
	app := &ring.App{Name: "web", Path: ".", Services: []ring.Service{{Name: "web", File: "compose.yaml", Line: 2}}}
	body := runtime.ContainerRequest{Config: &container.Config{Image: "a"}, HostConfig: &container.HostConfig{Privileged: true}}
	r := runtime.Request{Key: "container", Body: body, App: app, Service: &app.Services[0]}
	require.NoError(t, owner.Allow("web", r))
	var refusal *ring.Refusal
	require.ErrorAs(t, compose.Allow("web", r), &refusal)
	require.Equal(t, "compose.yaml:2", refusal.Where())
	require.Contains(t, refusal.Says, "services.web.privileged")

	require.NoError(t, compose.Allow("web", runtime.Request{Key: "network x", Body: runtime.NetworkRequest{Options: network.CreateOptions{Driver: "bridge"}}}), "a network may be made for no service in particular")
	for _, profile := range []admission.Judge{compose, owner} {
		require.ErrorContains(t, profile.Allow("web", struct{ New string }{"x"}), "no rule for the engine's field")
		body.HostConfig = &container.HostConfig{NetworkMode: "container:0123"}
		r.Body = body
		require.ErrorContains(t, profile.Allow("web", r), "not the app's", "no container of the app was named")
		body.Owners = []string{"0123"}
		r.Body = body
		require.NoError(t, profile.Allow("web", r))
		body.Owners = nil
		for _, sent := range []any{
			&container.HostConfig{VolumesFrom: []string{"0123"}}, &container.HostConfig{Cgroup: "container:0123"}, &container.HostConfig{Links: []string{"a:b"}},
			&container.HostConfig{NetworkMode: "ns:/proc/1/ns/net"}, &container.HostConfig{VolumeDriver: "x"}, &container.HostConfig{ContainerIDFile: "/x"},
			&container.Config{Labels: map[string]string{"gitring.app": "shop"}}, &container.Config{Labels: map[string]string{"com.docker.compose.project": "shop"}},
			&container.Config{Labels: map[string]string{"gitring.new": "x"}}, &container.HostConfig{Binds: []string{"/etc/gitring:/x"}},
			network.CreateOptions{Ingress: true},
			network.CreateOptions{ConfigOnly: true},
			network.CreateOptions{ConfigFrom: &network.ConfigReference{}},
			map[string]*network.EndpointSettings{"x": {NetworkID: "y"}},
		} {
			require.Error(t, profile.Allow("web", runtime.Request{Key: "container", Body: sent, App: app, Service: &app.Services[0]}), "%+v", sent)
		}
	}
	for _, sent := range []any{
		&container.HostConfig{NetworkMode: "host"},
		network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{"host": {}}},
		&container.HostConfig{MaskedPaths: []string{}}, &container.HostConfig{ReadonlyPaths: []string{}},
		&container.HostConfig{Binds: []string{"/var/run/docker.sock:/s:ro"}},
		container.ExecOptions{Privileged: true},
	} {
		q := runtime.Request{Key: "container", Body: sent, App: app, Service: &app.Services[0]}
		require.Error(t, compose.Allow("web", q), "%+v", sent)
		require.NoError(t, owner.Allow("web", q), "%+v", sent)
	}
}

// One commit asks for another plan after the policy of the host changed.
func TestAnotherPolicyIsAnotherPlan(t *testing.T) {
	read := func(profile policy.Profile, body string) ring.Plan {
		plan, _ := judged(t, profile, map[string]string{"web/compose.yaml": body})
		for i := range plan.Apps {
			plan.Apps[i].Written = ring.WrittenApp(plan.Apps[i])
		}
		return plan
	}
	const privileged = "services: {web: {image: nginx, privileged: true}}\n"
	require.NotNil(t, read(policy.Compose, privileged).Refused["web"])
	owner := read(policy.Owner, privileged)
	require.Nil(t, owner.Refused["web"])
	bare := owner.Apps[0]
	bare.Powers = nil
	require.NotEqual(t, ring.WrittenApp(bare), owner.Apps[0].Written, "powers are part of what is asked")
	require.Equal(t, read(policy.Compose, plainWeb).Apps[0].Written, read(policy.Owner, plainWeb).Apps[0].Written, "what asks for nothing is the same under both")
}
