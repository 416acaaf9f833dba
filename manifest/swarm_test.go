package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func swarmApp(t *testing.T, file string) ring.App {
	t.Helper()
	s := settings()
	s.Swarm = true
	a, _ := onlyApp(t, s, map[string]string{"web/compose.yaml": file, "web/app.conf": "a=1"})
	return a
}

const onSwarmFile = `services:
  web:
    image: a
    restart: on-failure:3
    ports: ["8080:80", {target: 53, published: "53", protocol: udp, mode: host}]
    volumes: ["./app.conf:/etc/app.conf:ro"]
    networks: [back]
    deploy:
      replicas: 3
      endpoint_mode: dnsrr
      labels: {team: shop}
      placement:
        constraints: [node.role == worker]
        preferences: [{spread: node.labels.zone}]
        max_replicas_per_node: 1
      resources: {reservations: {cpus: "0.25", memory: 64M}}
networks:
  back: {driver: overlay, driver_opts: {encrypted: ""}}
`

func TestASwarmIsToldWhereAServiceGoes(t *testing.T) {
	a := swarmApp(t, onSwarmFile)
	s := a.Services[0]
	want := &ring.ClusterSpec{
		Constraints: []string{"node.role == worker"}, Spread: []string{"node.labels.zone"}, PerNode: 1, Endpoint: "dnsrr", ReservedCPUs: 25e7,
		Labels: map[string]string{"team": "shop"}, Restart: ring.Restart{Policy: ring.OnFail, Engine: "on-failure", MaxRetries: 3}, Patience: 120 * time.Second,
	}
	require.Empty(t, cmp.Diff(want, s.Spec.Cluster))
	require.Equal(t, 3, s.Replicas)
	require.Nil(t, s.Route, "the swarm publishes for several")
	require.Equal(t, []ring.Port{
		{HostPort: "53", Container: 53, Protocol: "udp", Mode: ring.PortHost}, {HostPort: "8080", Container: 80, Protocol: "tcp", Mode: ring.PortIngress},
	}, s.Spec.Ports)
	require.Equal(t, []ring.Network{{Key: "back", DriverOpts: map[string]string{"encrypted": ""}}}, a.Networks, "overlay is what a swarm has")
	const unchecked = "web: without a healthcheck, here or of the image, Swarm ends the old task as soon as the new process runs"
	require.Contains(t, notes(a), unchecked)
	require.NotContains(t, strings.Replace(notes(a), unchecked, "", 1), "Swarm")
	require.NotContains(t, notes(a), "reservations")
}

// Nothing of it may change the version of what runs on one engine.
func TestOneEngineReadsNothingOfASwarm(t *testing.T) {
	a, _ := onlyApp(t, settings(), map[string]string{"web/app.conf": "a=1", "web/compose.yaml": strings.NewReplacer(
		"{driver: overlay, driver_opts: {encrypted: \"\"}}", "{}", "replicas: 3", "replicas: 1").Replace(onSwarmFile)})
	s := a.Services[0]
	require.Nil(t, s.Spec.Cluster)
	for _, p := range s.Spec.Ports {
		require.Empty(t, p.Mode)
	}
	require.Contains(t, notes(a), "services.web.deploy.placement is Swarm's")
}

func TestOnASwarmEachNodeAsksTheCheck(t *testing.T) {
	const check = "services:\n  web:\n    image: a\n    x-gitring:\n      checks: [%]\n"
	a := swarmApp(t, strings.Replace(check, "%", "{name: up, exec: [/app, check], interval: 4s, timeout: 3s, failures: 5}", 1))
	s := a.Services[0]
	require.Equal(t, &ring.Healthcheck{Test: []string{"CMD", "/app", "check"}, Interval: 4 * time.Second, Timeout: 3 * time.Second, Retries: 5}, s.Spec.Healthcheck)
	require.Len(t, s.Checks, 1)
	require.True(t, s.Checks[0].Docker)
	require.Contains(t, notes(a), "check up is its healthcheck")

	a = swarmApp(t, strings.Replace(check, "%", "{name: up, http: {port: 80}}", 1))
	require.Nil(t, a.Services[0].Spec.Healthcheck)
	require.NotNil(t, a.Services[0].Checks[0].HTTP, "it stays, to be refused by its name")
}

