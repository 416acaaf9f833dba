package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
)

func itoa(i int) string { return fmt.Sprint(i) }

func TestAnIncludedProjectKeepsItsFolderAndItsVariables(t *testing.T) {
	a, contents := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml": `include:
  - db/compose.yaml
  - path: [cache/base.yaml, cache/more.yaml]
    project_directory: shared
    env_file: [cache.env, /dev/null]
services:
  web: {image: "web:$TAG", depends_on: [db, cache]}
`,
		"web/.env":                   "TAG=1\n",
		"web/db/compose.yaml":        "include: [deeper/compose.yaml]\nname: other\nservices:\n  db: {image: \"db:$TAG-$DB\", env_file: db.env, environment: [DB], volumes: ['./seed.sql:/seed.sql:ro', './data:/data'], networks: [back]}\nnetworks: {back: {internal: true}}\nconfigs: {c: {environment: DB}}\n",
		"web/db/.env":                "DB=inner\nTAG=never\n",
		"web/db/db.env":              "X=$TAG\n",
		"web/db/seed.sql":            "x",
		"web/db/deeper/compose.yaml": "services:\n  deep: {image: a, label_file: [l], configs: [c], secrets: [s]}\nsecrets: {s: {file: s.txt}}\n",
		"web/db/deeper/l":            "a=b\n",
		"web/db/deeper/s.txt":        "deep secret",
		"web/cache/base.yaml":        "services:\n  cache: {image: cache:1, command: [a], volumes: ['./conf:/conf:ro']}\n",
		"web/cache/more.yaml":        "services:\n  cache: {image: \"cache:$C\"}\n",
		"web/cache.env":              "C=2\n",
		"web/shared/conf/x":          "x",
	})
	var names, images []string
	for _, s := range a.Services {
		names, images = append(names, s.Name), append(images, s.Spec.Image)
	}
	if d := cmp.Diff([]string{"cache cache:2", "db db:1-inner", "deep a", "web web:1"}, zip(names, images)); d != "" {
		t.Error(d)
	}
	db := serviceOf(t, a, "db").Spec
	if d := cmp.Diff(map[string]string{"X": "1", "DB": "inner"}, db.Environment); d != "" {
		t.Error(d)
	}
	if len(db.Mounts) != 2 || db.Mounts[0].Kind != ring.MountData || db.Mounts[0].Source != "web/db/data" || db.Mounts[1].File != "seed.sql" {
		t.Errorf("%+v", db.Mounts)
	}
	deep := serviceOf(t, a, "deep").Spec
	if d := cmp.Diff(map[string]string{"a": "b"}, deep.Labels); d != "" {
		t.Error(d)
	}
	if got := textAt(t, contents, deep, "/run/secrets/s"); got != "deep secret" {
		t.Errorf("secret is %q", got)
	}
	if got := textAt(t, contents, deep, "/c"); got != "inner" {
		t.Errorf("config is %q", got)
	}
	if d := cmp.Diff([]string{"web/compose.yaml"}, a.Files); d != "" || a.Name != "web" {
		t.Error(a.Name, d)
	}
}

func zip(a, b []string) (out []string) {
	for i := range a {
		out = append(out, a[i]+" "+b[i])
	}
	return out
}

// textAt is what a service finds at a target that is one file of content.
func textAt(t *testing.T, contents map[string]ring.Content, s ring.Spec, target string) string {
	t.Helper()
	for _, m := range s.Mounts {
		if m.Target != target {
			continue
		}
		for _, f := range contents[m.Source].Files {
			if f.Path == m.File {
				b, err := f.Read()
				if err != nil || m.Kind != ring.MountContent || !m.ReadOnly {
					t.Fatal(m, err)
				}
				return string(b)
			}
		}
	}
	t.Fatalf("nothing at %s: %+v", target, s.Mounts)
	return ""
}

// A service of an included file can be extended, and changed by an override file.
func TestIncludedServicesAreExtendedAndOverridden(t *testing.T) {
	a, _ := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml":          "include: [inc.yaml]\nservices: {web: {extends: base, image: b}}\n",
		"web/compose.override.yaml": "services: {base: {image: c}}\n",
		"web/inc.yaml":              "services: {base: {image: a, user: '1'}}\n",
	})
	web, base := serviceOf(t, a, "web").Spec, serviceOf(t, a, "base").Spec
	if web.Image != "b" || web.User != "1" || base.Image != "c" || base.User != "1" {
		t.Error(web, base)
	}
}

func TestWhatIsDeclaredTwiceIsRefused(t *testing.T) {
	for _, c := range []struct{ name, compose, one, two, where, says string }{
		{"by the file itself", "include: [one.yaml]\nservices:\n  web: {image: a}\n", "services:\n  web: {image: b}\n", "", "web/one.yaml:2", "web/compose.yaml:3"},
		{"by two included files", "include: [one.yaml, two.yaml]\nservices:\n  web: {image: a}\n", "networks:\n  n: {internal: true}\n", "networks:\n\n  n: {}\n", "web/two.yaml:3", "web/one.yaml:2"},
	} {
		plan, _ := Read(repo(map[string]string{"web/compose.yaml": c.compose, "web/one.yaml": c.one, "web/two.yaml": c.two}), settings())
		if r := plan.Refused["web"]; r == nil || r.Where() != c.where || !strings.Contains(r.Says, "declared twice") || !strings.Contains(r.Says, c.says) || !strings.Contains(r.Hint, "override") {
			t.Errorf("%s: %v", c.name, r)
		}
	}
	// equal declarations are one, and so is a file that two others include
	a, _ := onlyApp(t, settings(), map[string]string{
		"web/compose.yaml": "include: [one.yaml, two.yaml]\nservices:\n  web: {image: a, networks: [n]}\nnetworks: {n: }\n",
		"web/one.yaml":     "include: [three.yaml]\nnetworks: {n: {}}\n",
		"web/two.yaml":     "include: [three.yaml]\nnetworks: {n: {}}\n",
		"web/three.yaml":   "services: {x: {image: a, ports: ['80'], command: [a, a]}}\n",
	})
	if x := serviceOf(t, a, "x").Spec; len(x.Ports) != 1 || len(x.Command) != 2 {
		t.Errorf("%+v", x)
	}
}

func TestFilesThatIncludeEachOtherAreRefusedWithEachPlace(t *testing.T) {
	plan, _ := Read(repo(map[string]string{
		"web/compose.yaml": "include: [a.yaml]\nservices: {web: {image: a}}\n", "web/a.yaml": "\ninclude: [b.yaml]\n", "web/b.yaml": "include:\n  - path: a.yaml\n",
	}), settings())
	r := plan.Refused["web"]
	if r == nil || r.Where() != "web/b.yaml:2" || !strings.Contains(r.Says, "web/a.yaml includes itself") || !strings.Contains(r.Says, "web/a.yaml:2") {
		t.Error(r)
	}
	plan, _ = Read(repo(map[string]string{"web/compose.yaml": "include: [compose.yaml]\nservices: {web: {image: a}}\n"}), settings())
	if r := plan.Refused["web"]; r == nil || r.Where() != "web/compose.yaml:1" {
		t.Error(r)
	}
}

func TestBadIncludesAreRefusedWithTheirPlace(t *testing.T) {
	for _, c := range []struct{ name, include, where, says string }{
		{"no list", "include: a.yaml", "web/compose.yaml:1", "list"},
		{"a word that is not known", "include: [{pth: a.yaml}]", "web/compose.yaml:1", "pth"},
		{"a file that is not there", "include: [no.yaml]", "web/compose.yaml:1", "web/no.yaml"},
		{"an env file that is not there", "include: [{path: a.yaml, env_file: no.env}]", "web/compose.yaml:1", "web/no.env"},
		{"a folder that is not there", "include: [{path: a.yaml, project_directory: no}]", "web/compose.yaml:1", "web/no"},
		{"a fault inside", "include: [bad.yaml]", "web/bad.yaml:2", "imge"},
		{"no YAML inside", "include: [broken.yaml]", "web/broken.yaml:2", "YAML"},
		{"a variable inside", "include: [var.yaml]", "web/var.yaml:1", "NO"},
	} {
		plan, _ := Read(repo(map[string]string{
			"web/compose.yaml": c.include + "\nservices: {web: {image: a}}\n", "web/a.yaml": "services: {x: {image: a}}\n",
			"web/bad.yaml": "services:\n  x: {image: a, imge: b}\n", "web/broken.yaml": "services: [\n", "web/var.yaml": "services: {x: {image: $NO}}\n",
		}), settings())
		if r := plan.Refused["web"]; r == nil || r.Where() != c.where || !strings.Contains(r.Says, c.says) || r.Hint == "" {
			t.Errorf("%s: %v", c.name, r)
		}
	}
}

// A folder whose Compose file another app includes is a part of that app, and
// would run twice as one of its own.
func TestAnIncludedFolderIsNoAppOfItsOwn(t *testing.T) {
	files := map[string]string{
		"web/compose.yaml":    "include: [db/compose.yaml]\nservices: {web: {image: a}}\n",
		"web/db/compose.yaml": "services: {db: {image: a}}\n",
	}
	a, _ := onlyApp(t, settings(), files)
	if len(a.Services) != 2 || !strings.Contains(strings.Join(a.Notes, "\n"), "web/db/compose.yaml is included") {
		t.Error(dump(t, a))
	}
	files["web/compose.yaml"] += "nonsense: true\n"
	if plan, _ := Read(repo(files), settings()); len(plan.Apps) != 0 || len(plan.Refused) != 1 {
		t.Error(dump(t, plan))
	}
	files[gitringFile] = "version: 1\napps: [{path: web/db}]\n"
	if a, _ := onlyApp(t, settings(), files); a.Name != "db" {
		t.Error("an app that gitring.yaml lists is one")
	}
}

// Who may write the folder of one app must not be able to take another away.
func TestAnAppCannotIncludeTheOneBesideIt(t *testing.T) {
	files := map[string]string{
		"web/compose.yaml": "services: {web: {image: a}}\ninclude:\n  - ../db/compose.yaml\n",
		"db/compose.yaml":  "services: {db: {image: a}}\n",
	}
	plan, _ := Read(repo(files), settings())
	r := plan.Refused["web"]
	if len(plan.Apps) != 1 || plan.Apps[0].Name != "db" || r == nil || r.Code != ring.BadValue || r.Line != 3 {
		t.Fatal(dump(t, plan))
	}
	files[gitringFile] = "version: 1\napps: [{path: web}]\n"
	if a, _ := onlyApp(t, settings(), files); len(a.Services) != 2 {
		t.Error("with gitring.yaml it is a part")
	}
}
