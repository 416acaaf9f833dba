package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// readPublished is a stack as a host reads it that says traffic.publish.
func readPublished(t *testing.T, name, publish string, p policy.Profile) (ring.Plan, []*ring.Refusal) {
	t.Helper()
	tree, err := gitsync.OpenFolder(filepath.Join(corpusDir, name))
	require.NoError(t, err)
	defer tree.Close()
	return admission.Anywhere(p).Look(&ring.Commit{Tree: tree}, manifest.Settings{
		Source: name, Path: ".", Host: "edge-1", Traffic: manifest.Traffic{Publish: publish},
	})
}

// A host that gives fronts by default refuses what it refused before, by the same lines.
func TestTheHostsDefaultOfFrontsRefusesNothingMore(t *testing.T) {
	fronted := 0
	for _, name := range corpusStacks(t) {
		for _, p := range []policy.Profile{policy.Compose, policy.Owner, policy.Hardened} {
			_, before := readPublished(t, name, ring.PublishDirect, p)
			plan, after := readPublished(t, name, ring.PublishFront, p)
			require.Equal(t, tellAll(before), tellAll(after), "%s under %s", name, p)
			for _, a := range plan.Apps {
				for _, s := range a.Services {
					if s.FrontOf != "" {
						fronted++
					}
				}
			}
		}
	}
	require.Greater(t, fronted, 20, "the corpus has services that get a front")
}

// What a service says is on its instances or on its front, and nothing is lost: the oracle
// knows only what each of the two has.
func TestNothingOfAServiceIsLostToItsFront(t *testing.T) {
	fronted := 0
	for _, name := range corpusStacks(t) {
		direct, _ := readPublished(t, name, ring.PublishDirect, policy.Owner)
		front, _ := readPublished(t, name, ring.PublishFront, policy.Owner)
		require.Len(t, front.Apps, len(direct.Apps), name)
		for i := range direct.Apps {
			was, is := &direct.Apps[i], &front.Apps[i]
			services := 0
			for _, s := range was.Services {
				at := fmt.Sprintf("%s: %s/%s", name, was.Name, s.Name)
				now, stays := is.Service(s.Name)
				require.True(t, stays, at)
				services++
				before, _ := is.Service(s.Name + "-front")
				if before.FrontOf != s.Name {
					require.Equal(t, s, now, at)
					continue
				}
				services++
				fronted++
				requireAllThere(t, at, &s, &now, &before)
			}
			require.Len(t, is.Services, services, "%s: nothing else came", was.Name)
		}
	}
	require.Greater(t, fronted, 10, "the corpus has services that get a front")
}

func requireAllThere(t *testing.T, at string, s, now, front *ring.Service) {
	t.Helper()
	require.Equal(t, s.Spec.Ports, front.Spec.Ports, at)
	require.Empty(t, now.Spec.Ports, at)
	for _, e := range s.Spec.Expose {
		require.Contains(t, front.Spec.Expose, e, at)
	}
	for _, p := range s.Spec.Ports {
		require.Contains(t, front.Spec.Expose, fmt.Sprintf("%d/%s", p.Container, p.Protocol), at)
	}
	requireSplit(t, at, "labels", s.Spec.Labels, now.Spec.Labels, front.Spec.Labels)
	requireSplit(t, at, "environment", s.Spec.Environment, now.Spec.Environment, front.Spec.Environment)
	joins := map[string]bool{}
	for _, n := range s.Spec.Networks {
		joins[n.Network] = true
	}
	for _, n := range front.Spec.Networks {
		require.True(t, joins[n.Network], "%s: the front is on network %s, and the service is not", at, n.Network)
		require.Empty(t, n.IPv4+n.IPv6+n.MacAddress, at)
	}
	require.Empty(t, front.Spec.Mounts, at)
	require.Empty(t, front.Spec.CapAdd, at)
	require.False(t, front.Spec.Privileged, at)
	require.Equal(t, []int{front.Line, 1}, []int{s.Line, front.Replicas}, at)

	// All else of the service is as it was.
	rest := *now
	rest.Spec.Ports, rest.Spec.Expose, rest.Spec.Labels, rest.Spec.Environment = s.Spec.Ports, s.Spec.Expose, s.Spec.Labels, s.Spec.Environment
	rest.Written, rest.Composed, rest.Route = s.Written, s.Composed, s.Route
	require.Equal(t, *s, rest, at)
}

// requireSplit holds that each entry is on one of the two, and none on both but the one that
// keeps Traefik away from a container.
func requireSplit(t *testing.T, at, what string, all, now, front map[string]string) {
	t.Helper()
	for name, value := range all {
		a, onInstance := now[name]
		b, onFront := front[name]
		require.True(t, onInstance || onFront, "%s: %s %s is lost", at, what, name)
		require.False(t, onInstance && onFront && name != "traefik.enable", "%s: %s %s is on both", at, what, name)
		if onInstance {
			require.Equal(t, value, a, at)
		}
		if onFront {
			require.Equal(t, value, b, at)
		}
	}
	for _, some := range []map[string]string{now, front} {
		for name := range some {
			require.Contains(t, all, name, "%s: %s came from nowhere", at, what)
		}
	}
}

