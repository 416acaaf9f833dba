package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// onSwarm is an app as it would be read for a swarm, whose placement takes nothing away.
func onSwarm(app ring.App) ring.App {
	app.Services = slices.Clone(app.Services)
	for i := range app.Services {
		s := &app.Services[i]
		s.Spec.Cluster = &ring.ClusterSpec{Constraints: []string{"node.hostname == node-1"}, Restart: s.Restart}
	}
	return app
}

// Every vector is tried through the payload of a swarm, too: the policy denies it, or the swarm
// cannot carry it and the app is refused by that name, or manifest refuses it on any engine. None
// passes.
func TestNoEscapePassesThroughTheServiceOfASwarm(t *testing.T) {
	tried, byRule, byName, byManifest := 0, 0, 0, 0
	for class, some := range escapesByClass(t) {
		for _, e := range some {
			if strings.HasPrefix(e.rule, "!") {
				byManifest++
				continue
			}
			tried++
			j := admission.Anywhere(policy.Compose)
			j.Rules.Host, j.Rules.EngineGroups, j.Rules.Listen = "edge-1", []string{"998"}, "127.0.0.1:9480"
			apps := manifest.Look(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: treeOf(e.before, e.files)}, manifest.Settings{Source: "prod", Host: "edge-1"}).Plan.Apps
			for i := range apps {
				apps[i] = onSwarm(apps[i])
			}
			w := j.Beside("prod", apps)
			at := slices.IndexFunc(apps, func(a ring.App) bool { return a.Name == "web" })
			require.GreaterOrEqual(t, at, 0, "%s/%s", class, e.text)
			found, unbuilt := j.Findings(&apps[at], w.Of(policy.HolderOf(&apps[at])))
			switch {
			case slices.ContainsFunc(found, func(f policy.Finding) bool { return f.Verdict == policy.Deny && f.Rule == e.rule }):
				byRule++
			case len(runtime.NotBySwarm(&apps[at])) > 0:
				byName++
			default:
				require.NotNil(t, unbuilt, "%s/%s would be carried out: %+v", class, e.text, found)
				byName++
			}
		}
	}
	t.Logf("%d vectors: the policy denies %d by their rule, a swarm cannot carry %d; manifest refuses %d more on any engine", tried, byRule, byName, byManifest)
	require.GreaterOrEqual(t, byRule, 150)
}

// What ordinary apps ask is nothing that a service of a swarm would be refused for.
func TestAnOrdinaryServicePassesOnASwarm(t *testing.T) {
	const file = `services:
  web:
    image: nginx:1.27
    user: "101"
    command: [nginx, -g, daemon off;]
    environment: {A: "1"}
    labels: {team: shop}
    ports: ["8080:80"]
    volumes: ["data:/data", "/etc/localtime:/etc/localtime:ro"]
    tmpfs: [/tmp:size=64m]
    cap_drop: [ALL]
    cap_add: [CHOWN]
    healthcheck: {test: [CMD, nginx, -t], interval: 5s}
    stop_grace_period: 30s
    extra_hosts: ["db:10.0.0.5"]
    dns: [10.0.0.53]
    sysctls: {net.core.somaxconn: "1024"}
    ulimits: {nofile: 1024}
    configs: [{source: app, target: /etc/app.conf}]
    deploy: {resources: {limits: {memory: 64M, cpus: "0.5"}}}
configs: {app: {content: "a=1"}}
volumes: {data: {}}
`
	apps := manifest.Look(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: treeOf(map[string]string{"web/compose.yaml": file})}, manifest.Settings{Source: "prod", Host: "edge-1"}).Plan.Apps
	require.Len(t, apps, 1)
	app := onSwarm(apps[0])
	app.Services[0].Spec.Mounts = slices.DeleteFunc(app.Services[0].Spec.Mounts, func(m ring.Mount) bool { return m.Options != "" })
	j := admission.Anywhere(policy.Compose)
	j.Rules.Host = "edge-1"
	w := j.Beside("prod", []ring.App{app})
	found, unbuilt := j.Findings(&app, w.Of(policy.HolderOf(&app)))
	require.Nil(t, unbuilt)
	for _, f := range found {
		require.NotEqual(t, policy.Deny, f.Verdict, "%+v", f)
	}
	require.Empty(t, runtime.NotBySwarm(&app))

	j.Rules.Profile = policy.Hardened
	found, _ = j.Findings(&app, w.Of(policy.HolderOf(&app)))
	require.True(t, slices.ContainsFunc(found, func(f policy.Finding) bool { return f.Rule == "hardened.swarm" && f.Verdict == policy.Deny }), "it cannot be judged: %+v", found)
}

// What a swarm cannot carry is refused with the plan, at its line, before anything is touched.
func TestWhatASwarmCannotCarryIsRefusedAtItsLine(t *testing.T) {
	const file = `services:
  web:
    image: nginx:1.27
    volumes: ["data:/data"]
    privileged: true
  fine:
    image: nginx:1.27
volumes: {data: {}}
`
	j := admission.Anywhere(policy.Owner)
	plan, refusals := j.Look(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: treeOf(map[string]string{"web/compose.yaml": file, "other/compose.yaml": "services: {web: {image: nginx}}\n"})},
		manifest.Settings{Source: "prod", Host: "edge-1", Swarm: true})
	got := map[ring.Code]int{}
	for _, r := range refusals {
		require.Equal(t, "web", r.App)
		got[r.Code] = r.Line
	}
	require.Equal(t, map[ring.Code]int{ring.VolumeNotPinned: 4, ring.Unsupported: 5}, got)
	require.Len(t, plan.Apps, 1, "its neighbour goes on")
	require.Equal(t, "other", plan.Apps[0].Name)
}

// A person's count and a plan that is brought back are held to the pin, too: in force it is known
// which volumes the image has.
func TestOnASwarmAPlanInForceIsHeldToThePin(t *testing.T) {
	j := admission.Anywhere(policy.Owner)
	plan, _ := j.Look(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: treeOf(map[string]string{
		"web/compose.yaml": "services: {web: {image: nginx, deploy: {placement: {constraints: [node.hostname == node-1]}}}}\n",
	})}, manifest.Settings{Source: "prod", Host: "edge-1", Swarm: true})
	require.Len(t, plan.Apps, 1)
	app := plan.Apps[0]
	says := func(change func(s *ring.Service)) string {
		a := app
		a.Services = slices.Clone(app.Services)
		change(&a.Services[0])
		refusals, _ := j.App(&a, policy.Whose{})
		if len(refusals) == 0 {
			return ""
		}
		require.Equal(t, ring.VolumeNotPinned, refusals[0].Code)
		return refusals[0].Says
	}
	declares := ring.Image{Known: true, Volumes: []string{"/var/lib/db"}}
	require.Empty(t, says(func(s *ring.Service) { s.Replicas = 3 }), "it writes nothing")
	require.Empty(t, says(func(s *ring.Service) { s.Image = declares }), "pinned, one replica")
	require.Contains(t, says(func(s *ring.Service) { s.Image, s.Replicas = declares, 3 }), "with 3 replicas")
	require.Contains(t, says(func(s *ring.Service) { s.Image, s.Spec.Cluster = declares, &ring.ClusterSpec{} }), "pinned to no node")
}
