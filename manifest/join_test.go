package manifest

import (
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
)

// services makes one app of the services' lines, which start on line 2.
func services(lines ...string) map[string]string {
	return map[string]string{"web/compose.yaml": "services:\n  " + strings.Join(lines, "\n  ") + "\nnetworks: {x: }\nvolumes: {v: }\n"}
}

func TestJoinsOfServices(t *testing.T) {
	a := accepted(t, services(
		"vpn: {image: a, ports: ['80:80'], healthcheck: {test: x}}",
		"app: {image: b, network_mode: 'service:vpn', expose: [80], depends_on: {vpn: {condition: service_healthy}}}",
		"debug: {image: c, pid: 'service:app', ipc: 'service:app'}",
		"backup: {image: d, volumes_from: ['vpn:ro', app], pid: host, ipc: private}",
	))
	spec := func(name string) ring.Spec {
		s, _ := a.Service(name)
		return s.Spec
	}
	if s := spec("app"); s.NetworkOf != "vpn" || s.Networks != nil || s.Expose != nil || s.NoNetwork || s.IPCMode != "shareable" {
		t.Errorf("app: %s", dump(t, s))
	}
	if s := spec("debug"); s.PIDOf != "app" || s.IPCOf != "app" || s.PIDMode != "" || s.IPCMode != "" || len(s.Networks) != 1 {
		t.Errorf("debug: %s", dump(t, s))
	}
	backup := spec("backup")
	if d := cmp.Diff([]ring.VolumesFrom{{Service: "app"}, {Service: "vpn", ReadOnly: true}}, backup.VolumesFrom); d != "" || backup.PIDMode != "host" || backup.IPCMode != "private" {
		t.Error(d, dump(t, backup))
	}
	waits := map[string][]ring.Dependency{}
	for _, s := range a.Services {
		waits[s.Name] = s.DependsOn
	}
	want := map[string][]ring.Dependency{
		"vpn": nil, "app": {{Service: "vpn", Until: ring.ReadyDep}}, "debug": {{Service: "app", Until: ring.Started}},
		"backup": {{Service: "app", Until: ring.Started}, {Service: "vpn", Until: ring.Started}},
	}
	if d := cmp.Diff(want, waits); d != "" {
		t.Error(d)
	}
	for _, note := range []string{"app: ipc is shareable, because debug joins it", "app: expose is not used"} {
		if !strings.Contains(notes(a), note) {
			t.Errorf("%q is not in %q", note, notes(a))
		}
	}
}

func TestLinks(t *testing.T) {
	a := accepted(t, services(
		"web: {image: a, networks: [default, x], links: ['db:database', db, 'cache:redis']}",
		"api: {image: b, links: ['db:database']}",
		"db: {image: c}",
		"cache: {image: d, networks: [x]}",
	))
	db, _ := a.Service("db")
	cache, _ := a.Service("cache")
	got := append(db.Spec.Networks, cache.Spec.Networks...)
	if d := cmp.Diff([]ring.Attachment{{Network: "default", Aliases: []string{"database"}}, {Network: "x", Aliases: []string{"redis"}}}, got); d != "" {
		t.Error(d)
	}
	web, _ := a.Service("web")
	if d := cmp.Diff([]ring.Dependency{{Service: "cache", Until: ring.Started}, {Service: "db", Until: ring.Started}}, web.DependsOn); d != "" || web.Spec.Follows != nil {
		t.Error(d, web.Spec.Follows)
	}
	if !strings.Contains(notes(a), "db: the link of api gives it the name database on network default") {
		t.Error(notes(a))
	}
}

