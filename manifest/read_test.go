package manifest

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitring/gitring/ring"
)

// counting counts the folders that are listed and the files that are opened.
type counting struct {
	fs.FS
	opened map[string]int
}

func (c counting) Open(name string) (fs.File, error) {
	c.opened[name]++
	return c.FS.Open(name)
}

// large is a repository of 20,000 files with a few apps.
func large() *ring.Commit {
	fsys := fstest.MapFS{}
	for d := range 20 {
		for s := range 20 {
			for f := range 50 {
				fsys[fmt.Sprintf("src%d/pkg%d/deep/er/file%d.go", d, s, f)] = &fstest.MapFile{Data: []byte("x")}
			}
		}
	}
	for a := range 3 {
		fsys[fmt.Sprintf("apps/app%d/compose.yaml", a)] = &fstest.MapFile{Data: []byte("services: {web: {image: a, volumes: ['./conf:/conf']}}\n")}
		fsys[fmt.Sprintf("apps/app%d/conf/a", a)] = &fstest.MapFile{Data: []byte("x")}
	}
	return &ring.Commit{SHA: "x", Tree: fsys}
}

// Folders below the second level are nobody's business, nor are files that no
// app names; and nothing is listed twice.
func TestALargeRepositoryIsNotReadWhole(t *testing.T) {
	c := large()
	count := counting{c.Tree, map[string]int{}}
	c.Tree = count
	plan, _ := Read(c, settings())
	if len(plan.Apps) != 3 {
		t.Fatal(dump(t, plan))
	}
	for name, n := range count.opened {
		if strings.Contains(name, "/deep") || strings.HasSuffix(name, ".go") || n > 1 && !strings.HasSuffix(name, "conf/a") {
			t.Errorf("%s is opened %d times", name, n)
		}
	}
	if len(count.opened) > 450 {
		t.Errorf("%d folders and files are opened", len(count.opened))
	}
	// gitring.yaml names the folders, so the others are not looked at
	c.Tree.(counting).FS.(fstest.MapFS)[gitringFile] = &fstest.MapFile{Data: []byte("version: 1\napps: [{path: apps/app1}]\n")}
	clear(count.opened)
	if plan, _ = Read(c, settings()); len(plan.Apps) != 1 || len(count.opened) > 10 {
		t.Errorf("%d apps, opened %v", len(plan.Apps), count.opened)
	}
}

// Whatever is in a repository, Read neither fails nor panics, and what it gives
// is either whole or refused with a place.
func FuzzRead(f *testing.F) {
	for _, file := range corpus(f) {
		files := archive(f, file)
		for name, text := range files {
			if manifestName(name) {
				f.Add(text, files[".env"], "")
			}
		}
	}
	f.Add(bomb(), "", "")
	f.Add("services:\n  web: {image: a, ports: ['1-3:1-3', 80], x-gitring: {checks: [{tcp: {port: 1}}]}}\n", "A=$B\n", "version: 1\napps: [{path: ., after: [x]}]\n")
	f.Add("services: {web: {image: a, labels: [a=b], networks: {default: {ipv4_address: 10.0.0.2}}}}\nnetworks: {default: {ipam: {config: [{subnet: 10.0.0.0/24}]}}}\n", "A='b", "")
	f.Fuzz(func(t *testing.T, compose, env, listed string) {
		files := map[string]string{"compose.yaml": compose, ".env": env, "conf/a": "x"}
		if listed != "" {
			files[gitringFile] = listed
		}
		plan, contents := Read(repo(files), settings())
		for name, r := range plan.Refused {
			if r.Code == "" || r.Says == "" || r.File == "" || r.App != name {
				t.Errorf("a refusal without its place: %+v", r)
			}
		}
		for _, a := range plan.Apps {
			checkApp(t, a, contents)
		}
	})
}

func BenchmarkReadOneSmallApp(b *testing.B) {
	c := repo(map[string]string{"web/compose.yaml": "services:\n  web:\n    image: nginx:1.27\n    ports: ['8080:80']\n    volumes: ['./conf:/etc/nginx/conf.d:ro']\n    healthcheck: {test: curl -f localhost}\n", "web/conf/a.conf": "x"})
	for b.Loop() {
		if plan, _ := Read(c, settings()); len(plan.Apps) != 1 {
			b.Fatal(plan.Refused)
		}
	}
}

func BenchmarkReadHundredApps(b *testing.B) {
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("apps/app%d/compose.yaml", i)] = "services:\n  web:\n    image: nginx:1.27\n    ports: ['80']\n    networks: [n]\nnetworks: {n: {}}\n"
	}
	c := repo(files)
	for b.Loop() {
		if plan, _ := Read(c, settings()); len(plan.Apps) != 100 {
			b.Fatal(plan.Refused)
		}
	}
}
