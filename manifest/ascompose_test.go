package manifest

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
)

// What Compose takes and carries out, or ignores, is taken here too, and a note says so.
func TestWhatComposeIgnoresIsNoted(t *testing.T) {
	for line, note := range map[string]string{
		"deploy: {mode: global}":       "services.web.deploy.mode global is Swarm's",
		"deploy: {endpoint_mode: vip}": "services.web.deploy.endpoint_mode is Swarm's",
		"deploy: {labels: {a: b}}":     "services.web.deploy.labels labels a service of Swarm",
		"deploy: {placement: {constraints: [node.role==manager], preferences: [{spread: x}]}}":                        "services.web.deploy.placement is Swarm's",
		"deploy: {resources: {reservations: {generic_resources: [{discrete_resource_spec: {kind: gpu, value: 1}}]}}}": "services.web.deploy.resources.reservations.generic_resources is Swarm's",
		"develop: {watch: [{path: x, action: sync, target: /x}]}":                                                     "services.web.develop is for docker compose watch",
		"build: .": "services.web.build is not carried out: the image that image: names is pulled",
		"healthcheck: {test: [CMD-SHELL, pg_isready, -q]}": "the shell runs the first only",
		"command: []": "web: command is empty, and the engine runs the image's all the same",
	} {
		s, notes := lone(t, line)
		if !strings.Contains(strings.Join(notes, "\n"), note) || s.Spec.Image != "a" || s.Replicas != 1 {
			t.Errorf("%s: %q %+v", line, notes, s.Spec)
		}
	}
	a, _ := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml": "services: {web: {image: a, secrets: [s]}}\nsecrets: {s: {file: x, name: y, labels: {a: b}}}\n", "web/x": "x",
	})
	if all := strings.Join(a.Notes, "\n"); !strings.Contains(all, "secrets.s.name is Swarm's") || !strings.Contains(all, "secrets.s.labels is Swarm's") {
		t.Error(a.Notes)
	}
}

func TestTheAppsNameIsNormalisedAsByCompose(t *testing.T) {
	for dir, want := range map[string]string{"My.App": "myapp", "Web App": "webapp", "_x": "x", "A-b_1": "a-b_1"} {
		a, _ := onlyApp(t, settings(), map[string]string{dir + "/compose.yaml": "services: {web: {image: a}}\n"})
		if a.Name != want || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], dir) {
			t.Errorf("%s: %s %q", dir, a.Name, a.Notes)
		}
	}
	if a, _ := onlyApp(t, settings(), map[string]string{"web/compose.yaml": "name: My.Shop\nservices: {web: {image: a}}\n"}); a.Name != "myshop" {
		t.Error(a.Name)
	}
}

func TestAContainerOfTheAppIsJoinedByItsName(t *testing.T) {
	a, _ := onlyApp(t, settings(), map[string]string{"web/compose.yaml": `
services:
  vpn: {image: a, container_name: gluetun, volumes: [vol:/v]}
  web: {image: a, network_mode: "container:gluetun", pid: "container:web-db-1", ipc: "container:gluetun", volumes_from: ["container:gluetun:ro"]}
  db: {image: a}
volumes: {vol: }
`})
	s := serviceOf(t, a, "web")
	got := []any{s.Spec.NetworkOf, s.Spec.PIDOf, s.Spec.IPCOf, s.Spec.VolumesFrom, s.Composed.Not != ""}
	if d := cmp.Diff([]any{"vpn", "db", "vpn", []ring.VolumesFrom{{Service: "vpn", ReadOnly: true}}, true}, got); d != "" {
		t.Error(d)
	}
	if all := strings.Join(a.Notes, "\n"); !strings.Contains(all, "web: network_mode container:gluetun is service vpn of this app") {
		t.Error(a.Notes)
	}
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services: {web: {image: a, container_name: me, network_mode: 'container:me'}}\n"}), settings())
	if r := plan.Refused["web"]; r == nil || r.Code != ring.PolicyDenied {
		t.Error("a container joins itself:", r)
	}
}

