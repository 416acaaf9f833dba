package manifest

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
)

// mounts reads an app of one service and gives its mounts by target.
func mounts(t *testing.T, c *ring.Commit) (map[string]ring.Mount, ring.App, map[string]ring.Content) {
	t.Helper()
	plan, contents := Read(c, settings())
	if len(plan.Apps) != 1 {
		t.Fatal(dump(t, plan))
	}
	out := map[string]ring.Mount{}
	for _, m := range plan.Apps[0].Services[0].Spec.Mounts {
		out[m.Target] = m
	}
	return out, plan.Apps[0], contents
}

func TestWhatTheCommitHoldsDecidesAMount(t *testing.T) {
	c := repo(map[string]string{
		"web/compose.yaml": `
services:
  web:
    image: a
    volumes:
      - ./conf:/conf
      - ./conf:/conf-ro:ro
      - ./conf/a.conf:/one
      - ./kept:/kept
      - ./readme:/readme
      - ./gone:/gone
      - ./gone2/:/gone2:ro
      - ../shared:/shared
      - ./html:/html
      - .:/all
    x-gitring: {mounts: {html/: data}}
`,
		"web/conf/a.conf": "a", "web/conf/sub/b.conf": "b",
		"web/kept/.gitkeep": "", "web/kept/deep/.gitignore": "*\n", "web/readme/README.md": "x",
		"shared/x": "x", "web/html/index.html": "x",
	})
	c.Tree.(fstest.MapFS)["web/conf/run.sh"] = &fstest.MapFile{Data: []byte("#!"), Mode: 0o755}
	m, app, contents := mounts(t, c)
	for target, want := range map[string]ring.Mount{
		"/kept":   {Kind: ring.MountData, Source: "web/kept"},
		"/readme": {Kind: ring.MountData, Source: "web/readme"},
		"/gone":   {Kind: ring.MountData, Source: "web/gone"},
		"/gone2":  {Kind: ring.MountData, Source: "web/gone2", ReadOnly: true},
		"/html":   {Kind: ring.MountData, Source: "web/html"},
	} {
		want.Target = target
		if d := cmp.Diff(want, m[target]); d != "" {
			t.Error(d)
		}
	}
	for _, target := range []string{"/conf", "/conf-ro", "/one", "/shared", "/all"} {
		if g := m[target]; g.Kind != ring.MountContent || !g.ReadOnly || len(g.Source) != 64 || contents[g.Source].Hash != g.Source {
			t.Errorf("%s: %+v", target, g)
		}
	}
	if m["/one"].File != "a.conf" || m["/conf"].File != "" || m["/conf"].Source != m["/conf-ro"].Source {
		t.Error(m)
	}
	var files []string
	for _, f := range contents[m["/conf"].Source].Files {
		b, err := f.Read()
		if err != nil {
			t.Fatal(err)
		}
		exec := ""
		if f.Exec {
			exec = " x"
		}
		files = append(files, f.Path+exec+" "+string(b))
	}
	if d := cmp.Diff([]string{"a.conf a", "run.sh x #!", "sub/b.conf b"}, files); d != "" {
		t.Error(d)
	}
	if notes := strings.Join(app.Notes, "\n"); !strings.Contains(notes, "web/conf is mounted read-only") || !strings.Contains(notes, "./gone is the app's data: web/gone below the data root") {
		t.Error(notes)
	}
}

// A content is told by paths, modes and bytes, and by nothing else.
func TestTheHashOfContent(t *testing.T) {
	source := func(change func(fstest.MapFS)) string {
		c := repo(map[string]string{"web/compose.yaml": "services: {web: {image: a, volumes: ['./c:/c']}}\n", "web/c/a": "1", "web/c/b/d": "2", "web/other": "x"})
		change(c.Tree.(fstest.MapFS))
		m, _, _ := mounts(t, c)
		return m["/c"].Source
	}
	was := source(func(fstest.MapFS) {})
	if source(func(f fstest.MapFS) { f["web/other"].Data = []byte("y"); f["x"] = &fstest.MapFile{} }) != was {
		t.Error("a file that is not mounted changes the content")
	}
	for name, change := range map[string]func(fstest.MapFS){
		"bytes":    func(f fstest.MapFS) { f["web/c/a"].Data = []byte("3") },
		"mode":     func(f fstest.MapFS) { f["web/c/a"].Mode = 0o755 },
		"new file": func(f fstest.MapFS) { f["web/c/z"] = &fstest.MapFile{} },
		"gone":     func(f fstest.MapFS) { delete(f, "web/c/a") },
		"renamed":  func(f fstest.MapFS) { f["web/c/z"] = f["web/c/a"]; delete(f, "web/c/a") },
		"swapped":  func(f fstest.MapFS) { f["web/c/a"], f["web/c/b/d"] = f["web/c/b/d"], f["web/c/a"] },
	} {
		if source(change) == was {
			t.Errorf("%s: the content has the same hash", name)
		}
	}
}

// A changed file is a changed version: lesson L17.
func TestAChangedFileIsAChangedVersion(t *testing.T) {
	version := func(text string) ring.Version {
		plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services: {web: {image: a, volumes: ['./c:/c:ro']}}\n", "web/c": text}), settings())
		return ring.VersionOf(&plan.Apps[0], &plan.Apps[0].Services[0], pin)
	}
	first, again := version("a"), version("a")
	if first == version("b") || first != again {
		t.Error("the version does not follow the content")
	}
}

func TestOnlyContentsInUseAreGiven(t *testing.T) {
	_, contents := Read(repo(map[string]string{
		"a/compose.yaml": "services: {web: {image: a, volumes: ['./c:/c'], oops: 1}}\n", "a/c": "1",
		"b/compose.yaml": "services: {web: {image: a, volumes: ['./c:/c']}}\n", "b/c": "2",
		"d/compose.yaml": "services: {web: {image: a, volumes: ['./c:/c', './x:/x']}, e: {image: b, restart: never}}\n", "d/c": "3",
	}), settings())
	if len(contents) != 1 {
		t.Errorf("%d contents", len(contents))
	}
}

func TestAnonymousVolumesAreNamedBySlot(t *testing.T) {
	m, app, _ := mounts(t, repo(map[string]string{"web/compose.yaml": "services: {web: {image: a, volumes: [/data, {type: volume, target: /more, volume: {nocopy: true}}, 'named:/n']}}\nvolumes: {named: , unused: }\n"}))
	if m["/data"].Source != "web_{slot}_bd47413b" || m["/data"].Kind != ring.MountVolume || !m["/more"].NoCopy || !strings.HasPrefix(m["/more"].Source, "web_{slot}_") {
		t.Error(m)
	}
	if d := cmp.Diff([]ring.Volume{{Key: "named"}}, app.Volumes); d != "" {
		t.Error(d)
	}
	if alone := app.Alone(&app.Services[0]); !strings.Contains(alone, "writable volume") {
		t.Errorf("two instances may run at once: %q", alone)
	}
}