func TestRefusedJoins(t *testing.T) {
	areRefused(t, []refused{
		{name: "the network of a container of others", files: web("image: a", "network_mode: 'container:x'"), code: ring.PolicyDenied, line: 4},
		{name: "the volumes of a container of others", files: web("image: a", "volumes_from:", "  - container:x:ro"), code: ring.PolicyDenied, line: 5},
		{name: "an owner that is not there", files: services("a: {image: x}", "b:", "  image: x", "  network_mode: service:aa"), code: ring.BadValue, line: 5, says: "joins aa, which is not declared", hint: "did you mean a?"},
		{name: "volumes of a service that is not there", files: services("b:", "  image: x", "  volumes_from:", "    - a:ro"), code: ring.BadValue, line: 5, says: "not declared"},
		{name: "an owner that no profile starts", files: services("a: {image: x, profiles: [p]}", "b:", "  image: x", "  depends_on: {a: {condition: service_started, required: false}}", "  pid: service:a"), code: ring.BadValue, line: 6, hint: "profile"},
		{name: "an owner that ends", files: services("a: {image: x, restart: 'no'}", "b:", "  image: x", "  network_mode: service:a"), code: ring.BadValue, line: 5, says: "a job and ends"},
		{name: "volumes of one that ends", files: services("a: {image: x, restart: 'no'}", "b:", "  image: x", "  volumes_from: [a]"), code: ring.BadValue, line: 5, hint: "mount the same volumes"},
		{name: "an owner that is off", files: services("a: {image: x, scale: 0}", "b:", "  image: x", "  ipc: service:a"), code: ring.BadValue, line: 5, says: "1 replicas and joins a, which has 0"},
		{name: "an owner of fewer replicas", files: services("a: {image: x}", "b:", "  image: x", "  scale: 2", "  ipc: service:a"), code: ring.BadValue, line: 6, says: "2 replicas and joins a, which has 1"},
		{name: "two that join each other", files: services("a:", "  image: x", "  network_mode: service:b", "b:", "  image: x", "  pid: service:a"), code: ring.BadValue, line: 7, says: "a after b after a"},
		{name: "one that joins itself", files: services("a:", "  image: x", "  ipc: service:a"), code: ring.BadValue, line: 4, says: "a after a"},
		{name: "a circle through one that follows", files: services("a:", "  image: x", "  network_mode: service:b", "b:", "  image: x", "  depends_on:", "    a: {condition: service_started, restart: true}"), code: ring.BadValue, line: 8, says: "a after b after a"},
		{name: "a circle of links", files: services("a: {image: x, links: [b]}", "b:", "  image: x", "  links: [a]"), code: ring.BadValue, line: 5, says: "a after b after a"},
		{name: "ports of one that joins a network", files: services("a: {image: x}", "b:", "  image: x", "  network_mode: service:a", "  ports: ['80:80']"), code: ring.BadValue, line: 6, hint: "services.a.ports"},
		{name: "a host name of one that joins a network", files: services("a: {image: x}", "b: {image: x, network_mode: 'service:a',", "  hostname: x}"), code: ring.BadValue, line: 4, says: "hostname"},
		{name: "addresses of names of one that joins a network", files: services("a: {image: x}", "b: {image: x, network_mode: 'service:a',", "  extra_hosts: ['x:1.1.1.1']}"), code: ring.BadValue, line: 4, hint: "move it to a"},
		{name: "name servers of one that joins a network", files: services("a: {image: x}", "b: {image: x, network_mode: 'service:a',", "  dns: 1.1.1.1}"), code: ring.BadValue, line: 4, hint: "move it to a"},
		{name: "networks of one that joins a network", files: services("a: {image: x}", "b: {image: x, networks: [x],", "  network_mode: 'service:a'}"), code: ring.BadValue, line: 4, hint: "one of the two"},
		{name: "memory that its owner keeps to itself", files: services("a:", "  image: x", "  ipc: private", "b: {image: x, ipc: 'service:a'}"), code: ring.BadValue, line: 4, hint: "ipc: shareable"},
		{name: "a probe of one that joins a network", files: services("a: {image: x}", "b:", "  image: x", "  network_mode: service:a", "  x-gitring:", "    checks: [{http: {port: 80}}]"), code: ring.BadValue, line: 7, hint: "move it to a"},
		{name: "volumes taken twice", files: services("a: {image: x}", "b:", "  image: x", "  volumes_from: [a, 'a:ro']"), code: ring.BadValue, line: 5, says: "twice"},
		{name: "volumes taken in no way", files: services("a: {image: x}", "b:", "  image: x", "  volumes_from:", "    - a:z"), code: ring.BadValue, line: 6, hint: "service:ro"},

		{name: "a link to nobody", files: services("a:", "  image: x", "  links:", "    - db"), code: ring.BadValue, line: 5, says: "not declared"},
		{name: "a link without a network in common", files: services("a: {image: x, networks: [x]}", "b:", "  image: x", "  links: [a]"), code: ring.BadValue, line: 5, says: "share no network"},
		{name: "a link of the engine's bridge", files: services("a: {image: x}", "b:", "  image: x", "  network_mode: bridge", "  links: [a]"), code: ring.BadValue, line: 6, hint: "without network_mode"},
		{name: "a link by the name of another service", files: services("a: {image: x}", "c: {image: x}", "b:", "  image: x", "  links: ['a:c']"), code: ring.BadValue, line: 6, says: "also the name of c"},
		{name: "one alias for two services", files: services("a: {image: x, links: ['b:db']}", "b: {image: x}", "c: {image: x}", "d:", "  image: x", "  links: ['c:db']"), code: ring.BadValue, line: 7, says: "also the name of b"},
		{name: "links of others", files: web("image: a", "external_links: [x]"), code: ring.Unsupported, line: 4},
	})
}

func TestAServiceThatIsOffJoinsNobody(t *testing.T) {
	a := app(t, "services:\n  vpn: {image: x}\n  web: {image: x, scale: 0, network_mode: 'service:vpn'}\n")
	if got := serviceOf(t, a, "web").Replicas; got != 0 {
		t.Errorf("%d replicas", got)
	}
}
