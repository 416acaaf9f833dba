package manifest

import (
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
)

const resetBase = `services:
  web:
    image: web:1
    command: [serve]
    user: "1000"
    environment: [LEVEL=debug, KEEP=1]
    labels: {team: a, tier: b}
    ports: ['80:80', '443:443']
    volumes: ['data:/data']
    depends_on: [db]
    healthcheck: {test: [CMD, 'true'], interval: 7s}
    x-gitring: {rollout: {drain_delay: 5s}}
  db: {image: db:1}
volumes: {data: {labels: {a: b}}}
`

// What an override file takes back is as if earlier files had never said it,
// and what it gives instead is not merged with theirs.
func TestAFileTakesBackWhatEarlierOnesSay(t *testing.T) {
	a, _ := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml": resetBase,
		"web/compose.override.yaml": `services:
  web:
    command: !reset null
    user: !reset
    environment: {LEVEL: !reset null, MORE: x}
    labels: !override {only: this}
    ports: !override ["127.0.0.1:8080:80"]
    volumes: !reset []
    depends_on: {db: !reset {}}
    healthcheck: {interval: !override 3s}
    x-gitring: !reset {}
  db: !override {image: db:2}
`,
	})
	s := serviceOf(t, a, "web")
	got := map[string]any{
		"command": s.Spec.Command, "user": s.Spec.User, "environment": s.Spec.Environment, "labels": s.Spec.Labels,
		"ports": s.Spec.Ports, "mounts": len(s.Spec.Mounts), "volumes": len(a.Volumes), "depends_on": len(s.DependsOn),
		"interval": s.Spec.Healthcheck.Interval.String(), "drain_delay": s.Rollout.DrainDelay.String(), "db": serviceOf(t, a, "db").Spec.Image,
	}
	want := map[string]any{
		"command": []string(nil), "user": "", "environment": map[string]string{"KEEP": "1", "MORE": "x"}, "labels": map[string]string{"only": "this"},
		"ports":  []ring.Port{{HostIP: "127.0.0.1", HostPort: "8080", Container: 80, Protocol: "tcp"}},
		"mounts": 0, "volumes": 0, "depends_on": 0, "interval": "3s", "drain_delay": "0s", "db": "db:2",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(a.Notes) > 0 {
		t.Error(a.Notes)
	}
}

func TestAServiceTakesBackWhatItExtends(t *testing.T) {
	a, _ := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml": `services:
  web:
    extends: base
    ports: !reset []
    environment: !override {B: "2"}
  base:
    image: web:1
    ports: ['80:80']
    environment: {A: "1"}
`,
	})
	if s := serviceOf(t, a, "web"); len(s.Spec.Ports) > 0 || !cmp.Equal(s.Spec.Environment, map[string]string{"B": "2"}) {
		t.Error(dump(t, s.Spec))
	}
	if s := serviceOf(t, a, "base"); len(s.Spec.Ports) != 1 || s.Spec.Environment["A"] != "1" {
		t.Errorf("what is extended stays as it is: %s", dump(t, s.Spec))
	}
}

// An included file is merged with those listed beside it and with no others.
func TestAnOverrideOfAnIncludeTakesBack(t *testing.T) {
	a, _ := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml":   "include: [{path: [sub/db.yaml, sub/prod.yaml]}]\nservices: {web: {image: web:1, ports: ['80:80']}}\n",
		"web/sub/db.yaml":    "services: {db: {image: db:1, ports: ['5432:5432'], restart: always}}\n",
		"web/sub/prod.yaml":  "services: {db: {ports: !reset []}, web: !reset {}}\n",
		"web/sub/.gitignore": "",
	})
	if s := serviceOf(t, a, "db"); len(s.Spec.Ports) > 0 {
		t.Error(dump(t, s.Spec))
	}
	if s := serviceOf(t, a, "web"); len(s.Spec.Ports) != 1 {
		t.Error("an included file took back what the app itself says")
	}
}

func TestAResetOfNothingIsTold(t *testing.T) {
	a, _ := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml":          resetBase,
		"web/compose.override.yaml": "services:\n  web:\n    portz: !reset []\n    image: web:2\n",
	})
	if notes := strings.Join(a.Notes, "\n"); !strings.Contains(notes, "web/compose.override.yaml:3: !reset of services.web.portz takes nothing back") {
		t.Error(notes)
	}
}

func TestTagsOfMergingHaveTheirPlace(t *testing.T) {
	areRefused(t, []refused{
		{name: "on an entry of a list", files: web("image: a", "ports:", "  - !reset '80:80'"), code: ring.Yaml, line: 5, says: "!reset", hint: "behind a key"},
		{name: "in an entry of a list", files: web("image: a", "ports:", "  - {target: 80, published: !reset 80}"), code: ring.Yaml, line: 5, says: "!reset"},
		{name: "on a merge key", files: map[string]string{"web/compose.yaml": "services:\n  web:\n    <<: !override {image: a}\n"}, code: ring.Yaml, line: 3, says: "!override"},
		{name: "on the whole file", files: map[string]string{"web/compose.yaml": "!reset\nservices: {web: {image: a}}\n"}, code: ring.Yaml, line: 1, says: "!reset"},
		{name: "on include", files: map[string]string{"web/compose.yaml": "services: {web: {image: a}}\ninclude: !reset []\n"}, code: ring.Yaml, line: 2, says: "!reset"},
		{name: "on extends", files: web("image: a", "extends: !override web"), code: ring.Yaml, line: 4, says: "!reset"},
		{name: "a value that is still wrong", files: web("image: a", "restart: !override sometimes"), code: ring.BadValue, line: 4, says: "sometimes"},
	})
	plan, _ := Read(repo(map[string]string{"gitring.yaml": "version: !override 1\napps: [web]\n", "web/compose.yaml": "services: {web: {image: a}}\n"}), settings())
	if r := plan.Refusal; r == nil || r.Code != ring.Yaml || !strings.Contains(r.Says, "!override") {
		t.Errorf("%v", r)
	}
}
