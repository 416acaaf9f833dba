package manifest

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gitring/gitring/ring"
)

// edits are what people do to a repository, and what somebody does who wants the wrong files to run.
func edit(r *rand.Rand, tree fstest.MapFS) (says string) {
	names := sortedKeys(tree)
	name := names[r.IntN(len(names))]
	other := names[r.IntN(len(names))]
	file := func(body string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(body)} }
	switch r.IntN(10) {
	case 0:
		tree[name] = file(string(tree[name].Data) + "\n# seen\n")
		return "a line more in " + name
	case 1:
		tree[name] = file(spoiled(r, string(tree[name].Data), 1))
		return "spoiled " + name
	case 2:
		delete(tree, name)
		return "removed " + name
	case 3:
		tree[name], tree[other] = tree[other], tree[name]
		return "swapped " + name + " and " + other
	case 4:
		tree[name] = &fstest.MapFile{Data: tree[name].Data, Mode: tree[name].Mode ^ 0o111}
		return "another mode of " + name
	case 5:
		rel, err := filepath.Rel(path.Dir(name), other)
		if err != nil {
			return "nothing"
		}
		tree[name] = &fstest.MapFile{Data: []byte(rel), Mode: fs.ModeSymlink}
		return name + " is a link to " + other
	case 6:
		beside := path.Join(path.Dir(name), []string{"README.md", ".env", "compose.override.yaml", ".gitmodules", "data"}[r.IntN(5)])
		if !strings.HasPrefix(name, beside+"/") && !folderIn(tree, beside) {
			tree[beside] = file("SEEN=1\n")
		}
		return "added " + beside
	case 7:
		tree[fmt.Sprintf("new%d/compose.yaml", r.IntN(3))] = file("services: {web: {image: a, environment: {N: \"${SEEN:-0}\"}}}\n")
		return "another app"
	case 8:
		from := fmt.Sprintf("moved%d", r.IntN(3))
		for _, n := range names {
			if path.Dir(n) == path.Dir(name) && path.Dir(n) != "." {
				tree[path.Join(from, path.Base(n))] = tree[n]
				delete(tree, n)
			}
		}
		return "moved " + path.Dir(name)
	default:
		return "nothing"
	}
}

func folderIn(tree fstest.MapFS, dir string) bool {
	for name := range tree {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// readAll is all of a reading that can be compared, with the bytes of its contents.
func readAll(t *testing.T, r Reading) map[string]any {
	t.Helper()
	bodies := map[string]string{}
	for hash, c := range r.Contents {
		for _, f := range c.Files {
			body, err := f.Read()
			if err != nil {
				t.Fatal(err)
			}
			bodies[hash+f.Path] = fmt.Sprint(f.Exec, f.Sealed, string(body))
		}
	}
	return map[string]any{"plan": r.Plan, "bodies": bodies, "refusals": r.Refusals, "drafts": r.Drafts, "projects": r.Projects, "folders": r.Folders}
}

// What is remembered of the commit before changes nothing of what is read: through edits one after the other, by
// other settings, and when who got a reading writes into it.
func TestAMemoryReadsAsOneThatHasNone(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	r := rand.New(rand.NewPCG(3, 7))
	known := 0
	for run := range max(25, spoiledRuns()/10) {
		tree := fstest.MapFS{}
		for i := range 3 { // apps of several archives, in folders of their own
			for name, body := range archive(t, files[(run+i*5)%len(files)]) {
				if base := path.Base(name); i > 0 && base == gitringFile {
					continue
				}
				tree[path.Join([]string{"", "two", "three"}[i], name)] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
			}
		}
		tree["inline/compose.yaml"] = &fstest.MapFile{Data: []byte("services: {web: {image: a, configs: [c]}}\nconfigs: {c: {content: \"of no file\"}}\n")}
		m, s := &Memory{}, settings()
		s.Denied = func(*ring.App) bool { return false } // as the daemon has it
		var story []string
		for step := range 8 {
			if step > 0 {
				story = append(story, edit(r, tree))
			}
			if r.IntN(6) == 0 {
				s.Interpolation = map[string]string{"SEEN": fmt.Sprint(step)}
			}
			c := &ring.Commit{SHA: ring.SHA(fmt.Sprintf("%040d", step)), Tree: tree}
			got, want := m.Look(c, s), Look(c, s)
			if d := cmp.Diff(readAll(t, want), readAll(t, got), cmpopts.EquateEmpty(), cmp.AllowUnexported(ring.Refusal{}, ring.Plan{}, ring.App{}, ring.Service{}, ring.Spec{})); d != "" {
				t.Fatalf("run %d after %q:\n%s", run, story, d)
			}
			known += len(m.apps)
			for i := range got.Plan.Apps { // nobody else's doing reaches the memory
				a := &got.Plan.Apps[i]
				a.Notes = append(a.Notes, "written")
				for j := range a.Services {
					clear(a.Services[j].Spec.Environment)
					for k := range a.Services[j].Spec.Mounts {
						a.Services[j].Spec.Mounts[k].Source = "written"
					}
				}
			}
			next := fstest.MapFS{}
			for name, f := range tree {
				next[name] = f
			}
			tree = next
		}
	}
	if known < 100 {
		t.Fatalf("only %d apps were remembered: this shows nothing", known)
	}
}

// Of a hundred apps of which one changed, the files of one are parsed.
func TestAnAppThatIsAsItWasIsNotReadAgain(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 100 {
		tree[fmt.Sprintf("app%02d/compose.yaml", i)] = &fstest.MapFile{Data: []byte("services: {web: {image: a}}\n")}
	}
	m := &Memory{}
	m.Look(&ring.Commit{SHA: "1", Tree: tree}, settings())
	before := m.apps
	tree["app07/compose.yaml"] = &fstest.MapFile{Data: []byte("services: {web: {image: b}}\n")}
	tree["README.md"] = &fstest.MapFile{Data: []byte("new\n")}
	plan := m.Look(&ring.Commit{SHA: "2", Tree: tree}, settings()).Plan
	same := 0
	for key, was := range m.apps {
		if &was.facts[0] == &before[key].facts[0] {
			same++
		}
	}
	if same != 99 || len(plan.Apps) != 100 {
		t.Fatalf("%d of %d apps were known", same, len(plan.Apps))
	}
	for _, a := range plan.Apps {
		if a.Commit != "2" {
			t.Fatalf("%s says that commit %s asked for it", a.Name, a.Commit)
		}
	}
}
