package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// app reads one app of a Compose file's text.
func app(t *testing.T, text string) ring.App {
	t.Helper()
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": text}), settings())
	if len(plan.Apps) != 1 {
		t.Fatal(dump(t, plan))
	}
	return plan.Apps[0]
}

// lone is the one service of lines.
func lone(t *testing.T, lines ...string) (ring.Service, []string) {
	t.Helper()
	a := app(t, "services:\n  web:\n    image: a\n    "+strings.Join(lines, "\n    ")+"\n")
	return a.Services[0], a.Notes
}

func TestTheLeastServiceHasTheDefaults(t *testing.T) {
	s, notes := lone(t)
	want := ring.Service{
		Name: "web", Kind: ring.Worker, Replicas: 1, File: "web/compose.yaml", Line: 2,
		Spec:    ring.Spec{Image: "a", Networks: []ring.Attachment{{Network: "default"}}},
		Rollout: ring.DefaultRollout(), Restart: ring.Restart{Policy: ring.Always, Engine: "always"},
	}
	want.Written = ring.WrittenHash(want.Spec)
	want.Composed = &ring.Composed{Keys: []ring.ComposedKey{
		{Name: "command", JSON: "null"}, {Name: "entrypoint", JSON: "null"}, {Name: "networks", JSON: `{"default":null}`},
	}}
	want.Places = map[string]ring.Place{"image": {File: "web/compose.yaml", Line: 3}}
	if d := cmp.Diff(want, s); d != "" || notes != nil {
		t.Error(d, notes)
	}
}

// Lesson U26: what is not said is one, and what is said to be none is none.
func TestReplicas(t *testing.T) {
	for line, want := range map[string]int{
		"user: x": 1, "scale: 3": 3, "deploy: {replicas: 0}": 0, "deploy: {replicas: 2}": 2, "deploy: {mode: replicated}": 1,
		"deploy: {replicas: '${N:-4}'}": 4,
	} {
		if s, _ := lone(t, line); s.Replicas != want {
			t.Errorf("%s: %d", line, s.Replicas)
		}
	}
}

func TestARestartPolicyWithoutACondition(t *testing.T) {
	const says = "web: deploy.restart_policy has no condition, so restart: always counts; Compose would never restart it"
	s, notes := lone(t, "restart: always", "deploy: {restart_policy: {delay: 5s}}")
	require.Equal(t, ring.Always, s.Restart.Policy)
	require.Contains(t, notes, says)
	_, notes = lone(t, "restart: always", "deploy: {restart_policy: {delay: 5s, condition: any}}")
	require.NotContains(t, notes, says)
}

// Behind the last semicolon there is nothing that Compose would drop.
func TestACommandMayEndWithASemicolon(t *testing.T) {
	s, _ := lone(t, `command: sh -c 'a | b' ; ;`)
	require.Equal(t, []string{"sh", "-c", "a | b"}, s.Spec.Command)
}

// No shell reads a & at the end, and Compose leaves it out: so does a note, and nothing else.
func TestACommandMayEndWithAnAmpersand(t *testing.T) {
	for _, line := range []string{`command: sh -c 'a | b' &`, `command: "sh -c 'a | b' & ;"`, `entrypoint: sh -c 'a | b'&`} {
		s, notes := lone(t, line)
		words := s.Spec.Command
		if strings.HasPrefix(line, "entrypoint") {
			words = s.Spec.Entrypoint
		}
		require.Equal(t, []string{"sh", "-c", "a | b"}, words, line)
		require.Contains(t, strings.Join(notes, "\n"), "ends with &, which no shell reads")
	}
}

