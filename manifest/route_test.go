package manifest

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/stretchr/testify/require"
)

// onHost reads the app web of a Compose file's text on a host that says traffic.
func onHost(t *testing.T, traffic Traffic, text string) ring.App {
	t.Helper()
	s := settings()
	s.Traffic = traffic
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": text}), s)
	require.Len(t, plan.Apps, 1, dump(t, plan))
	return plan.Apps[0]
}

// ofWeb is a Compose file of one service, web.
func ofWeb(lines ...string) string {
	return "services:\n  web:\n    image: a\n    " + strings.Join(lines, "\n    ") + "\n"
}

var asksForFronts = Traffic{Publish: ring.PublishFront}

// servicesOf are the names of an app's services.
func servicesOf(a ring.App) (out []string) {
	for _, s := range a.Services {
		out = append(out, s.Name)
	}
	return out
}

func TestAFrontIsAServiceOfItsOwn(t *testing.T) {
	a := onHost(t, Traffic{Memory: 64 << 20}, `services:
  web:
    image: a
    ports: ["8080:80", "127.0.0.1:9000:9000"]
    expose: [7000]
    networks:
      default: {aliases: [shop], ipv4_address: 10.90.0.5}
    labels: {traefik.enable: "true", owner: me}
    environment: {VIRTUAL_HOST: shop.example.org, LEVEL: info}
    x-gitring: {publish: front}
networks:
  default: {ipam: {config: [{subnet: 10.90.0.0/24}]}}
`)
	require.Equal(t, []string{"web", "web-front"}, servicesOf(a))
	web, front := a.Services[0], a.Services[1]
	require.Equal(t, "web-front", web.HasFront())
	require.Empty(t, web.FrontOf)
	require.Empty(t, web.Spec.Ports)
	require.Empty(t, web.Spec.Expose)
	require.Equal(t, map[string]string{"owner": "me"}, web.Spec.Labels)
	require.Equal(t, map[string]string{"LEVEL": "info"}, web.Spec.Environment)
	require.Equal(t, []ring.Attachment{{Network: "default", Aliases: []string{"shop"}, IPv4: "10.90.0.5"}}, web.Spec.Networks)
	require.NotEmpty(t, web.Composed.Not, "Compose has to put the ports back")

	pids := int64(256)
	want := ring.Service{
		Name: "web-front", Kind: ring.Worker, Replicas: 1, FrontOf: "web",
		Spec: ring.Spec{
			Image: "gitring/front:1", User: "65532:65532", StopSignal: "SIGTERM", ReadOnly: true,
			CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges=true"},
			Labels:      map[string]string{"traefik.enable": "true"},
			Environment: map[string]string{"VIRTUAL_HOST": "shop.example.org"},
			Ports: []ring.Port{
				{HostPort: "8080", Container: 80, Protocol: "tcp"},
				{HostIP: "127.0.0.1", HostPort: "9000", Container: 9000, Protocol: "tcp"},
			},
			Expose:      []string{"7000/tcp", "80/tcp", "9000/tcp"},
			Networks:    []ring.Attachment{{Network: "default"}},
			Sysctls:     map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"},
			Ulimits:     []ring.Ulimit{{Name: "fsize"}, {Name: "nofile", Soft: 65536, Hard: 65536}},
			Resources:   &ring.Resources{Memory: 64 << 20, MemoryReservation: 16 << 20, PidsLimit: &pids},
			Logging:     &ring.Logging{Driver: "json-file", Options: map[string]string{"max-size": "10m", "max-file": "2"}},
			Healthcheck: &ring.Healthcheck{Test: []string{"CMD", "/bin/front", "health"}, Interval: 30 * time.Second, StartPeriod: 30 * time.Second, StartInterval: time.Second, Retries: 1},
		},
		Checks:  []ring.Check{{Name: "healthcheck", For: ring.Readiness, Docker: true, Interval: 5 * time.Second, Timeout: 2 * time.Second, Failures: 1, Successes: 1}},
		Pin:     ring.Pin{Image: "gitring/front:1"},
		Rollout: ring.DefaultRollout(), Restart: ring.Restart{Policy: "always", Engine: "always"},
		Composed: front.Composed, File: "web/compose.yaml", Line: 2, Places: web.Places, Written: front.Written,
	}
	want.Rollout.MinReadyTime = 0
	require.Equal(t, want, front)
	require.NotEmpty(t, front.Composed.Not)

	route := ring.Route{
		Ports: []ring.FrontPort{
			{Port: 80, Carry: "auto"}, {Port: 7000, Carry: "auto"}, {Port: 9000, Carry: "auto", Loopback: true},
		},
		DrainTimeout: 30 * time.Second, Queue: 30 * time.Second, Forwarded: true, Sticky: "none",
		Trusted: []string{"networks"}, Connections: 10000,
	}
	require.Equal(t, &route, web.Route)
	require.Contains(t, a.Notes, "web: the app sees the front's address; X-Forwarded-For names the client")
}

