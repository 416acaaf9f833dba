package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
)

// web makes one app of a service's lines, which start on line 3 of the file.
func web(lines ...string) map[string]string {
	return map[string]string{"web/compose.yaml": "services:\n  web:\n    " + strings.Join(lines, "\n    ") + "\n"}
}

// fronted is an app whose service has a front on port 80; lines are of its x-gitring.
func fronted(lines ...string) map[string]string {
	return web(append([]string{"image: a", "expose: [80]", "x-gitring: {publish: front,"}, strings.Join(lines, ", ")+"}")...)
}

// canaryOf is an app with a canary; lines are of its rollout.
func canaryOf(lines ...string) map[string]string {
	out := []string{"image: a", "expose: [80]", "x-gitring:", "  publish: front", "  rollout:", "    strategy: canary"}
	for _, l := range lines {
		out = append(out, "    "+l)
	}
	return web(out...)
}

// refused is a commit of one app that is refused, and with what.
type refused struct {
	name  string
	files map[string]string
	app   string // default web
	code  ring.Code
	at    string // default web/compose.yaml:<line>
	line  int
	says  string // is in the sentence
	hint  string // is in the hint
}

func TestRefusals(t *testing.T) {
	areRefused(t, []refused{
		// what is written wrong
		{name: "no YAML", files: map[string]string{"web/compose.yaml": "services:\n  web: {\n"}, code: ring.Yaml, line: 3},
		{name: "a tab", files: map[string]string{"web/compose.yaml": "services:\n\tweb: {}\n"}, code: ring.Yaml, line: 2},
		{name: "a key twice", files: web("image: a", "user: b", "image: c"), code: ring.Yaml, line: 5, says: "twice, first on line 3"},
		{name: "two documents", files: map[string]string{"web/compose.yaml": "services: {web: {image: a}}\n---\nservices: {}\n"}, code: ring.Yaml, line: 2},
		{name: "a custom tag", files: web("image: a", "command: !secret []"), code: ring.Yaml, line: 4, says: "!secret", hint: "!override"},
		{name: "a list for a file", files: map[string]string{"web/compose.yaml": "- a\n"}, code: ring.Yaml, line: 1},
		{name: "an anchor in itself", files: map[string]string{"web/compose.yaml": "x-a: &a\n  b: [*a]\nservices: {web: {image: a}}\n"}, code: ring.Yaml, line: 1, says: "contains itself"},
		{name: "a merge of a text", files: web("image: a", "<<: text"), code: ring.Yaml, line: 4, says: "<<"},
		{name: "a key that is no text", files: web("image: a", "? [a]", ": b"), code: ring.Yaml, line: 4},
		{name: "an empty file", files: map[string]string{"web/compose.yaml": ""}, code: ring.BadValue, line: 1, says: "no service"},
		{name: "an unknown key", files: web("image: a", "imagee: b"), code: ring.UnknownKey, line: 4, says: "services.web.imagee", hint: "did you mean image?"},
		{name: "an unknown key deep inside", files: web("image: a", "healthcheck:", "  intervall: 5s"), code: ring.UnknownKey, line: 5, hint: "interval?"},
		{name: "an unknown key at the top", files: map[string]string{"web/compose.yaml": "service:\n  web: {image: a}\n"}, code: ring.UnknownKey, line: 1, hint: "services?"},
		{name: "an unknown key in a list", files: web("image: a", "ports:", "  - {target: 80, publised: 80}"), code: ring.UnknownKey, line: 5, hint: "published?"},
		{name: "an unknown key through a merge", files: map[string]string{"web/compose.yaml": "x-base: &base\n  imag: a\nservices:\n  web:\n    <<: *base\n    image: b\n"}, code: ring.UnknownKey, line: 2},
		{name: "x-gitring with a letter wrong", files: web("image: a", "x-gitrng: {share: true}"), code: ring.UnknownKey, line: 4, hint: "x-gitring?"},
		{name: "x-gitring at the top", files: map[string]string{"web/compose.yaml": "x-gitring: {kind: job}\nservices: {web: {image: a}}\n"}, code: ring.UnknownKey, line: 1, says: "where only secrets is read"},
		{name: "a value of the wrong type", files: web("image: a", "hostname: [a]"), code: ring.BadValue, line: 4, says: "services.web.hostname"},
		{name: "no image", files: web("user: a"), code: ring.BadValue, line: 2, says: "has no image"},
		{name: "an image that is none", files: web("image: 'Not An Image'"), code: ring.BadValue, line: 3},
		{name: "a dependency that is not there", files: web("image: a", "depends_on: [db]"), code: ring.BadValue, line: 4, says: "db"},
		{name: "services that wait for each other", files: map[string]string{"web/compose.yaml": "services:\n  a: {image: x, depends_on: [b]}\n  b: {image: x, depends_on: [a]}\n"}, code: ring.BadValue, line: 3, says: "a after b after a"},
		{name: "a volume that is not declared", files: web("image: a", "volumes: ['data:/data']"), code: ring.BadValue, line: 4, says: "volume data"},
		{name: "a network that is not declared", files: web("image: a", "networks: [front]"), code: ring.BadValue, line: 4, says: "network front"},
		{name: "a volume that Compose takes for a drive", files: web("image: a", "volumes: ['d:/d']"), code: ring.BadValue, line: 4, hint: "longer name"},
		{name: "a service name that is none", files: map[string]string{"web/compose.yaml": "services:\n  'a b': {image: x}\n"}, code: ring.BadName, line: 2},
		{name: "a host name that could be a container's ID", files: web("image: a", "hostname: 0123456789ab"), code: ring.BadName, line: 4, says: "could be the ID of a container", hint: "not 12 or 64 hex digits"},
		{name: "a container's name that could be the ID of another", files: web("image: a", "container_name: 0123456789ab"), code: ring.BadName, line: 4},
		{name: "an alias that could be a container's ID", files: web("image: a", "networks:", "  default: {aliases: [web1, 0123456789ab]}"), code: ring.BadName, line: 5, says: "alias"},
		{name: "a service that could be called as a container", files: map[string]string{"web/compose.yaml": "services:\n  feedfacecafe: {image: x}\n"}, code: ring.BadName, line: 2},
		{name: "a variable with an operator that is none", files: web("image: 'a:${TAG:1}'"), code: ring.BadValue, line: 3, says: `"${TAG:1}" is no variable`},
		{name: "a restart policy that is none", files: web("image: a", "restart: sometimes"), code: ring.BadValue, line: 4},
		{name: "a signal that is none", files: web("image: a", "stop_signal: 'TERM; rm'"), code: ring.BadValue, line: 4},
		{name: "a grace of nothing", files: web("image: a", "stop_grace_period: 0s"), code: ring.BadValue, line: 4},
		{name: "a shell operator without a shell", files: web("image: a", "command: migrate && serve"), code: ring.BadValue, line: 4, says: "shell operator"},
		{name: "a shell operator behind a semicolon", files: web("image: a", "command: 'migrate; & serve'"), code: ring.BadValue, line: 4, says: "shell operator"},
		{name: "a quote left open", files: web("image: a", "command: echo 'a"), code: ring.BadValue, line: 4},
		{name: "a volume that two replicas would write", files: map[string]string{"web/compose.yaml": "services:\n  web:\n    image: a\n    volumes: ['data:/data']\n    deploy: {replicas: 2}\nvolumes: {data: }\n"}, code: ring.BadValue, line: 2, says: "would all write /data", hint: "share: true"},
		{name: "a data folder that two replicas would write", files: web("image: a", "scale: 2", "volumes: ['./data:/data']"), code: ring.BadValue, line: 2, says: "would all write /data"},
		{name: "a test that runs nothing", files: web("image: a", "healthcheck:", "  test: [CMD]"), code: ring.BadValue, line: 5},
		{name: "a test of another kind", files: web("image: a", "healthcheck:", "  test: [curl, x]"), code: ring.BadValue, line: 5, says: "CMD-SHELL"},
		{name: "an option of a log driver with a letter wrong", files: web("image: a", "logging:", "  options:", "    max-sise: 1m"), code: ring.UnknownKey, line: 6, hint: "max-size?"},
		{name: "a variable without a name", files: web("image: a", "environment:", "  - A=1", "  - =x"), code: ring.BadValue, line: 6},
		{name: "a port of a protocol that is none", files: web("image: a", "expose: ['80/http']"), code: ring.BadValue, line: 4},
		{name: "replicas beyond reason", files: web("image: a", "deploy:", "  replicas: 5000"), code: ring.BadValue, line: 5},
		{name: "replicas below zero", files: web("image: a", "scale: -1"), code: ring.BadValue, line: 4},

		{name: "a signal that sounds like one", files: web("image: a", "stop_signal: SIGFOO"), code: ring.BadValue, line: 4, says: "SIGFOO"},
		{name: "a grace in words", files: web("image: a", "stop_grace_period: 5 minutes"), code: ring.BadValue, line: 4, says: "no duration", hint: "1m30s"},
		{name: "an interval without a unit", files: web("image: a", "healthcheck: {test: x, interval: 5}"), code: ring.BadValue, line: 4, hint: "such as 5s"},
		{name: "an interval that a variable spoils", files: with(web("image: a", "healthcheck:", "  test: x", "  interval: $I"), "web/.env", "I=often"), code: ring.BadValue, line: 6, says: `"often" is no duration`},
		{name: "a delay in words", files: web("image: a", "deploy:", "  update_config:", "    delay: soon"), code: ring.BadValue, line: 6},
		{name: "replicas in words", files: web("image: a", "deploy:", "  replicas: two"), code: ring.BadValue, line: 5, says: `services.web.deploy.replicas "two" is not such a number`},
		{name: "a relative working folder", files: web("image: a", "working_dir: srv"), code: ring.BadValue, line: 4, hint: "absolute"},
		{name: "a host name with a space", files: web("image: a", "hostname: my box"), code: ring.BadValue, line: 4},
		{name: "an extra host without an address", files: web("image: a", "extra_hosts:", "  - db"), code: ring.BadValue, line: 5, says: `"db"`},
		{name: "an extra host with no address at all", files: web("image: a", "extra_hosts:", "  db: 999.1.1.1"), code: ring.BadValue, line: 5, says: "999.1.1.1"},
		{name: "braces left open in a flow", files: map[string]string{"web/compose.yaml": "services:\n  web: {image: a, user: {b}\n"}, code: ring.Yaml, line: 2},

		// variables
		{name: "a variable that is not set", files: web("image: a", "user: $NOBODY"), code: ring.UndefinedVariable, line: 4, says: "NOBODY", hint: "${NOBODY:-}"},
		{name: "a variable in a default", files: web("image: 'a:${TAG:-${OTHER}}'"), code: ring.UndefinedVariable, line: 3, says: "OTHER"},
		{name: "a required variable", files: web("image: 'a:${TAG:?say which}'"), code: ring.UndefinedVariable, line: 3, says: "say which"},
		{name: "braces around no name", files: web("image: 'a:${1}'"), code: ring.BadValue, line: 3, hint: "$$"},
		{name: "a brace left open", files: web("image: 'a:${TAG'"), code: ring.BadValue, line: 3},
		{name: "a variable in x-gitring", files: web("image: a", "x-gitring:", "  checks: [{tcp: {port: $PORT}}]"), code: ring.UndefinedVariable, line: 5, says: "PORT"},
		{name: "a .env that does not end its quote", files: with(web("image: a"), "web/.env", "A=1\nB=\"x\n"), code: ring.BadValue, at: "web/.env:2"},
		{name: "a .env with a variable that is not set", files: with(web("image: a"), "web/.env", "# c\nA=$B\n"), code: ring.UndefinedVariable, at: "web/.env:2"},
		{name: "a .env that SOPS wrote", files: with(web("image: a"), "web/.env", "A=ENC[AES256_GCM,data:x]\n"), code: ring.Unsupported, at: "web/.env:1"},
		{name: "an env file that is not there", files: web("image: a", "env_file:", "  - b.env"), code: ring.BadValue, line: 5, says: "web/b.env"},

		// what may not happen
		{name: "another container's network", files: web("image: a", "network_mode: 'container:x'"), code: ring.PolicyDenied, line: 4},
		{name: "another container's processes", files: web("image: a", "pid: 'container:x'"), code: ring.PolicyDenied, line: 4},
		{name: "a reserved label", files: web("image: a", "labels:", "  gitring.app: other"), code: ring.PolicyDenied, line: 5, says: "gitring.app"},
		{name: "a reserved label in a list", files: web("image: a", "labels:", "  - a=b", "  - com.docker.compose.project=x"), code: ring.PolicyDenied, line: 6},
		{name: "a reserved label of a volume", files: map[string]string{"web/compose.yaml": "services:\n  web: {image: a, volumes: ['data:/d']}\nvolumes:\n  data:\n    labels: [com.docker.compose.volume=x]\n"}, code: ring.PolicyDenied, line: 5},
		{name: "a merged privilege", files: map[string]string{"web/compose.yaml": "x-p: &p\n  use_api_socket: true\nservices:\n  web:\n    <<: *p\n    image: a\n"}, code: ring.PolicyDenied, line: 2},
		{name: "a privilege of the override file", files: with(web("image: a"), "web/compose.override.yaml", "services:\n  web:\n    use_api_socket: true\n"), code: ring.PolicyDenied, at: "web/compose.override.yaml:3"},

		// what is not carried out yet
		{name: "build", files: web("build: ."), code: ring.Unsupported, line: 3, hint: "CI"},
		{name: "pull by no clock", files: web("image: a", "pull_policy: every_0h"), code: ring.BadValue, line: 4, hint: "every_12h"},
		{name: "a refresh without its time", files: web("image: a", "pull_policy: refresh"), code: ring.BadValue, line: 4, hint: "pull_refresh_after: 24h"},
		{name: "a refresh after no time", files: web("image: a", "pull_policy: refresh", "pull_refresh_after: soon"), code: ring.BadValue, line: 5, says: "soon"},
		{name: "bounds of no clock", files: web("image: a", "x-gitring:", "  updates: {min_age: 72h}"), code: ring.BadValue, line: 5, hint: "pull_policy: daily"},
		{name: "an age that is none", files: web("image: a", "pull_policy: daily", "x-gitring:", "  updates: {min_age: soon}"), code: ring.BadValue, line: 6, says: "min_age"},
		{name: "an age below zero", files: web("image: a", "pull_policy: daily", "x-gitring:", "  updates: {min_age: -1h}"), code: ring.BadValue, line: 6},
		{name: "a window that is none", files: web("image: a", "pull_policy: daily", "x-gitring:", "  updates: {window: at night}"), code: ring.BadValue, line: 6, hint: "Sat 02:00-05:00"},
		{name: "a bound that is none", files: web("image: a", "pull_policy: daily", "x-gitring:", "  updates: {minage: 72h}"), code: ring.UnknownKey, line: 6, hint: "min_age"},
		{name: "pull build", files: web("image: a", "pull_policy: build"), code: ring.Unsupported, line: 4},
		{name: "secrets at the top", files: map[string]string{"web/compose.yaml": "services:\n  web: {image: a, secrets: [s]}\nsecrets:\n  s: {file: ../../passwd}\n"}, code: ring.OutsideCommit, line: 4},
		{name: "include", files: map[string]string{"web/compose.yaml": "include: [/etc/passwd]\nservices:\n  web: {image: a}\n"}, code: ring.OutsideCommit, line: 1},
		{name: "a range for one port", files: web("image: a", "ports:", "  - 80:80", "  - 8000-8010:80"), code: ring.Unsupported, line: 6},
		{name: "a host port of two replicas that want no front", files: web("image: a", "ports:", "  - '81'", "  - 8080:80", "deploy: {replicas: 2}", "x-gitring: {publish: direct}"), code: ring.Unsupported, line: 6, hint: "remove publish: direct"},
		{name: "a host port of two replicas that can have no front", files: web("image: a", "ports:", "  - '81/sctp'", "  - 8080:80", "deploy: {replicas: 2}"), code: ring.Unsupported, line: 6, hint: "run one replica"},
		{name: "a job in two replicas", files: web("image: a", "restart: 'no'", "deploy:", "  replicas: 2"), code: ring.Unsupported, line: 6},

		// mounts and paths
		{name: "a path out of the source", files: web("image: a", "volumes: ['../../x:/d']"), code: ring.OutsideCommit, line: 4},
		{name: "a path out of the source in long form", files: web("image: a", "volumes:", "  - {type: bind, source: ../../../etc, target: /d}"), code: ring.OutsideCommit, line: 5},
		{name: "an env file out of the source", files: web("image: a", "env_file:", "  - ../../../etc/passwd"), code: ring.OutsideCommit, line: 5},
		{name: "an absolute env file", files: web("image: a", "env_file: /etc/passwd"), code: ring.OutsideCommit, line: 4},
		{name: "a target that is no path", files: web("image: a", "volumes: ['./x:d']"), code: ring.BadValue, line: 4},
		{name: "two mounts at one target", files: web("image: a", "volumes: ['./x:/d']", "tmpfs:", "  - /d"), code: ring.BadValue, line: 4},
		{name: "a tmpfs without a size", files: web("image: a", "tmpfs:", "  - /d:size=big"), code: ring.BadValue, line: 5},

		// ports and networks
		{name: "a port beyond the last", files: web("image: a", "ports:", "  - 80:80", "  - 70000:80"), code: ring.BadValue, line: 6},
		{name: "a port by name", files: web("image: a", "ports:", "  - 80:80", "  - 443:https"), code: ring.BadValue, line: 6, says: `"https" is no port`},
		{name: "a colon too many", files: web("image: a", "ports:", "  - 80:80", "  - 80:80:80:80"), code: ring.BadValue, line: 6, hint: "127.0.0.1:8080:80"},
		{name: "an address that is none", files: web("image: a", "ports: ['localhost:80:80']"), code: ring.BadValue, line: 4, says: `"localhost:80:80"`},
		{name: "a protocol that is none", files: web("image: a", "ports: [53:53/icmp]"), code: ring.BadValue, line: 4},
		{name: "one host port twice", files: map[string]string{"web/compose.yaml": "services:\n  a: {image: x, ports: ['80:80']}\n  b:\n    image: x\n    ports:\n      - 80:81\n"}, code: ring.BadValue, line: 6},
		{name: "a subnet that is none", files: map[string]string{"web/compose.yaml": "services:\n  web: {image: a}\nnetworks:\n  default:\n    ipam:\n      config:\n        - subnet: 10.0.0.0\n"}, code: ring.BadValue, line: 7},
		{name: "subnets that overlap", files: map[string]string{"web/compose.yaml": "services:\n  web: {image: a, networks: [a, b]}\nnetworks:\n  a: {ipam: {config: [{subnet: 10.0.0.0/16}]}}\n  b:\n    ipam:\n      config:\n        - subnet: 10.0.7.0/24\n"}, code: ring.BadValue, line: 8, says: "overlaps 10.0.0.0/16 of network a"},
		{name: "a gateway elsewhere", files: map[string]string{"web/compose.yaml": "services:\n  web: {image: a}\nnetworks:\n  default:\n    ipam:\n      config:\n        - subnet: 10.0.0.0/24\n          gateway: 10.0.1.1\n"}, code: ring.BadValue, line: 8},
		{name: "an address without a subnet", files: web("image: a", "networks:", "  default:", "    ipv4_address: 10.0.0.9"), code: ring.BadValue, line: 6},
		{name: "an address of two replicas", files: map[string]string{"web/compose.yaml": "services:\n  web:\n    image: a\n    scale: 2\n    networks:\n      default:\n        ipv4_address: 10.0.0.9\nnetworks:\n  default: {ipam: {config: [{subnet: 10.0.0.0/24}]}}\n"}, code: ring.BadValue, line: 7},

		// x-gitring
		{name: "x-gitring that is a list", files: web("image: a", "x-gitring: [a]"), code: ring.BadValue, line: 4},
		{name: "an unknown key of x-gitring", files: web("image: a", "x-gitring:", "  chekcs: []"), code: ring.UnknownKey, line: 5, hint: "checks?"},
		{name: "a route as a list", files: web("image: a", "x-gitring:", "  route: [{port: 80}]"), code: ring.BadValue, line: 5, says: "route is not a mapping"},
		{name: "kind of none", files: web("image: a", "x-gitring:", "  kind: daemon"), code: ring.BadValue, line: 5},
		{name: "a check without a probe", files: web("image: a", "x-gitring:", "  checks:", "    - {name: up}"), code: ring.BadValue, line: 6},
		{name: "a check with two probes", files: web("image: a", "x-gitring:", "  checks:", "    - {tcp: {port: 1}, http: {port: 1}}"), code: ring.BadValue, line: 6},
		{name: "a grpc check without a port", files: web("image: a", "x-gitring:", "  checks:", "    - grpc: {service: a}"), code: ring.BadValue, line: 6},
		{name: "a grpc check without a network", files: web("image: a", "network_mode: none", "x-gitring:", "  checks:", "    - grpc: 1"), code: ring.BadValue, line: 7, says: "no network"},
		{name: "an http check of a host", files: web("image: a", "x-gitring:", "  checks:", "    - http: {port: 80, path: 'http://169.254.169.254/'}"), code: ring.BadValue, line: 6},
		{name: "a check on no port", files: web("image: a", "x-gitring:", "  checks:", "    - http: {path: /}"), code: ring.BadValue, line: 6},
		{name: "a probe with a letter wrong", files: web("image: a", "x-gitring:", "  checks:", "    - {htp: {port: 1}}"), code: ring.UnknownKey, line: 6, hint: "http?"},
		{name: "an unknown key of a check", files: web("image: a", "x-gitring:", "  checks:", "    - {tcp: {port: 1}, intervall: 5s}"), code: ring.UnknownKey, line: 6, hint: "interval?"},
		{name: "a check twice", files: web("image: a", "x-gitring:", "  checks:", "    - {tcp: {port: 1}}", "    - {tcp: {port: 2}}"), code: ring.BadValue, line: 7},
		{name: "a duration that is none", files: web("image: a", "x-gitring:", "  checks:", "    - {tcp: {port: 1}, interval: 5}"), code: ring.BadValue, line: 6, hint: "30s"},
		{name: "a header with a line break", files: web("image: a", "x-gitring:", "  checks:", "    - http: {port: 1, headers: {A: \"b\\r\\nC: d\"}}"), code: ring.BadValue, line: 6},
		{name: "readiness that restarts", files: web("image: a", "x-gitring:", "  checks:", "    - {tcp: {port: 1}, on_failure: restart}"), code: ring.BadValue, line: 6},
		{name: "no room to move", files: web("image: a", "x-gitring:", "  rollout:", "    max_surge: 0"), code: ring.BadValue, line: 6, says: "both 0"},
		{name: "a canary without a front", files: web("image: a", "x-gitring:", "  rollout: {strategy: canary, steps: [{weight: 5}]}"), code: ring.BadValue, line: 5, says: "needs a front", hint: "publish: front"},
		{name: "a canary without steps", files: web("image: a", "expose: [80]", "x-gitring:", "  publish: front", "  rollout: {strategy: canary}"), code: ring.BadValue, line: 7, says: "has no steps", hint: "steps:"},
		{name: "a canary with an empty list of steps", files: web("image: a", "expose: [80]", "x-gitring:", "  publish: front", "  rollout:", "    strategy: canary", "    steps: []"), code: ring.BadValue, line: 9, says: "has no steps", hint: "steps:"},
		{name: "steps without a canary", files: web("image: a", "x-gitring:", "  rollout:", "    steps: [{weight: 5}]"), code: ring.BadValue, line: 6, says: "rollout.steps is for a canary", hint: "strategy: canary"},
		{name: "a judge without a canary", files: web("image: a", "x-gitring:", "  rollout:", "    strategy: blue_green", "    judge: off"), code: ring.BadValue, line: 7, says: "the strategy is blue_green"},
		{name: "a step without a weight", files: canaryOf("steps: [{for: 1m}]"), code: ring.BadValue, line: 9, says: "has no weight"},
		{name: "a step with a wrong letter", files: canaryOf("steps: [{wieght: 5}]"), code: ring.UnknownKey, line: 9, hint: "weight"},
		{name: "a step of everything", files: canaryOf("steps: [{weight: 100}]"), code: ring.BadValue, line: 9, says: "from 1 to 99"},
		{name: "steps that do not grow", files: canaryOf("steps: [{weight: 10}, {weight: 10}]"), code: ring.BadValue, line: 9, says: "weight 10 comes after 10"},
		{name: "a step promoted by nobody", files: canaryOf("steps: [{weight: 10, promote: never}]"), code: ring.BadValue, line: 9, says: "promote"},
		{name: "a match of nothing", files: canaryOf("steps: [{weight: 10}]", "match: {}"), code: ring.BadValue, line: 10, says: "no header and no cookie"},
		{name: "a match of what is no header", files: canaryOf("steps: [{weight: 10}]", "match: {header: {'X Canary': '1'}}"), code: ring.BadValue, line: 10, says: "is no header"},
		{name: "a match of what is no cookie", files: canaryOf("steps: [{weight: 10}]", "match: {cookie: {beta: 'a; b'}}"), code: ring.BadValue, line: 10, says: "is no cookie"},
		{name: "a judge that is a word", files: canaryOf("steps: [{weight: 10}]", "judge: strict"), code: ring.BadValue, line: 10, says: "neither off nor a mapping"},
		{name: "errors without a percent sign", files: canaryOf("steps: [{weight: 10}]", "judge: {max_errors: 1}"), code: ring.BadValue, line: 10, says: "max_errors"},
		{name: "errors in hundredths of a percent", files: canaryOf("steps: [{weight: 10}]", "judge: {max_errors: 0.25%}"), code: ring.BadValue, line: 10, says: "max_errors"},
		{name: "a p99 below the stable one", files: canaryOf("steps: [{weight: 10}]", "judge: {max_p99: 90%}"), code: ring.BadValue, line: 10, says: "max_p99"},
		{name: "a key that no judge has", files: canaryOf("steps: [{weight: 10}]", "judge: {max_error: 1%}"), code: ring.UnknownKey, line: 10, hint: "max_errors"},
		{name: "a check of a canary that there is not", files: web("image: a", "x-gitring:", "  checks: [{for: canary, tcp: 80}]"), code: ring.BadValue, line: 5, says: "its rollouts have none"},
		{name: "published by nobody", files: web("image: a", "x-gitring: {publish: host}"), code: ring.BadValue, line: 4, says: "publish"},
		{name: "a key that no route has", files: fronted("route: {qeue: 1s}"), code: ring.UnknownKey, line: 6, hint: "queue"},
		{name: "a protocol that no front speaks", files: fronted("route: {protocol: grpc}"), code: ring.BadValue, line: 6, says: "protocol"},
		{name: "a protocol of what is no port", files: fronted("route: {protocol: {web: http}}"), code: ring.BadValue, line: 6, says: "\"web\" is no port"},
		{name: "a protocol of a port that the front does not listen on", files: fronted("route: {protocol: {9000: http}}"), code: ring.BadValue, line: 6, says: "tcp port 9000", hint: "name a port of 80"},
		{name: "a route port that is none", files: fronted("route: {ports: [http]}"), code: ring.BadValue, line: 6, says: "\"http\" is no port"},
		{name: "a route port of sctp", files: fronted("route: {ports: [80/sctp]}"), code: ring.BadValue, line: 6, says: "is no port"},
		{name: "a drain of two days", files: fronted("route: {drain_timeout: 48h}"), code: ring.BadValue, line: 6, says: "longer than 24h"},
		{name: "a queue of two days", files: fronted("route: {queue: 48h}"), code: ring.BadValue, line: 6, says: "longer than 24h"},
		{name: "a sticky word", files: fronted("route: {sticky: ip}"), code: ring.BadValue, line: 6, says: "sticky"},
		{name: "a log of everything", files: fronted("route: {log: all}"), code: ring.BadValue, line: 6, says: "log"},
		{name: "whom to believe", files: fronted("route: {trusted_proxies: [0.0.0.0/0]}"), code: ring.UnknownKey, line: 6, says: "trusted_proxies"},
		{name: "whom to believe, by another name", files: fronted("route: {trusted: [networks]}"), code: ring.UnknownKey, line: 6, says: "trusted"},
		{name: "whom to believe, by the host's key", files: fronted("traffic: {trusted_proxies: [gateway]}"), code: ring.UnknownKey, line: 6, says: "traffic"},
		{name: "forwarded by a word", files: fronted("route: {forwarded: maybe}"), code: ring.BadValue, line: 6, says: "forwarded"},
		{name: "a front on the host's network", files: web("image: a", "network_mode: host", "x-gitring:", "  publish: front"), code: ring.BadValue, line: 6, says: "network_mode"},
		{name: "a front of sctp", files: web("image: a", "ports: ['80/sctp']", "x-gitring:", "  publish: front"), code: ring.BadValue, line: 6, says: "sctp"},
		{name: "a front of 101 ports", files: web("image: a", "ports: ['1-101']", "x-gitring:", "  publish: front"), code: ring.BadValue, line: 6, says: "101 ports"},
		{name: "a front of a job", files: web("image: a", "restart: 'no'", "expose: [80]", "x-gitring:", "  publish: front"), code: ring.BadValue, line: 7, says: "a job"},
		{name: "a front on macvlan alone", files: map[string]string{"web/compose.yaml": "services:\n  web:\n    image: a\n    expose: [80]\n    networks: [lan]\n    x-gitring: {publish: front}\nnetworks:\n  lan: {driver: macvlan}\n"}, code: ring.BadValue, line: 6, says: "driver bridge"},
		{name: "a service that is called as a front is", files: map[string]string{"web/compose.yaml": "services:\n  web:\n    image: a\n    expose: [80]\n    x-gitring: {publish: front}\n  web-front: {image: a}\n"}, code: ring.BadName, line: 6, says: "the front of web"},
		{name: "warm without a second set", files: web("image: a", "x-gitring:", "  rollout: {warm_for: 10m}"), code: ring.BadValue, line: 5, hint: "blue_green"},
		{name: "a bake that is no time", files: web("image: a", "x-gitring:", "  rollout: {bake: soon}"), code: ring.BadValue, line: 5},
		{name: "a percentage that is none", files: web("image: a", "x-gitring:", "  rollout: {max_surge: half}"), code: ring.BadValue, line: 5},
		{name: "job without being one", files: web("image: a", "x-gitring:", "  job: {run: once}"), code: ring.BadValue, line: 5},
		{name: "a job with checks", files: web("image: a", "x-gitring:", "  kind: job", "  checks: [{tcp: {port: 1}}]"), code: ring.BadValue, line: 6},
		{name: "a mode of no mount", files: web("image: a", "x-gitring:", "  mounts: {./c: data}"), code: ring.BadValue, line: 5},
		{name: "content that is not held", files: web("image: a", "volumes: ['./c:/c']", "x-gitring:", "  mounts: {./c: content}"), code: ring.BadValue, line: 6},
		{name: "a probe without a network", files: web("image: a", "network_mode: none", "x-gitring:", "  checks: [{tcp: {port: 1}}]"), code: ring.BadValue, line: 6},
		{name: "an endless wait", files: map[string]string{"web/compose.yaml": "services:\n  web: {image: a, depends_on: {m: {condition: service_completed_successfully}}}\n  m:\n    image: b\n    x-gitring: {kind: worker}\n"}, code: ring.BadValue, line: 5, says: "waits for its end"},

		// names
		{name: "a folder that is no name", files: map[string]string{"+/compose.yaml": "services: {web: {image: a}}\n"}, app: "+", code: ring.BadName, at: "+/compose.yaml:1", hint: "name:"},
		{name: "a name that is none", files: map[string]string{"web/compose.yaml": "\nname: _\nservices: {web: {image: a}}\n"}, code: ring.BadName, line: 2},
	})
}

