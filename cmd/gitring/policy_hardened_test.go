package main

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/runtime"
)

const confined = `image: ghcr.io/acme/web:1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
user: "1000"
read_only: true
security_opt: [no-new-privileges:true]
cap_drop: [ALL]
cap_add: [NET_BIND_SERVICE]
mem_limit: 256m
pids_limit: 100
tmpfs: ["/tmp:size=64m"]
ports: ["127.0.0.1:8080:80"]
logging: {driver: json-file, options: {max-size: 10m}}
`

func hardenedWeb(lines string) map[string]string {
	return map[string]string{"web/compose.yaml": "services:\n  web:\n    " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n    ") + "\n"}
}

const hardened = "profile: hardened\nimages: {registries: [ghcr.io/acme]}\n"

func TestHardenedAsksOfEachServiceToConfineItself(t *testing.T) {
	_, refusals := judgeOfPolicy(t, hardened).Look(commitOf(hardenedWeb(confined)), onProd)
	require.Empty(t, refusals)
	for _, tt := range []struct{ name, is, instead, rule string }{
		{"another registry", "ghcr.io/acme/web", "docker.io/library/web", "images.registries"},
		{"a name that begins like the registry", "ghcr.io/acme/web", "ghcr.io/acme2/web", "images.registries"},
		{"no digest", "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "", "images.tags"},
		{"root", `user: "1000"`, `user: root`, "hardened.user"},
		{"root by number", `user: "1000"`, `user: "0:0"`, "hardened.user"},
		{"root by a longer number", `user: "1000"`, `user: "00"`, "hardened.user"},
		{"a root that can be written", "read_only: true\n", "", "hardened.read_only"},
		{"new privileges", "security_opt: [no-new-privileges:true]\n", "", "hardened.no_new_privileges"},
		{"Docker's capabilities", "cap_drop: [ALL]\n", "", "hardened.cap_drop"},
		{"raw packets", "cap_add: [NET_BIND_SERVICE]", "cap_add: [NET_RAW]", "capabilities.add"},
		{"no memory limit", "mem_limit: 256m\n", "", "hardened.memory"},
		{"no limit of processes", "pids_limit: 100\n", "", "hardened.pids"},
		{"too many processes", "pids_limit: 100", "pids_limit: 1025", "hardened.pids"},
		{"processes without a limit", "pids_limit: 100", "pids_limit: -1", "hardened.pids"},
		{"a tmpfs without a size", ":size=64m", "", "hardened.tmpfs_size"},
		{"a log without a size", ", options: {max-size: 10m}", "", "hardened.log_size"},
		{"a log with any size", "max-size: 10m", "max-size: '-1'", "hardened.log_size"},
		{"no word on the log", "logging: {driver: json-file, options: {max-size: 10m}}\n", "", "hardened.log_size"},
		{"a port for all", "127.0.0.1:8080", "8080", "hardened.ports"},
		{"a port on another address", "127.0.0.1:8080", "192.168.1.1:8080", "hardened.ports"},
		{"a pull policy that asks again", "read_only", "pull_policy: always\nread_only", "images.moving"},
		{"a network of others", "read_only", "networks: [p]\nread_only", "networks.external"},
		{"what compose refuses", "read_only", "pid: host\nread_only", "namespaces.pid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Contains(t, confined, tt.is)
			files := hardenedWeb(strings.Replace(confined, tt.is, tt.instead, 1))
			if tt.rule == "networks.external" {
				files["web/compose.yaml"] += "networks: {p: {external: true, name: proxy}}\n"
			}
			plan, refusals := judgeOfPolicy(t, hardened).Look(commitOf(files), onProd)
			require.NotEmpty(t, refusals)
			require.Len(t, plan.Decisions, 1, "%v", plan.Decisions)
			require.Equal(t, tt.rule, plan.Decisions[0].Rule)
			require.Equal(t, string(policy.Deny), plan.Decisions[0].Verdict)
			require.NotZero(t, refusals[0].Line)
			if tt.rule == "networks.external" {
				return // the list lets it pass, no grant does
			}
			s := judgeOfPolicy(t, hardened).Suggest(commitOf(files), onProd)
			require.Empty(t, s.Refused)
			_, refusals = judgeOfPolicy(t, hardened+reasoned(&s)).Look(commitOf(files), onProd)
			require.Empty(t, refusals, "a grant lets one service have it")
		})
	}
}

// What is a note between apps of one hand is a refusal.
func TestHardenedRefusesWhatIsANoteBetweenAppsOfOneHand(t *testing.T) {
	files := map[string]string{
		"a/compose.yaml": hardenedWeb(confined + "labels: {traefik.http.routers.a.rule: Host(`x.example.org`)}")["web/compose.yaml"],
		"b/compose.yaml": hardenedWeb(confined + "labels: {traefik.http.routers.b.rule: Host(`x.example.org`)}")["web/compose.yaml"],
	}
	routes := func(body string) (verdicts []string) {
		plan, _ := judgeOfPolicy(t, body).Look(commitOf(files), onProd)
		for _, d := range plan.Decisions {
			if d.Rule == policy.Routes {
				verdicts = append(verdicts, d.Verdict)
			}
		}
		return verdicts
	}
	require.Contains(t, routes(""), "note")
	require.Contains(t, routes(hardened), "deny")
	require.NotContains(t, routes(hardened), "note")
}

// The image's own user is known right before the container is made.
func TestHardenedRefusesAnImageThatRunsAsRoot(t *testing.T) {
	j := judgeOfPolicy(t, hardened)
	plan, refusals := j.Look(commitOf(hardenedWeb(strings.Replace(confined, "user: \"1000\"\n", "", 1))), onProd)
	require.Empty(t, refusals, "the plan does not know the image")
	app := &plan.Apps[0]
	begins := func(user string) error {
		return j.Allow("web", runtime.Request{Key: "container", App: app, Service: &app.Services[0], Body: runtime.ContainerRequest{Config: &container.Config{User: user}}})
	}
	require.NoError(t, begins("1000"))
	require.NoError(t, begins("nginx"))
	require.ErrorContains(t, begins("0"), "runs as root")
	require.ErrorContains(t, begins("root:root"), "runs as root")
}

func TestHardenedIsAProfileOfEachVerb(t *testing.T) {
	dir := onDisk(t, map[string]string{"web/compose.yaml": "services: {web: {image: nginx}}\n"})
	for _, verb := range [][]string{{"validate", dir}, {"plan", dir}, {"policy", "check", dir}} {
		code, out, errs := callVerb(append(verb, "--profile", "hardened")...)
		require.Equal(t, exit.Refused, code, "%v %s %s", verb, out, errs)
		require.Contains(t, out, "read_only: true")
	}
}