// What a front has of its service is judged as the service's, and refused at its line.
func TestTheFrontOfAServiceIsJudgedAsTheService(t *testing.T) {
	on := func(t *testing.T, policy string, lines ...string) []string {
		t.Helper()
		j := judgeOfPolicy(t, policy)
		body := "services:\n  web:\n    image: nginx:1.27\n    " + strings.Join(lines, "\n    ") + "\n"
		body = strings.Replace(body, "\n      other:", "\n  other:", 1)
		_, refusals := j.Look(commitOf(map[string]string{"shop/compose.yaml": body}), onProd)
		var out []string
		for _, r := range refusals {
			out = append(out, fmt.Sprintf("%s %s: %s", r.Where(), r.Code, r.Says))
		}
		return out
	}
	const front = "x-gitring: {publish: front}"
	for _, c := range []struct {
		name, policy string
		lines        []string
		want         string // "" passes
	}{
		{"as every app may", "profile: compose", []string{front, `ports: ["8080:80"]`, "labels: {traefik.enable: 'true'}"}, ""},
		{"under the hardened profile", "profile: hardened\nimages: {registries: [docker.io], tags: resolve}", []string{front, "user: '1000'", "read_only: true", "cap_drop: [ALL]", "security_opt: ['no-new-privileges:true']", "mem_limit: 64m", "pids_limit: 50", "logging: {driver: json-file, options: {max-size: 10m}}", `ports: ["127.0.0.1:8080:80"]`}, ""},
		{"where authors may say nothing of it", "sysctls: []\nsecurity_opt: {allow: []}\nlogging: [journald]", []string{front, "expose: [80]"}, ""},
		{"a sysctl of the author's", "sysctls: []", []string{front, "expose: [80]", "sysctls: {net.ipv4.ip_unprivileged_port_start: '0'}"}, "shop/compose.yaml:6 PolicyDenied: services.web.sysctls"},
		{"a port that no app may have", "profile: compose", []string{front, "user: '1000'", `ports: ["22:22"]`}, "shop/compose.yaml:6 PolicyDenied: services.web.ports"},
		{"a port that this host denies", "ports: {deny: [8000-8100]}", []string{front, "user: '1000'", `ports: ["127.0.0.1:8080:80"]`}, "shop/compose.yaml:6 PolicyDenied: services.web.ports"},
		{"a range with a port that this host denies", "ports: {deny: [8080]}", []string{front, "user: '1000'", `ports: ["8000-8090:8000-8090"]`}, "shop/compose.yaml:6 PolicyDenied: services.web.ports"},
		{"a port by a grant for the service", "apps: [{name: shop, source: prod, path: shop, grants: [{feature: ports.host, value: 22/tcp, service: web, reason: x}]}]", []string{front, `ports: ["22:22"]`}, ""},
		{"a reserved label", "labels: {reserved: [+traefik.]}", []string{front, "expose: [80]", "labels: {traefik.enable: 'true'}"}, "shop/compose.yaml:6 PolicyDenied: services.web.labels"},
		{"a host name of another app", "labels: {routes: {blog: [a.example.org]}}", []string{front, "expose: [80]", "labels: {'traefik.http.routers.a.rule': 'Host(`a.example.org`)'}"}, "shop/compose.yaml:6 RouteTaken: services.web.labels"},
		{"no fronts here", "traffic: {fronts: deny}", []string{front, `ports: ["8080:80"]`}, "shop/compose.yaml:4 PolicyDenied: services.web.x-gitring.publish"},
		{"no fronts here, for several replicas", "traffic: {fronts: deny}", []string{"scale: 2", `ports: ["8080:80"]`}, "shop/compose.yaml:2 PolicyDenied: services.web.x-gitring.publish"},
		{"no fronts here, and none asked for", "traffic: {fronts: deny}", []string{`ports: ["8080:80"]`}, ""},
		{"no names for fronts", "traffic: {internal: deny}", []string{"x-gitring:", "  publish: front", "  route: {internal: true}", "expose: [80]"}, "shop/compose.yaml:6 PolicyDenied: services.web.x-gitring.route.internal"},
		{"no names for fronts, and none asked for", "traffic: {internal: deny}", []string{front, "expose: [80]"}, ""},
		{"the image of fronts", "profile: owner", []string{"labels: {a: b}", "", "  other: {image: 'gitring/front:1'}"}, "shop/compose.yaml:6 PolicyDenied: services.other.image"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := on(t, c.policy, c.lines...)
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.True(t, strings.HasPrefix(got[0], c.want), got[0])
		})
	}
}

// Fronts are not the author's: they use up nothing of what an app may have.
func TestFrontsAreNotCountedAsServices(t *testing.T) {
	j := judgeOfPolicy(t, "limits: {services_per_app: 1}")
	_, refusals := j.Look(commitOf(map[string]string{"shop/compose.yaml": "services: {web: {image: a, expose: [80], x-gitring: {publish: front}}}\n"}), onProd)
	require.Empty(t, tellAll(refusals))
}
