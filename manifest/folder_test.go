package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// One folder, two apps out of its files: production and staging of one thing.
func TestTwoAppsOfOneFolderHaveTheirOwnData(t *testing.T) {
	const list = "version: 1\napps:\n- {name: prod, path: web, files: [a.yaml]}\n- {name: stage, path: web, files: [b.yaml]}\n"
	const db = "services:\n  db:\n    image: a\n    volumes: ['./data:/d']\n"
	for _, c := range []struct {
		name, list, a, b string
		roots            map[string]string
		at               []string
	}{
		{"both write one folder", list, db, db, nil, []string{"web/a.yaml:4 Conflict", "web/b.yaml:4 Conflict"}},
		{name: "one reads it", list: list, a: db, b: "services:\n  db:\n    image: a\n    volumes: ['./data:/d:ro']\n"},
		{name: "their author says that they can", list: list, a: db, b: db + "    x-gitring: {share: true}\n"},
		{name: "each has a data root", list: list, a: db, b: db, roots: map[string]string{"stage": "/mnt/stage"}},
		{name: "a path into another app's folder", list: "version: 1\napps:\n- {name: prod, path: web, files: [a.yaml]}\n- {name: stage, path: other}\n", a: db, b: db},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := settings()
			s.DataRoots = c.roots
			plan, _ := Read(repo(map[string]string{
				"gitring.yaml": c.list, "web/a.yaml": c.a, "web/b.yaml": c.b,
				"other/compose.yaml": "services:\n  db:\n    image: a\n    volumes: ['../web/data:/d']\n",
			}), s)
			var at []string
			for _, name := range sortedKeys(plan.Refused) {
				at = append(at, plan.Refused[name].Where()+" "+string(plan.Refused[name].Code))
			}
			if d := cmp.Diff(c.at, at); d != "" {
				t.Error(d)
			}
		})
	}
}