// What two instances cannot both have is the front's, so they can run side by side; the
// front itself holds the port.
func TestAServiceBehindAFrontMayOverlap(t *testing.T) {
	text := ofWeb(`ports: ["8080:80"]`, "x-gitring: {publish: front}")
	a := onHost(t, Traffic{}, text)
	require.Empty(t, a.Alone(&a.Services[0]))
	require.Equal(t, "host port 8080/tcp", a.Alone(&a.Services[1]))
	direct := onHost(t, Traffic{}, strings.Replace(text, "front", "direct", 1))
	require.Equal(t, "host port 8080/tcp", direct.Alone(&direct.Services[0]))
}

func TestARouteSaysHowTheFrontCarries(t *testing.T) {
	a := onHost(t, Traffic{Trusted: []string{"gateway", "10.0.0.0/8"}, Connections: 5}, ofWeb(
		"ports:",
		`  - "80"`,
		`  - "53/udp"`,
		"  - {target: 81, app_protocol: http}",
		"  - {target: 82, app_protocol: http}",
		"x-gitring:",
		"  publish: front",
		"  route:",
		"    protocol: {82: tcp, 90: http}",
		"    ports: [90, 54/udp]",
		"    drain_timeout: 24h",
		"    queue: 0s",
		"    forwarded: false",
		"    sticky: cookie",
		"    internal: true",
		"    log: errors"))
	require.Equal(t, &ring.Route{
		Ports: []ring.FrontPort{
			{Port: 53, Carry: "udp"},
			{Port: 54, Carry: "udp"},
			{Port: 80, Carry: "auto"},
			{Port: 81, Carry: "http"},
			{Port: 82, Carry: "tcp"},
			{Port: 90, Carry: "http"},
		},
		DrainTimeout: 24 * time.Hour, Queue: 0, Forwarded: false, Sticky: "cookie", Internal: true, LogErrors: true,
		Trusted: []string{"gateway", "10.0.0.0/8"}, Connections: 5,
	}, a.Services[0].Route)
	require.Contains(t, a.Notes, "web: the app sees the front's address, and nothing names the client (route.forwarded is false)")
}

// A front has a service's names only where route.internal says so, and never both of them.
func TestRouteInternalGivesTheNamesToTheFront(t *testing.T) {
	a := onHost(t, Traffic{}, `services:
  web:
    image: a
    container_name: the-shop
    expose: [80]
    networks: {default: {aliases: [shop, store]}}
    x-gitring: {publish: front, route: {internal: true}}
`)
	require.Equal(t, []ring.Attachment{{Network: "default", Aliases: []string{"the-shop"}, Unnamed: true}}, a.Services[0].Spec.Networks)
	require.Equal(t, []ring.Attachment{{Network: "default", Aliases: []string{"shop", "store", "web"}}}, a.Services[1].Spec.Networks)
}

func TestAFrontMayListenOnWhatTheImageExposes(t *testing.T) {
	a := onHost(t, Traffic{}, ofWeb("x-gitring: {publish: front, route: {protocol: http}}"))
	require.Equal(t, []string{"web", "web-front"}, servicesOf(a))
	r := a.Services[0].Route
	require.Empty(t, r.Ports)
	require.Equal(t, ring.CarryHTTP, r.Exposed)
	require.Empty(t, a.Services[1].Spec.Expose)
	require.Contains(t, a.Notes, "web: its front listens on the ports that its image exposes")
	require.Contains(t, a.Notes, "web: the app sees the front's address; X-Forwarded-For names the client")
	// what the files name wins, and the host's default alone refuses nothing and asks for no image
	a = onHost(t, Traffic{}, ofWeb("expose: [80]", "x-gitring: {publish: front}"))
	require.Empty(t, a.Services[0].Route.Exposed)
	a = onHost(t, asksForFronts, ofWeb("labels: {traefik.enable: 'true'}"))
	require.Equal(t, []string{"web"}, servicesOf(a))
}