func TestOnASwarmAFileWithAValueIsASecret(t *testing.T) {
	s := settings()
	s.Swarm, s.EnvKey = true, []byte(strings.Repeat("k", 32))
	s.Env = map[string]map[string][]byte{"web": {"db.txt": []byte("s3cret")}}
	a, _ := onlyApp(t, s, map[string]string{
		"web/compose.yaml": "services:\n  web:\n    image: a\n    secrets: [db]\n    configs: [app]\nsecrets: {db: {file: ./db.txt}}\nconfigs: {app: {file: ./app.conf}}\n", "web/app.conf": "a=1",
	})
	secret := map[string]bool{}
	for _, m := range a.Services[0].Spec.Mounts {
		secret[m.Target] = m.Secret
	}
	require.Equal(t, map[string]bool{"/run/secrets/db": true, "/app": false}, secret)
}

func TestAModeThatNoSwarmOfOursHasIsRefused(t *testing.T) {
	s := settings()
	s.Swarm = true
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services:\n  web:\n    image: a\n    deploy: {mode: replicated-job}\n"}), s)
	require.Equal(t, ring.Unsupported, plan.Refused["web"].Code)
	require.Equal(t, 4, plan.Refused["web"].Line)
	a := swarmApp(t, "services:\n  web:\n    image: a\n    deploy: {mode: global}\n")
	require.True(t, a.Services[0].Spec.Cluster.Global)
}

// The daemon sends a swarm the bytes of each file, and may not read what it gave to another
// user. So a text without a value stays its own there, and the plan says so.
func TestOnASwarmATextOfTheComposeFileKeepsItsOwner(t *testing.T) {
	files := map[string]string{"web/compose.yaml": `services: {web: {image: a, configs: [{source: c, uid: "70", mode: 0400}]}}
configs: {c: {content: text}}
`}
	for _, swarm := range []bool{false, true} {
		s := settings()
		s.Swarm = swarm
		plan, contents := Read(repo(files), s)
		require.Len(t, plan.Apps, 1, "%v", plan.Refused)
		web := serviceOf(t, plan.Apps[0], "web")
		require.Len(t, web.Spec.Mounts, 1)
		as := contents[web.Spec.Mounts[0].Source].Files[0].As
		require.Equal(t, swarm, as == nil)
		require.Equal(t, swarm, strings.Contains(strings.Join(plan.Apps[0].Notes, "\n"), "web: uid, mode 0400 of config c is not carried out"), "%v", plan.Apps[0].Notes)
	}
}

// A daemon that is not root could not read a value that it gave to another user, so on a swarm it
// gives none away.
func TestOnASwarmADaemonThatIsNotRootKeepsValuesItsOwn(t *testing.T) {
	files := map[string]string{"web/compose.yaml": `services: {web: {image: a, secrets: [{source: s, uid: "70", mode: 0400}]}}
secrets: {s: {environment: PASS}}
`}
	for _, kept := range []bool{false, true} {
		s := settings()
		s.Swarm, s.NoChown = true, kept
		s.Env = map[string]map[string][]byte{"web": {".env": []byte("PASS=x\n")}}
		s.EnvKey = []byte("key")
		plan, contents := Read(repo(files), s)
		require.Len(t, plan.Apps, 1, "%v", plan.Refused)
		at := serviceOf(t, plan.Apps[0], "web").Spec.Mounts[0]
		require.Equal(t, kept, contents[at.Source].Files[0].As == nil)
		require.Equal(t, kept, strings.Contains(strings.Join(plan.Apps[0].Notes, "\n"), "of secret s is not carried out"), "%v", plan.Apps[0].Notes)
	}
}