func TestRestart(t *testing.T) {
	for line, want := range map[string]ring.Restart{
		"restart: always":                                                    {Policy: ring.Always, Engine: "always"},
		"restart: unless-stopped":                                            {Policy: ring.Always, Engine: "unless-stopped"},
		"restart: on-failure":                                                {Policy: ring.OnFail, Engine: "on-failure"},
		"restart: on-failure:4":                                              {Policy: ring.OnFail, Engine: "on-failure", MaxRetries: 4},
		"deploy: {restart_policy: {condition: any}}":                         {Policy: ring.Always, Engine: "always"},
		"deploy: {restart_policy: {condition: always}}":                      {Policy: ring.Always, Engine: "always"},
		"deploy: {restart_policy: {condition: unless-stopped}}":              {Policy: ring.Always, Engine: "unless-stopped"},
		"deploy: {restart_policy: {condition: on-failure, max_attempts: 2}}": {Policy: ring.OnFail, Engine: "on-failure", MaxRetries: 2},
	} {
		if s, _ := lone(t, line); s.Restart != want || s.Kind != ring.Worker {
			t.Errorf("%s: %+v %s", line, s.Restart, s.Kind)
		}
	}
	if s, _ := lone(t, "restart: always", "deploy: {restart_policy: {condition: on-failure}}"); s.Restart.Policy != ring.OnFail {
		t.Errorf("deploy does not win over restart: %+v", s.Restart)
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		name, text string
		kind       ring.Kind
		restart    string
		note       string
	}{
		{"restart no", "services: {x: {image: a, restart: 'no'}}\n", ring.JobK, ring.NeverStop, "it says restart: no"},
		{"restart no without quotes", "services: {x: {image: a, restart: no}}\n", ring.JobK, ring.NeverStop, "restart: no"},
		{"condition none", "services: {x: {image: a, deploy: {restart_policy: {condition: none}}}}\n", ring.JobK, ring.NeverStop, "restart: no"},
		{"condition no", "services: {x: {image: a, deploy: {restart_policy: {condition: 'no'}}}}\n", ring.JobK, ring.NeverStop, "restart: no"},
		{"waited for", "services: {x: {image: a}, y: {image: b, depends_on: {x: {condition: service_completed_successfully}}}}\n", ring.JobK, ring.NeverStop, "y waits for it"},
		{"said to be a worker", "services: {x: {image: a, restart: 'no', x-gitring: {kind: worker}}}\n", ring.Worker, ring.NeverStop, "a worker by x-gitring kind"},
		{"said to be a job", "services: {x: {image: a, restart: always, x-gitring: {kind: job}}}\n", ring.JobK, ring.NeverStop, "restart always is not used"},
	} {
		a := app(t, c.text)
		s, _ := a.Service("x")
		if s.Kind != c.kind || s.Restart.Policy != c.restart || !strings.Contains(strings.Join(a.Notes, ";"), c.note) || (s.Job != nil) != (c.kind == ring.JobK) {
			t.Errorf("%s: %s %+v %q", c.name, s.Kind, s.Restart, a.Notes)
		}
	}
	s, _ := lone(t, "restart: on-failure:3", "x-gitring: {kind: job, job: {run: once, timeout: 5m, retries: 1}}")
	if d := cmp.Diff(&ring.Job{Run: "once", Timeout: 5 * time.Minute, Retries: 1}, s.Job); d != "" {
		t.Error(d)
	}
	if s, _ = lone(t, "restart: 'no'", "healthcheck: {test: x}"); s.Checks != nil || s.Job.Run != "on_change" {
		t.Error("a job is judged by a check:", s.Checks)
	}
}