func TestTheFilesOfAnAppAreMergedInARouteToo(t *testing.T) {
	plan, _ := Read(repo(map[string]string{
		"web/compose.yaml":          ofWeb("expose: [80]", "x-gitring: {publish: direct, route: {queue: 5s, sticky: cookie, protocol: tcp}}"),
		"web/compose.override.yaml": "services:\n  web:\n    x-gitring: {publish: front, route: {queue: 7s, protocol: {80: http}}}\n",
	}), settings())
	require.Len(t, plan.Apps, 1, dump(t, plan))
	r := plan.Apps[0].Services[0].Route
	require.Equal(t, 7*time.Second, r.Queue)
	require.Equal(t, "cookie", r.Sticky)
	require.Equal(t, []ring.FrontPort{{Port: 80, Carry: "http"}}, r.Ports)
}

func TestPortsThatAFrontListensOn(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"published ones", []string{`ports: ["8000-8001:80-81", "127.0.0.1::90/udp"]`}, "80/tcp 81/tcp 90/udp"},
		{"exposed ones", []string{`expose: ["80", "90/udp"]`}, "80/tcp 90/udp"},
		{"the one of a Traefik label", []string{"labels: {Traefik.HTTP.services.web.loadBalancer.server.port: '3000'}"}, "3000/tcp"},
		{"the one of a Traefik label for udp", []string{"labels: {traefik.udp.services.web.loadbalancer.server.port: '53'}"}, "53/udp"},
		{"the one of nginx-proxy", []string{"environment: {VIRTUAL_HOST: a.example.org, VIRTUAL_PORT: '3000'}"}, "3000/tcp"},
		{"the one of Caddy", []string{`labels: {caddy: a.example.org, caddy.reverse_proxy: "{{upstreams 3000}}"}`}, "3000/tcp"},
		{"the one of Caddy with a scheme", []string{`labels: {caddy_1.reverse_proxy: "/api/* {{upstreams http 3000}}"}`}, "3000/tcp"},
		{"Caddy's own default", []string{`labels: {caddy.reverse_proxy: "{{ upstreams }}"}`}, "80/tcp"},
		{"all of them", []string{`ports: ["80"]`, "expose: [81]", "environment: {VIRTUAL_PORT: '82'}", "labels: [traefik.tcp.services.web.loadbalancer.server.port=83]", "x-gitring: {route: {ports: [84, 80]}}"}, "80/tcp 81/tcp 82/tcp 83/tcp 84/tcp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := ofWeb(append(c.lines, "x-gitring: {publish: front}")...)
			if strings.Contains(text, "x-gitring: {route: {ports: [84, 80]}}") {
				text = ofWeb(append(c.lines[:len(c.lines)-1], "x-gitring: {publish: front, route: {ports: [84, 80]}}")...)
			}
			a := onHost(t, Traffic{}, text)
			var got []string
			for _, p := range a.Services[0].Route.Ports {
				got = append(got, (listened{p.Port, p.Protocol()}).String())
			}
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

// The host's default gives a front to what is reached from outside, and to nothing else.
func TestWhomTheHostsDefaultGivesAFront(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		front bool
		note  string
	}{
		{name: "a fixed tcp port", lines: []string{`ports: ["8080:80"]`}, front: true},
		{name: "a port that the engine chooses", lines: []string{`ports: ["80"]`}},
		{name: "an exposed port", lines: []string{"expose: [80]"}},
		{name: "a label of a proxy", lines: []string{"expose: [80]", "labels: {traefik.enable: 'true'}"}, front: true},
		{name: "a label that keeps a proxy away", lines: []string{"expose: [80]", "labels: {traefik.enable: 'false'}"}},
		{name: "a variable of a proxy", lines: []string{"environment: {VIRTUAL_HOST: a.example.org, VIRTUAL_PORT: '80'}"}, front: true},
		{name: "a service that says direct", lines: []string{`ports: ["8080:80"]`, "x-gitring: {publish: direct}"}},
		{name: "a service that says front", lines: []string{"expose: [80]", "x-gitring: {publish: front}"}, front: true},
		{name: "a label, and a port that only the image names", lines: []string{"labels: {traefik.enable: 'true'}"}, note: "name no port"},
		{name: "a udp port beside it", lines: []string{`ports: ["8080:80", "53:53/udp"]`}, note: "udp port 53"},
		{name: "an sctp port beside it", lines: []string{`ports: ["8080:80", "81/sctp"]`}, note: "sctp"},
		{name: "more ports than a front has", lines: []string{`ports: ["1-101:1-101"]`}, note: "101 ports"},
		{name: "the engine's bridge", lines: []string{`ports: ["8080:80"]`, "network_mode: bridge"}, note: "network_mode"},
		{name: "a job", lines: []string{`ports: ["8080:80"]`, "restart: 'no'"}},
		{name: "one that is joined", lines: []string{`ports: ["8080:80"]`, "", "  vpn: {image: b, network_mode: 'service:web'}"}, note: "vpn joins a namespace of it"},
		{name: "one that joins", lines: []string{`ports: ["8080:80"]`, "pid: service:other", "", "  other: {image: b}"}, note: "it joins a namespace of other"},
		{name: "one whose front's name is taken", lines: []string{`ports: ["8080:80"]`, "", "  web-front: {image: b}"}, note: "service web-front has the name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.ReplaceAll(ofWeb(c.lines...), "\n      ", "\n  ")
			a := onHost(t, asksForFronts, text)
			web, _ := a.Service("web")
			require.Equal(t, c.front, web.HasFront() != "", dump(t, a))
			if c.front {
				require.Contains(t, servicesOf(a), "web-front")
			}
			said := strings.Contains(notes(a), "web: stays without a front: ")
			require.Equal(t, c.note != "", said, notes(a))
			require.Contains(t, notes(a), c.note)
			if c.front || c.note != "" && c.note != "service web-front has the name" {
				return
			}
			if _, kept := a.Service("web-front"); !kept {
				direct := onHost(t, Traffic{}, text)
				direct.Notes = a.Notes
				require.Equal(t, direct, a, "without a front nothing differs")
			}
		})
	}
}