func TestAHomeIsThatOfTheVariable(t *testing.T) {
	text := "services: {web: {image: a, secrets: [s], volumes: ['~/x:/x', {type: bind, source: ~/y, target: /y}, '${D:-~/z}:/z', '~u:/u']}}\nsecrets: {s: {file: ~/pw}}\n"
	for name, set := range map[string]func(*Settings, map[string]string){
		"of the commit":        func(_ *Settings, files map[string]string) { files["web/.env"] = "HOME=/home/me/\n" },
		"of the configuration": func(s *Settings, _ map[string]string) { s.Interpolation = map[string]string{"HOME": "/home/me"} },
		"of the host":          func(s *Settings, _ map[string]string) { *s = withHost(map[string]string{".env": "HOME=/home/me\n"}) },
	} {
		s, files := settings(), map[string]string{"web/compose.yaml": strings.Replace(text, ", '~u:/u'", "", 1)}
		set(&s, files)
		a, _ := onlyApp(t, s, files)
		got := map[string]string{}
		for _, m := range serviceOf(t, a, "web").Spec.Mounts {
			got[m.Target] = string(m.Kind) + " " + m.Source
		}
		want := map[string]string{"/x": "bind /home/me/x", "/y": "bind /home/me/y", "/z": "bind /home/me/z", "/run/secrets/s": "bind /home/me/pw"}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for files, says := range map[*map[string]string]string{
		{"web/compose.yaml": text}: "~u is in somebody's home",
		{"web/compose.yaml": "services: {web: {image: a, volumes: ['${HOME}/x:/x']}}"}:                    "variable HOME is not set",
		{"web/compose.yaml": "services: {web: {image: a, volumes: ['${PWD}/x:/x']}}"}:                     "variable PWD is not set",
		{"web/compose.yaml": "services: {web: {image: a, volumes: ['~/x:/x']}}", "web/.env": "HOME=me\n"}: "HOME is no absolute path",
	} {
		_, all := Check(repo(*files), settings())
		found := false
		for _, r := range all {
			found = found || strings.Contains(r.Says, says) && r.Hint != "" && r.Line > 0
		}
		if !found {
			t.Errorf("%q is not told: %v", says, all)
		}
	}
}

func TestAFileOfTheHostIsMountedForASecret(t *testing.T) {
	a, contents := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml": "services: {web: {image: a, secrets: [s], configs: [{source: c, target: /etc/c}]}}\nsecrets: {s: {file: /srv/secret/s}}\nconfigs: {c: {file: /srv/c/}}\n",
	})
	want := []ring.Mount{
		{Kind: ring.MountBind, Source: "/srv/c", Target: "/etc/c", ReadOnly: true},
		{Kind: ring.MountBind, Source: "/srv/secret/s", Target: "/run/secrets/s", ReadOnly: true},
	}
	if d := cmp.Diff(want, serviceOf(t, a, "web").Spec.Mounts); d != "" || len(contents) != 0 {
		t.Error(d, contents)
	}
}

func TestADataFolderThatMayNotBeMadeMustExist(t *testing.T) {
	s, notes := lone(t, "volumes: [{type: bind, source: ./d, target: /d, bind: {create_host_path: false}}]")
	want := []ring.Mount{{Kind: ring.MountData, Source: "web/d", Target: "/d", MustExist: true}}
	if d := cmp.Diff(want, s.Spec.Mounts); d != "" || !strings.Contains(strings.Join(notes, "\n"), "which must be there") {
		t.Error(d, notes)
	}
}

func TestAnIncludedNetworkMayBeDeclaredAsItMerges(t *testing.T) {
	a, _ := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml": "include: [{path: [b.yaml, c.yaml]}]\nservices: {web: {image: a, networks: [p]}}\nnetworks: {p: {driver: bridge, name: n}}\n",
		"web/b.yaml":       "services: {b: {image: a, networks: [p]}}\nnetworks: {p: {name: n}}\n",
		"web/c.yaml":       "networks: {p: {driver: bridge}}\n",
	})
	if d := cmp.Diff([]ring.Network{{Key: "p", Name: "n"}}, a.Networks); d != "" {
		t.Error(d)
	}
}