func areRefused(t *testing.T, rows []refused) {
	t.Helper()
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			app := or2(c.app, "web")
			at := c.at
			if at == "" {
				at = fmt.Sprintf("web/compose.yaml:%d", c.line)
			}
			plan, _ := Read(repo(c.files), settings())
			r := plan.Refused[app]
			if r == nil || plan.Refusal != nil || len(plan.Apps) != 0 {
				t.Fatalf("not refused: %s", dump(t, plan))
			}
			if r.Code != c.code || r.Where() != at || !strings.Contains(r.Says, c.says) || !strings.Contains(r.Hint, c.hint) {
				t.Errorf("got  %v\nhint %s\nwant %s %s %q hint %q", r, r.Hint, c.code, at, c.says, c.hint)
			}
			if r.App != app || r.Commit != plan.Commit || r.Hint == "" || strings.HasSuffix(r.Says, ".") || r.Says[:1] != strings.ToLower(r.Says[:1]) {
				t.Errorf("not as refusals are written: %+v", r)
			}
		})
	}
}

func with(files map[string]string, path, text string) map[string]string {
	files[path] = text
	return files
}

func TestARefusalTellsAllThatIsWrong(t *testing.T) {
	plan, _ := Read(repo(web("image: a", "use_api_socket: true", "umask: 1", "userr: x")), settings())
	r := plan.Refused["web"]
	if r == nil || r.Code != ring.PolicyDenied || r.Line != 4 {
		t.Fatalf("got %v", r)
	}
	for _, part := range []string{"(and 2 more: line 5: services.web.umask", "line 6: unknown key services.web.userr)"} {
		if !strings.Contains(r.Says, part) {
			t.Errorf("%q is not in %q", part, r.Says)
		}
	}
	lines := []string{"image: a"}
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("key%d: x", i))
	}
	plan, _ = Read(repo(web(lines...)), settings())
	if r = plan.Refused["web"]; r.Line != 4 || !strings.HasSuffix(r.Says, "(and 39 more)") {
		t.Errorf("got %v", r)
	}
}