func TestSeveralReplicasWithAHostPortGetAFront(t *testing.T) {
	a := onHost(t, Traffic{}, ofWeb(`ports: ["8080:80", "53:53/udp"]`, "scale: 3"))
	require.Equal(t, []string{"web", "web-front"}, servicesOf(a))
	require.Equal(t, 3, a.Services[0].Replicas)
	require.Contains(t, a.Notes, "web: gets a front, because 3 replicas cannot publish host port 53")
}

// A host whose engine can run no front refuses what asks for one by name, and nothing else.
func TestAHostWithoutFrontsSaysSo(t *testing.T) {
	never := Traffic{Publish: ring.PublishFront, Never: "the engine maps users (userns-remap)"}
	text := ofWeb(`ports: ["8080:80"]`)
	a := onHost(t, never, text)
	require.Equal(t, []string{"web"}, servicesOf(a))
	require.Contains(t, a.Notes, "web: stays without a front: the engine maps users (userns-remap)")

	s := settings()
	s.Traffic = never
	for _, line := range []string{"x-gitring: {publish: front}", "scale: 2"} {
		_, refusals := Check(repo(map[string]string{"web/compose.yaml": text + "    " + line + "\n"}), s)
		require.Len(t, refusals, 1, line)
		require.Equal(t, ring.Unsupported, refusals[0].Code)
	}
}

// Traefik makes a router of its own for each container that does not say no.
func TestALabelThatKeepsTraefikAwayIsOnBoth(t *testing.T) {
	a := onHost(t, asksForFronts, ofWeb(`ports: ["8080:80"]`, "labels: {traefik.enable: 'false', traefik.docker.network: x}"))
	require.Equal(t, map[string]string{"traefik.enable": "false"}, a.Services[0].Spec.Labels)
	require.Equal(t, map[string]string{"traefik.enable": "false", "traefik.docker.network": "x"}, a.Services[1].Spec.Labels)
}