func TestUpdateConfig(t *testing.T) {
	second := time.Second
	for line, change := range map[string]func(*ring.Rollout){
		"{}":                                   func(*ring.Rollout) {},
		"{parallelism: 3}":                     func(r *ring.Rollout) { r.MaxSurge.N, r.MaxParallel = 3, 3 },
		"{order: start-first}":                 func(*ring.Rollout) {},
		"{order: start-first, parallelism: 2}": func(r *ring.Rollout) { r.MaxSurge.N, r.MaxParallel = 2, 2 },
		"{order: stop-first}":                  func(r *ring.Rollout) { r.MaxSurge.N, r.MaxUnavailable.N = 0, 1 },
		"{order: stop-first, parallelism: 2}":  func(r *ring.Rollout) { r.MaxSurge.N, r.MaxUnavailable.N, r.MaxParallel = 0, 2, 2 },
		"{parallelism: 0}":                     func(r *ring.Rollout) { r.MaxSurge, r.MaxParallel = ring.Count{N: 100, Percent: true}, 4 },
		"{monitor: 3s}":                        func(r *ring.Rollout) { r.MinReadyTime = 3 * second },
		"{monitor: 0s}":                        func(r *ring.Rollout) { r.MinReadyTime = 0 },
		"{delay: 1m}":                          func(r *ring.Rollout) { r.MinReadyTime = 60 * second },
		"{delay: 5s}":                          func(*ring.Rollout) {}, // the default waits longer
		"{delay: 5s, monitor: 1s}":             func(r *ring.Rollout) { r.MinReadyTime = 5 * second },
		"{failure_action: rollback}":           func(*ring.Rollout) {},
		"{failure_action: pause}":              func(r *ring.Rollout) { r.OnFailure = ring.OnFailurePause },
		"{failure_action: continue}":           func(r *ring.Rollout) { r.OnFailure = ring.OnFailureContinue },
		"{max_failure_ratio: 0}":               func(r *ring.Rollout) { r.FailureThreshold = 1 },
		"{max_failure_ratio: 0.5}":             func(r *ring.Rollout) { r.FailureThreshold = 3 },
		"{max_failure_ratio: 1}":               func(r *ring.Rollout) { r.FailureThreshold = 5 },
	} {
		want := ring.DefaultRollout()
		change(&want)
		s, _ := lone(t, "deploy: {replicas: 4, update_config: "+line+"}")
		if d := cmp.Diff(want, s.Rollout); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
}

func TestRolloutOfXGitring(t *testing.T) {
	s, notes := lone(t,
		"deploy: {update_config: {order: stop-first, failure_action: pause}}",
		"x-gitring:",
		"  rollout: {strategy: recreate, max_surge: 50%, max_unavailable: 2, max_parallel: 3, min_ready_time: 0s, start_timeout: 5s,",
		"    progress_deadline: 1m, pull_timeout: 2m, failure_threshold: 4, on_failure: continue, drain_delay: 7s}")
	want := ring.Rollout{
		Strategy: ring.Recreate, MaxSurge: ring.Count{N: 50, Percent: true}, MaxUnavailable: ring.Count{N: 2}, MaxParallel: 3,
		StartTimeout: 5 * time.Second, ProgressDeadline: time.Minute, PullTimeout: 2 * time.Minute, FailureThreshold: 4,
		OnFailure: ring.OnFailureContinue, DrainDelay: 7 * time.Second,
	}
	if d := cmp.Diff(want, s.Rollout); d != "" {
		t.Error(d)
	}
	for _, note := range []string{"rollout.max_surge wins over deploy.update_config.order", "rollout.on_failure wins over deploy.update_config.failure_action"} {
		if !strings.Contains(strings.Join(notes, ";"), note) {
			t.Errorf("%q is not noted: %q", note, notes)
		}
	}
}

// The healthcheck goes to the engine, counts as readiness, and start_timeout
// leaves it the time it may take.
func TestHealthcheck(t *testing.T) {
	for _, c := range []struct {
		line  string
		want  *ring.Healthcheck
		gated bool
		start time.Duration
	}{
		{"{test: curl x}", &ring.Healthcheck{Test: []string{"CMD-SHELL", "curl x"}}, true, 2 * time.Minute},
		{"{test: [CMD, a, b], retries: 5}", &ring.Healthcheck{Test: []string{"CMD", "a", "b"}, Retries: 5}, true, 150 * time.Second},
		{"{test: [CMD-SHELL, a], interval: 10s, start_period: 5m, retries: 6, timeout: 1s}", &ring.Healthcheck{Test: []string{"CMD-SHELL", "a"}, Interval: 10 * time.Second, StartPeriod: 5 * time.Minute, Retries: 6, Timeout: time.Second}, true, 6 * time.Minute},
		{"{interval: 5s}", &ring.Healthcheck{Interval: 5 * time.Second}, false, 2 * time.Minute},
		{"{disable: true}", &ring.Healthcheck{Test: []string{"NONE"}}, false, 2 * time.Minute},
		{"{test: [NONE], interval: 1h}", &ring.Healthcheck{Test: []string{"NONE"}}, false, 2 * time.Minute},
	} {
		s, notes := lone(t, "healthcheck: "+c.line)
		if d := cmp.Diff(c.want, s.Spec.Healthcheck); d != "" {
			t.Errorf("%s: %s", c.line, d)
		}
		if s.Gated() != c.gated || s.Rollout.StartTimeout != c.start || (c.start != 2*time.Minute) != (len(notes) > 0) {
			t.Errorf("%s: gated %v, start_timeout %s, notes %q", c.line, s.Gated(), s.Rollout.StartTimeout, notes)
		}
	}
}

func TestChecks(t *testing.T) {
	s, _ := lone(t, "x-gitring:",
		"  checks:",
		"    - {tcp: 80}",
		"    - {name: a, for: startup, http: {port: '8080', scheme: https, host: x.example.org, status: 204}, successes: 2}",
		"    - {name: b, for: liveness, exec: [test, -f, /x], on_failure: alert, interval: 1m, timeout: 10s, failures: 5}",
		"    - {name: c, docker: true}",
	)
	want := []ring.Check{
		{Name: "readiness", For: ring.Readiness, TCP: &ring.TCPCheck{Port: 80}, Interval: 5 * time.Second, Timeout: 2 * time.Second, Failures: 3, Successes: 1},
		{Name: "a", For: ring.Startup, HTTP: &ring.HTTPCheck{Port: 8080, Path: "/", Scheme: "https", Host: "x.example.org", Status: []int{204}}, Interval: 5 * time.Second, Timeout: 2 * time.Second, Failures: 3, Successes: 2},
		{Name: "b", For: ring.Liveness, Exec: []string{"test", "-f", "/x"}, OnFailure: "alert", Interval: time.Minute, Timeout: 10 * time.Second, Failures: 5, Successes: 1},
		{Name: "c", For: ring.Readiness, Docker: true, Interval: 5 * time.Second, Timeout: 2 * time.Second, Failures: 3, Successes: 1},
	}
	if d := cmp.Diff(want, s.Checks); d != "" {
		t.Error(d)
	}
}

// Nothing of x-gitring but what mounts say enters the version: lesson L40.
func TestWhatChangesInPlaceDoesNotChangeTheVersion(t *testing.T) {
	of := func(lines ...string) string {
		s, _ := lone(t, lines...)
		return s.Written
	}
	plain := of()
	for _, line := range []string{"deploy: {replicas: 3}", "restart: unless-stopped", "scale: 2", "x-gitring: {share: true, checks: [{tcp: {port: 1}}], rollout: {max_surge: 2}}", "deploy: {update_config: {parallelism: 2}}", "pull_policy: missing", "pull_policy: if_not_present", "profiles: []"} {
		if of(line) != plain {
			t.Errorf("%s changes the version", line)
		}
	}
	for _, line := range []string{"user: x", "command: a", "entrypoint: a", "environment: {A: 1}", "working_dir: /x", "hostname: h", "labels: {a: b}", "ports: ['80']", "expose: [80]", "volumes: [/x]", "tmpfs: [/x]", "networks: {default: {aliases: [x]}}", "network_mode: none", "healthcheck: {test: x}", "stop_signal: SIGINT", "stop_grace_period: 3s", "extra_hosts: ['a:1.2.3.4']", "init: true", "logging: {driver: local}", "pull_policy: never"} {
		if of(line) == plain {
			t.Errorf("%s does not change the version", line)
		}
	}
}

func TestDependencies(t *testing.T) {
	a := app(t, `services:
  web:
    image: a
    depends_on:
      db: {condition: service_healthy}
      job: {condition: service_completed_successfully}
      maybe: {condition: service_started, required: false}
      off: {condition: service_started, required: false}
  db: {image: a}
  job: {image: a}
  maybe: {image: a}
  off: {image: a, profiles: [x]}
  short: {image: a, depends_on: [web]}
`)
	web, _ := a.Service("web")
	want := []ring.Dependency{{Service: "db", Until: ring.ReadyDep}, {Service: "job", Until: ring.Completed}, {Service: "maybe", Until: ring.Started, Optional: true}}
	if d := cmp.Diff(want, web.DependsOn); d != "" {
		t.Error(d)
	}
	short, _ := a.Service("short")
	if d := cmp.Diff([]ring.Dependency{{Service: "web", Until: ring.Started}}, short.DependsOn); d != "" || len(a.Services) != 5 {
		t.Error(d)
	}
}

func TestPorts(t *testing.T) {
	s, _ := lone(t, "ports:", "  - '3000-3001:4000-4001'", "  - 127.0.0.1:53:53/udp", "  - '[::1]:8080:80'", "  - 9000", "  - {target: 443, published: '8443', host_ip: 10.0.0.1, protocol: sctp}", "  - '0:70'")
	want := []ring.Port{
		{HostIP: "127.0.0.1", HostPort: "53", Container: 53, Protocol: "udp"},
		{Container: 70, Protocol: "tcp"},
		{HostIP: "::1", HostPort: "8080", Container: 80, Protocol: "tcp"},
		{HostIP: "10.0.0.1", HostPort: "8443", Container: 443, Protocol: "sctp"},
		{HostPort: "3000", Container: 4000, Protocol: "tcp"},
		{HostPort: "3001", Container: 4001, Protocol: "tcp"},
		{Container: 9000, Protocol: "tcp"},
	}
	if d := cmp.Diff(want, s.Spec.Ports); d != "" {
		t.Error(d)
	}
}

func TestPlanCarriesTheCommit(t *testing.T) {
	c := repo(map[string]string{"web/compose.yaml": one})
	c.Signer, c.AllowRemove = "alice@example.org", 3
	plan, _ := Read(c, settings())
	if plan.Source != "prod" || plan.Commit != c.SHA || plan.Signer != c.Signer || plan.AllowRemove != 3 || plan.Apps[0].Commit != c.SHA || plan.Apps[0].Source != "prod" {
		t.Error(dump(t, plan))
	}
}
