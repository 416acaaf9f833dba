package manifest

import (
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
)

// onlyApp reads a commit of one app that is not refused.
func onlyApp(t *testing.T, s Settings, files map[string]string) (ring.App, map[string]ring.Content) {
	t.Helper()
	plan, contents := Read(repo(files), s)
	if len(plan.Apps) != 1 {
		t.Fatalf("%v %s", plan.Refusal, dump(t, plan.Refused))
	}
	return plan.Apps[0], contents
}

func serviceOf(t *testing.T, a ring.App, name string) ring.Service {
	t.Helper()
	s, ok := a.Service(name)
	if !ok {
		t.Fatalf("no service %s: %s", name, dump(t, a))
	}
	return s
}

func TestAServiceExtendsAnother(t *testing.T) {
	a, _ := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml": `services:
  web:
    extends: {service: base, file: common/base.yaml}
    image: web:2
    command: [serve]
    environment: {LEVEL: debug}
    ports: ['80']
  worker:
    extends: web
    command: [work]
`,
		"web/common/base.yaml": `x-any: &log {driver: local}
services:
  base:
    extends: root
    environment: [LEVEL=info, "WHO=${WHO}"]
    volumes: ['./conf:/conf:ro', 'cache:/cache']
    env_file: app.env
    logging: *log
  root:
    image: web:1
    user: "1000"
    command: [idle]
    labels: {team: a}
  other:
    image: $UNDEFINED
`,
		"web/common/app.env": "FROM=file\n",
		"web/common/conf/a":  "x",
		"web/.env":           "WHO=me\n",
		"web/compose.override.yaml": `services:
  web:
    labels: {tier: front}
volumes: {cache: {}}
`,
	})
	web := serviceOf(t, a, "web").Spec
	want := ring.Spec{
		Image: "web:2", User: "1000", Command: []string{"serve"},
		Environment: map[string]string{"LEVEL": "debug", "WHO": "me", "FROM": "file"},
		Labels:      map[string]string{"team": "a", "tier": "front"},
		Ports:       []ring.Port{{Container: 80, Protocol: "tcp"}},
		Logging:     &ring.Logging{Driver: "local"},
		Networks:    []ring.Attachment{{Network: "default"}},
	}
	mounts := web.Mounts
	web.Mounts = nil
	if d := cmp.Diff(want, web); d != "" {
		t.Error(d)
	}
	if len(mounts) != 2 || mounts[0].Target != "/cache" || mounts[1].Kind != ring.MountContent {
		t.Errorf("mounts: %+v", mounts)
	}
}

func TestTheBasesPlacesAreItsOwn(t *testing.T) {
	for _, c := range []struct {
		name, compose, base, where, says string
	}{
		{"a fault of the base", "services:\n  web:\n    extends: {file: base.yaml, service: b}\n", "services:\n  b:\n    image: a\n    restart: sometimes\n", "web/base.yaml:4", "restart"},
		{"an unknown key of the base", "services:\n  web:\n    extends: {file: base.yaml, service: b}\n", "services:\n  b:\n    image: a\n    imge: b\n", "web/base.yaml:4", "imge"},
		{"a base that is not there", "services:\n  web:\n    extends: {file: base.yaml, service: bb}\n", "services:\n  b:\n    image: a\n", "web/compose.yaml:3", "bb"},
		{"a base of the same file that is not there", "services:\n  web:\n    image: a\n    extends: bb\n", "", "web/compose.yaml:4", "bb"},
		{"a file that is not there", "services:\n  web:\n    extends: {file: no.yaml, service: b}\n", "", "web/compose.yaml:3", "web/no.yaml"},
		{"a variable of the base", "services:\n  web:\n    extends: {file: base.yaml, service: b}\n", "services:\n  b:\n    image: $NO\n", "web/base.yaml:3", "NO"},
		{"no service", "services:\n  web:\n    image: a\n    extends: {file: base.yaml}\n", "services:\n  b:\n    image: a\n", "web/compose.yaml:4", "service"},
		{"an unknown key of extends", "services:\n  web:\n    extends: {file: base.yaml, service: b, fil: x}\n", "services:\n  b:\n    image: a\n", "web/compose.yaml:3", "fil"},
		{"a dependency that comes with the base", "services:\n  web:\n    extends: {file: base.yaml, service: b}\n", "services:\n  b:\n    image: a\n    depends_on: [db]\n", "web/base.yaml:4", "db"},
	} {
		plan, _ := Read(repo(map[string]string{"web/compose.yaml": c.compose, "web/base.yaml": c.base}), settings())
		r := plan.Refused["web"]
		if r == nil || r.Where() != c.where || !strings.Contains(r.Says, c.says) || r.Hint == "" {
			t.Errorf("%s: %v", c.name, r)
		}
	}
}

func TestServicesThatExtendEachOtherAreRefusedWithEachPlace(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"one file":  {"web/compose.yaml": "services:\n  web:\n    extends: b\n    image: a\n  b:\n    extends: web\n"},
		"two files": {"web/compose.yaml": "services:\n  web:\n    extends: {file: b.yaml, service: b}\n    image: a\n", "web/b.yaml": "services:\n  b:\n    extends: {file: compose.yaml, service: web}\n"},
		"itself":    {"web/compose.yaml": "services:\n  web:\n    extends: web\n    image: a\n"},
	} {
		plan, _ := Read(repo(files), settings())
		r := plan.Refused["web"]
		if r == nil || r.Code != ring.BadValue || !strings.Contains(r.Says, "extends itself") || !strings.Contains(r.Says, "web/compose.yaml:3") || name == "two files" && !strings.Contains(r.Says, "web/b.yaml:3") {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// A few lines that extend each other a hundred times over are refused, not read.
func TestExtendsAndIncludeAreBounded(t *testing.T) {
	long := "services:\n  s0: {image: a}\n"
	for i := range 99 {
		long += "  s" + itoa(i+1) + ": {extends: s" + itoa(i) + "}\n"
	}
	wide := "services:\n"
	for i := range 99 {
		wide += "  s" + itoa(i) + ": {extends: {file: base.yaml, service: b}}\n"
	}
	base := "services:\n  b:\n    image: a\n    environment:\n"
	for i := range 900 {
		base += "      A" + itoa(i) + ": x\n"
	}
	deep := map[string]string{"web/compose.yaml": "include: [i0.yaml]\nservices: {web: {image: a}}\n"}
	for i := range 99 {
		deep["web/i"+itoa(i)+".yaml"] = "include: [i" + itoa(i+1) + ".yaml]\n"
	}
	deep["web/i99.yaml"] = "services: {x: {image: a}}\n"
	twice := map[string]string{"web/compose.yaml": "include: [i0.yaml, i0.yaml]\nservices: {web: {image: a}}\n"}
	for i := range 40 {
		twice["web/i"+itoa(i)+".yaml"] = "include: [i" + itoa(i+1) + ".yaml, i" + itoa(i+1) + ".yaml]\n"
	}
	twice["web/i40.yaml"] = "services: {x: {image: a}}\n"
	for name, files := range map[string]map[string]string{
		"a long chain": {"web/compose.yaml": long},
		"a large base": {"web/compose.yaml": wide, "web/base.yaml": base},
		"deep":         deep,
		"twice":        twice,
	} {
		s := settings()
		s.Limits.Nodes = 20_000
		plan, _ := Read(repo(files), s)
		if r := plan.Refused["web"]; r == nil || r.Code != ring.TooLarge || r.Line == 0 {
			t.Errorf("%s: %v", name, r)
		}
	}
}