// Python takes VIRTUAL_ENV for the folder of its packages, and nginx-proxy does not know it.
func TestVirtualEnvStaysWithTheApp(t *testing.T) {
	a := onHost(t, asksForFronts, ofWeb(`ports: ["8080:80"]`, "environment: {VIRTUAL_ENV: /venv, VIRTUAL_HOST: a.example.org}"))
	require.Equal(t, map[string]string{"VIRTUAL_ENV": "/venv"}, a.Services[0].Spec.Environment)
	require.Equal(t, map[string]string{"VIRTUAL_HOST": "a.example.org"}, a.Services[1].Spec.Environment)
	require.Len(t, onHost(t, asksForFronts, ofWeb("expose: [80]", "environment: {VIRTUAL_ENV: /venv}")).Services, 1)
}

// A front joins no network on which its service is not, nor one that gives it an address of
// another kind.
func TestAFrontLeavesOutMacvlan(t *testing.T) {
	a := onHost(t, Traffic{}, `services:
  web: {image: a, expose: [80], networks: [lan, own, ext], x-gitring: {publish: front}}
networks:
  lan: {driver: macvlan}
  own: {driver: bridge}
  ext: {external: true}
`)
	require.Equal(t, []ring.Attachment{{Network: "ext"}, {Network: "own"}}, a.Services[1].Spec.Networks)
}

// A version is what is rolled. What only the front has is no part of an instance's.
func TestWhatRollsAnInstanceAndWhatItsFront(t *testing.T) {
	const base = "services:\n  web:\n    image: a\n    ports: ['8080:80']\n    labels: {traefik.x: '1', own: '1'}\n    environment: {VIRTUAL_HOST: a, LEVEL: '1'}\n    x-gitring: {publish: front, route: {queue: 5s}}\n"
	versions := func(host Traffic, text string) (web, front ring.Version) {
		a := onHost(t, host, text)
		return ring.VersionOf(&a, &a.Services[0], pin), ring.VersionOf(&a, &a.Services[1], a.Services[1].Pin)
	}
	web, front := versions(Traffic{}, base)
	for _, c := range []struct {
		name       string
		host       Traffic
		from, to   string
		web, front bool // whether its version is another one
	}{
		{name: "a host port", from: "8080:80", to: "8081:80", front: true},
		{name: "a container port", from: "8080:80", to: "8080:81", front: true},
		{name: "a label of a proxy", from: "traefik.x: '1'", to: "traefik.x: '2'", front: true},
		{name: "a variable of a proxy", from: "VIRTUAL_HOST: a", to: "VIRTUAL_HOST: b", front: true},
		{name: "its own label", from: "own: '1'", to: "own: '2'", web: true},
		{name: "its own variable", from: "LEVEL: '1'", to: "LEVEL: '2'", web: true},
		{name: "the route", from: "queue: 5s", to: "queue: 6s, sticky: cookie, forwarded: false, log: errors"},
		{name: "the protocol", from: "queue: 5s", to: "protocol: http"},
		{name: "names that the front gets", from: "queue: 5s", to: "internal: true", web: true, front: true},
		{name: "the host's trust", host: Traffic{Trusted: []string{}, Connections: 3}},
		{name: "the host's memory", host: Traffic{Memory: 1 << 30}, front: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, f := versions(c.host, strings.Replace(base, c.from, c.to, 1))
			require.Equal(t, c.web, w != web, "the service")
			require.Equal(t, c.front, f != front, "its front")
		})
	}
}

// A route without a front means nothing, and that is told.
func TestARouteWithoutAFrontIsNoted(t *testing.T) {
	const note = "web: x-gitring route is not used, because the service has no front"
	text := ofWeb("expose: [80]", "x-gitring: {route: {queue: 5s}}")
	require.Contains(t, onHost(t, Traffic{}, text).Notes, note)
	require.Contains(t, onHost(t, Traffic{}, strings.Replace(text, "{route", "{publish: direct, route", 1)).Notes, note)
	require.NotContains(t, onHost(t, Traffic{}, strings.Replace(text, "{route", "{publish: front, route", 1)).Notes, note)
}

