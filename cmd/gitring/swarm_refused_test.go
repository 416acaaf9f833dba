package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// readForSwarm is what the plan of these files says on a swarm.
func readForSwarm(t *testing.T, profile policy.Profile, files map[string]string, more func(s *manifest.Settings)) (ring.Plan, []*ring.Refusal) {
	t.Helper()
	s := manifest.Settings{Source: "prod", Host: "prod", Swarm: true}
	if more != nil {
		more(&s)
	}
	j := admission.Anywhere(profile)
	j.Rules.Host = "prod"
	return j.Look(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: treeOf(files)}, s)
}

// Each thing that docs/reference/engines.md says a swarm has no place for is refused with the
// plan: by its code, on the line that says it, with what to do instead.
func TestWhatASwarmHasNoPlaceForIsRefusedByNameAndLine(t *testing.T) {
	many := map[string]string{}
	for i := range 101 {
		many[fmt.Sprintf("web/many/%03d.conf", i)] = "x"
	}
	for _, tt := range []struct {
		name string
		keys string // of services.web, from line 4 on
		rest string
		code ring.Code
		line int
		says string
	}{
		{"a volume of no node", "volumes: [\"data:/data\"]", "volumes: {data: {}}", ring.VolumeNotPinned, 4, "pinned to no node"},
		{"a volume of one node for several tasks", "volumes: [\"data:/data\"]\n    deploy: {replicas: 2, placement: {constraints: [\"node.hostname == node-1\"]}}", "volumes: {data: {}}", ring.BadValue, 2, "2 replicas"},
		{"a volume that any node but one may have", "volumes: [\"data:/data\"]\n    deploy: {placement: {constraints: [\"node.hostname != node-1\"]}}", "volumes: {data: {}}", ring.VolumeNotPinned, 4, "pinned to no node"},
		{"a folder of a node", "volumes: [\"/srv/data:/data\"]", "", ring.VolumeNotPinned, 4, "pinned to no node"},
		{"a volume whose writer stops slowly", "stop_grace_period: 2m\n    volumes: [\"data:/data\"]\n    deploy: {placement: {constraints: [\"node.hostname == node-1\"]}}", "volumes: {data: {}}", ring.Unsupported, 4, "stop_grace_period: 2m"},
		{"a volume of each node", "volumes: [\"data:/data\"]\n    deploy: {mode: global}", "volumes: {data: {}}", ring.VolumeNotPinned, 4, "each of which would have one of its own"},
		{"a count of what runs on each node", "deploy: {mode: global, replicas: 2}", "", ring.BadValue, 4, "one task on each node"},
		{"a data folder", "volumes: [\"./data:/data\"]", "", ring.Unsupported, 4, "data folder"},
		{"a seeded folder", "volumes: [\"./conf:/conf\"]\n    x-gitring: {mounts: {./conf: seed}}", "", ring.Unsupported, 4, "data folder"},
		{"a check by http", "x-gitring: {checks: [{name: up, for: readiness, http: {port: 80}}]}", "", ring.Unsupported, 4, "up is asked by gitring"},
		{"a check by tcp", "x-gitring: {checks: [{name: up, for: readiness, tcp: {port: 80}}]}", "", ring.Unsupported, 4, "up is asked by gitring"},
		{"a check by grpc", "x-gitring: {checks: [{name: up, for: readiness, grpc: {port: 80}}]}", "", ring.Unsupported, 4, "up is asked by gitring"},
		{"a second check", "healthcheck: {test: [CMD, /up]}\n    x-gitring: {checks: [{name: more, for: readiness, exec: [/more]}]}", "", ring.Unsupported, 5, "more is asked by gitring"},
		{"a front", "ports: [\"80:80\"]\n    x-gitring: {publish: front}", "", ring.Unsupported, 5, "front"},
		{"a canary", "ports: [\"80:80\"]\n    x-gitring: {publish: front, rollout: {strategy: canary, steps: [{weight: 10, for: 1m}]}}", "", ring.Unsupported, 5, "has a front"},
		{"blue-green", "x-gitring: {rollout: {strategy: blue_green}}", "", ring.Unsupported, 4, "needs a front"},
		{"a command after the start", "post_start: [{command: [/x]}]", "", ring.Unsupported, 4, "post_start"},
		{"a command before the stop", "pre_stop: [{command: [/x]}]", "", ring.Unsupported, 4, "pre_stop"},
		{"files that are read again in place", "volumes: [\"./conf:/conf:ro\"]\n    x-gitring: {reload: {paths: [./conf], signal: SIGHUP}}", "", ring.Unsupported, 5, "reload"},
		{"another's network", "network_mode: service:other", "  other: {image: r.example.org/a}", ring.Unsupported, 4, "network_mode"},
		{"a name of its own", "container_name: web", "", ring.Unsupported, 4, "container_name"},
		{"privileged", "privileged: true", "", ring.Unsupported, 4, "privileged"},
		{"devices", "devices: [/dev/fuse]", "", ring.Unsupported, 4, "devices"},
		{"an address of one node", "ports: [\"127.0.0.1:80:80\"]", "", ring.Unsupported, 4, "ports"},
		{"a port twice", "ports: [\"80:80\"]", "  other:\n    image: r.example.org/a\n    ports: [\"80:81\"]", ring.BadValue, 4, "port 80"},
		{"an image that is never pulled", "pull_policy: never", "", ring.Unsupported, 3, "registry"},
		{"a port of a job", "ports: [\"80:80\"]\n    restart: \"no\"", "", ring.Unsupported, 4, "it is a job"},
		{"a job on each node", "deploy: {mode: global}\n    x-gitring: {kind: job}", "", ring.Unsupported, 4, "whose run is one task"},
		{"a value in the environment", "environment: {PASSWORD: \"${PASSWORD}\"}", "", ring.Unsupported, 4, "every manager could read it"},
		{"a value in a label of the service", "deploy: {labels: {auth: \"${PASSWORD}\"}}", "", ring.Unsupported, 4, "services.web.deploy.labels.auth has PASSWORD of the host"},
		{"a value in an option of a volume", "environment: {A: b}", "volumes: {data: {driver_opts: {o: \"addr=nas,password=${PASSWORD}\"}}}", ring.Unsupported, 5, "volumes.data.driver_opts.o has PASSWORD of the host"},
		{"a value in an option of a network", "environment: {A: b}", "networks: {back: {driver_opts: {key: \"${PASSWORD}\"}}}", ring.Unsupported, 5, "networks.back.driver_opts.key has PASSWORD of the host"},
		{"a value in a list of labels", "deploy: {labels: [\"auth=${PASSWORD}\"]}", "", ring.Unsupported, 4, "services.web.deploy.labels has PASSWORD of the host"},
		{"a file that is too large", "volumes: [\"./large:/large:ro\"]", "", ring.TooLarge, 4, "500 KiB"},
		{"too many files", "volumes: [\"./many:/many:ro\"]", "", ring.TooLarge, 4, "more than 100 files"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{
				"web/compose.yaml":   "services:\n  web:\n    image: r.example.org/a:1\n    " + tt.keys + "\n" + tt.rest + "\n",
				"fine/compose.yaml":  "services:\n  web:\n    image: r.example.org/a:1\n",
				"web/conf/a.conf":    "a=1",
				"web/large/big.conf": strings.Repeat("x", 500<<10+1),
			}
			for name, text := range many {
				files[name] = text
			}
			plan, refusals := readForSwarm(t, policy.Owner, files, func(s *manifest.Settings) {
				s.EnvKey = []byte(strings.Repeat("k", 32))
				s.Env = map[string]map[string][]byte{"web": {".env": []byte("PASSWORD=s3cret")}}
			})
			require.Len(t, plan.Apps, 1, "its neighbour goes on")
			require.Equal(t, "fine", plan.Apps[0].Name)
			require.NotEmpty(t, refusals)
			var met []string
			for _, r := range refusals {
				if r.Code == tt.code && r.Line == tt.line && strings.Contains(r.Says, tt.says) {
					require.Equal(t, "web/compose.yaml", r.File)
					require.NotEmpty(t, r.Hint)
					require.NotContains(t, r.Says+r.Hint, "s3cret")
					return
				}
				met = append(met, fmt.Sprintf("%s line %d: %s", r.Code, r.Line, r.Says))
			}
			t.Errorf("refused otherwise: %s", strings.Join(met, "; "))
		})
	}
}