func TestCheckTellsEachFaultByItself(t *testing.T) {
	where := func(files map[string]string) (out []string) {
		_, refusals := Check(repo(files), settings())
		for _, r := range refusals {
			if r.Hint == "" || r.Says == "" || strings.Contains(r.Says, " more") {
				t.Errorf("not a refusal of one fault: %+v", r)
			}
			out = append(out, r.Where()+" "+string(r.Code))
		}
		return out
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{name: "nothing wrong", files: web("image: a")},
		{
			name:  "several faults of several apps, in order of place",
			files: with(web("image: a", "userr: x", "use_api_socket: true"), "db/compose.yaml", "services:\n  db: {imag: a, umask: 1}\n"),
			want:  []string{"db/compose.yaml:2 Unsupported", "db/compose.yaml:2 UnknownKey", "web/compose.yaml:4 UnknownKey", "web/compose.yaml:5 PolicyDenied"},
		},
		{
			name:  "several mistakes of gitring.yaml",
			files: with(web("image: a"), "gitring.yaml", "version: 1\napps:\n  - {path: web, nam: x}\n  - {path: web, targts: {}}\n"),
			want:  []string{"gitring.yaml:3 UnknownKey", "gitring.yaml:4 UnknownKey"},
		},
		{
			name:  "a name that two claim is one fault",
			files: with(with(map[string]string{}, "a/compose.yaml", "name: x\nservices: {s: {image: a}}\n"), "b/compose.yaml", "name: x\nservices: {s: {image: a}}\n"),
			want:  []string{"b/compose.yaml:1 AppTaken"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := where(c.files)
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestWhatTheEngineTakesIsNotRefused(t *testing.T) {
	for _, line := range []string{
		"stop_signal: SIGRTMIN+3", "stop_signal: TERM", "stop_signal: '15'", "stop_signal: SIGKILL", "stop_grace_period: 1m30s",
		"hostname: edge-1.example.org", "hostname: my_box", "working_dir: /srv/app", "extra_hosts: ['a:1.2.3.4', 'b=::1', 'c=[::1]', 'd:host-gateway']",
		"extra_hosts: {a: 1.2.3.4, b: host-gateway}", "ports: ['127.0.0.1:8080:80', '[::1]:8081:80', '127.0.0.1::81', '82', '9000-9002:9000-9002/udp']",
		"healthcheck: {test: x, interval: 1m30s, timeout: 500ms, start_period: 1h}",
	} {
		plan, _ := Read(repo(web("image: a", line)), settings())
		if len(plan.Refused) != 0 || len(plan.Apps) != 1 {
			t.Errorf("%s: %v", line, plan.Refused["web"])
		}
	}
}