func TestALinkedEnvIsTheFileItLeadsTo(t *testing.T) {
	c := repo(map[string]string{"web/compose.yaml": "services: {web: {image: 'a:$V', env_file: .env}}\n", "all/common.env": "V=7\n"})
	symlinkAt(c, "web/.env", "../all/second")
	symlinkAt(c, "all/second", "common.env")
	plan, _ := Read(c, settings())
	if len(plan.Apps) != 1 || plan.Apps[0].Services[0].Spec.Image != "a:7" || plan.Apps[0].Services[0].Spec.Environment["V"] != "7" {
		t.Error(dump(t, plan))
	}
	for what, target := range map[string]string{
		"out of the commit": "../../common.env", "absolute": "/etc/passwd", "to itself": ".env", "to nothing": "../no.env",
	} {
		c := repo(map[string]string{"web/compose.yaml": "services: {web: {image: a}}\n", "all/common.env": "V=7\n"})
		symlinkAt(c, "web/.env", target)
		plan, _ := Read(c, settings())
		if r := plan.Refused["web"]; r == nil || r.Code != ring.SymlinkInManifest {
			t.Errorf("%s: %v", what, r)
		}
	}
	s := settings()
	s.Path = "web"
	c = repo(map[string]string{"web/compose.yaml": "services: {web: {image: a}}\n", "common.env": "V=7\n"})
	symlinkAt(c, "web/.env", "../common.env")
	if plan, _ := Read(c, s); len(plan.Apps) != 0 {
		t.Error("a link leads out of the source's path")
	}
}

// What git-crypt encrypts can be read in its author's clone alone: a host has such env files
// in its own folder, and is told where.
func TestTheHostHasWhatGitCryptEncrypts(t *testing.T) {
	const crypted = "\x00GITCRYPT\x00abc\x01def"
	c := repo(map[string]string{
		"web/compose.yaml": "services: {web: {image: 'a:$V', env_file: [.env, more.env]}}\n", "web/.env": crypted, "web/more.env": crypted,
	})
	_, all := Check(c, settings())
	for _, file := range []string{"web/.env", "web/more.env"} {
		i := slices.IndexFunc(all, func(r *ring.Refusal) bool { return r.File == file && r.Code == ring.SecretForm })
		if len(all) != 2 || i < 0 || !strings.HasPrefix(all[i].Says, file+" is encrypted by git-crypt") || !strings.HasSuffix(all[i].Hint, "as <env.dir>/"+file) {
			t.Errorf("%s: %v", file, all)
		}
	}
	plan, _ := Read(c, withHost(map[string]string{".env": "V=7\n", "more.env": "W=8\n"}))
	if len(plan.Apps) != 1 {
		t.Fatal(dump(t, plan))
	}
	spec := plan.Apps[0].Services[0].Spec
	if len(spec.Environment) != 2 || !slices.ContainsFunc(plan.Apps[0].Notes, func(n string) bool { return strings.HasPrefix(n, "web/.env is encrypted by git-crypt") }) {
		t.Error(dump(t, plan))
	}
	c.Tree.(fstest.MapFS)["web/compose.yaml"].Data = []byte("services: {web: {image: a, secrets: [k]}}\nsecrets: {k: {file: more.env}}\n")
	plan, _ = Read(c, withHost(map[string]string{".env": "V=7\n", "more.env": "W=8\n"}))
	if len(plan.Apps) != 1 || len(plan.Apps[0].Services[0].Spec.Mounts) != 1 {
		t.Error(dump(t, plan))
	}
	if _, all := Check(c, withHost(map[string]string{".env": "V=7\n"})); len(all) != 1 || !strings.Contains(all[0].Says, "more.env") {
		t.Errorf("one file of two: %v", all)
	}
}