func TestAPortOfTheSwarmIsOfOneApp(t *testing.T) {
	const file = "services:\n  web:\n    image: r.example.org/a:1\n    ports: [\"8080:80\"]\n"
	plan, refusals := readForSwarm(t, policy.Compose, map[string]string{"one/compose.yaml": file, "two/compose.yaml": file}, nil)
	require.Len(t, plan.Apps, 1, "%v", refusals)
	require.Len(t, refusals, 1)
	require.Contains(t, refusals[0].Says, "8080")
	require.Equal(t, 4, refusals[0].Line)
	require.NotEmpty(t, refusals[0].Hint)
}

func TestThePlanSaysWhatASwarmReadsAndKeeps(t *testing.T) {
	const file = "services:\n  web:\n    image: r.example.org/a:1\n    secrets: [db]\n    networks: [open, closed]\n  api: {image: \"r.example.org/a:1\"}\n" +
		"secrets: {db: {file: ./db.txt}}\nnetworks: {open: {}, closed: {driver_opts: {encrypted: \"\"}}}\n"
	plan, refusals := readForSwarm(t, policy.Compose, map[string]string{"web/compose.yaml": file}, func(s *manifest.Settings) {
		s.EnvKey = []byte(strings.Repeat("k", 32))
		s.Env = map[string]map[string][]byte{"web": {"db.txt": []byte("s3cret")}}
	})
	require.Empty(t, refusals)
	notes := strings.Join(plan.Apps[0].Notes, "\n")
	require.Contains(t, notes, "network open: what goes from node to node is not encrypted")
	require.Contains(t, notes, "network default: what goes from node to node is not encrypted")
	require.NotContains(t, notes, "network closed")
	require.Contains(t, notes, "web: without a healthcheck, here or of the image, Swarm ends the old task")
	require.Len(t, plan.Apps[0].Powers, 1)
	require.Contains(t, plan.Apps[0].Powers[0], "secrets of web lie in the log of every manager, encrypted")
	require.Contains(t, plan.Apps[0].Powers[0], "autolock")

	plan, _ = readForSwarm(t, policy.Compose, map[string]string{"web/compose.yaml": "services:\n  web:\n    image: r.example.org/a:1\n    configs: [c]\nconfigs: {c: {content: a}}\n"}, nil)
	require.Empty(t, plan.Apps[0].Powers, "a config is no secret")
}