func TestACanaryIsReadWhole(t *testing.T) {
	a := onHost(t, Traffic{}, ofWeb(
		"expose: [80]",
		"x-gitring:",
		"  publish: front",
		"  checks: [{name: slo, for: canary, exec: [ask]}]",
		"  rollout:",
		"    strategy: canary",
		"    steps:",
		"      - {weight: 1}",
		"      - {weight: 50, for: 1h, promote: manual}",
		"    canary_replicas: 2",
		"    match: {header: {X-Canary: '1'}, cookie: {beta: '1'}}",
		"    judge: {interval: 30s, min_requests: 10, max_errors: 0.5%, max_p99: 200%, failures: 3, on_quiet: pause}"))
	s := a.Services[0]
	require.Equal(t, &ring.CanaryPlan{
		Steps:    []ring.CanaryStep{{Weight: 1, For: 5 * time.Minute}, {Weight: 50, For: time.Hour, Manual: true}},
		Replicas: 2,
		Match:    &ring.FrontMatch{Header: map[string]string{"X-Canary": "1"}, Cookie: map[string]string{"beta": "1"}},
		Judge:    &ring.Judge{Interval: 30 * time.Second, MinRequests: 10, MaxErrors: 5, MaxP99: 200, Failures: 3, OnQuiet: "pause"},
	}, s.Rollout.Canary)
	require.Equal(t, "canary", s.Rollout.Strategy)
	require.False(t, s.Gated(), "a check of the canary does not decide whether an instance is ready")

	judged := func(word string) *ring.Judge {
		lines := []string{"expose: [80]", "x-gitring:", "  publish: front", "  rollout: {strategy: canary, steps: [{weight: 5}]" + word + "}"}
		return onHost(t, Traffic{}, ofWeb(lines...)).Services[0].Rollout.Canary.Judge
	}
	require.Nil(t, judged(", judge: off"))
	require.Equal(t, &ring.Judge{Interval: 15 * time.Second, MinRequests: 50, MaxErrors: 10, MaxP99: 150, Failures: 2, OnQuiet: "advance"}, judged(""))
	require.Equal(t, 20, judged(", judge: {max_errors: 2%}").MaxErrors)
	require.Equal(t, 50, judged(", judge: {max_errors: 2%}").MinRequests)
}

// The plan says why a canary is none, as for blue_green.
func TestACanaryThatCannotOverlapIsNoted(t *testing.T) {
	a := onHost(t, Traffic{}, ofWeb("expose: [80]", "container_name: one", "x-gitring: {publish: front, rollout: {strategy: canary, steps: [{weight: 5}]}}"))
	require.Contains(t, a.Notes, "web: strategy canary is carried out as recreate, because two instances cannot run at once: container_name one")
}

// What the store keeps of an app with fronts is what is read anew, equal commits give equal
// bytes, and the order of keys means nothing.
func TestPlansWithFrontsAreStable(t *testing.T) {
	fronts := 0
	read := func(files map[string]string) ring.Plan {
		s := settings()
		s.Traffic = asksForFronts
		plan, _ := Read(repo(files), s)
		for i := range plan.Apps {
			plan.Apps[i].Places, plan.Apps[i].Naming = nil, nil
			for j := range plan.Apps[i].Services {
				s := &plan.Apps[i].Services[j]
				s.Places, s.Line = nil, 0 // a shuffled file has other lines
			}
		}
		return plan
	}
	for _, file := range corpus(t) {
		files := archive(t, file)
		plan := read(files)
		b, err := json.Marshal(plan)
		require.NoError(t, err)
		var back ring.Plan
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, plan, back, file)

		rng := rand.New(rand.NewPCG(7, 1))
		shuffled := map[string]string{}
		for name, text := range files {
			shuffled[name] = text
			if ext := filepath.Ext(name); (ext == ".yaml" || ext == ".yml") && manifestName(name) {
				shuffled[name] = shuffle(t, text, rng)
			}
		}
		require.Equal(t, dump(t, plan), dump(t, read(shuffled)), file)
		for _, a := range plan.Apps {
			for _, s := range a.Services {
				if s.FrontOf != "" {
					fronts++
				}
			}
		}
	}
	require.Greater(t, fronts, 5, "the test data has services that get a front")
}
