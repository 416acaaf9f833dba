package manifest

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitring/gitring/ring"
)

// repo makes a commit of path -> text.
func repo(files map[string]string) *ring.Commit {
	fsys := fstest.MapFS{}
	for p, text := range files {
		fsys[p] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return &ring.Commit{SHA: ring.SHA(strings.Repeat("a", 40)), Tree: fsys}
}

func settings() Settings { return Settings{Source: "prod", Path: ".", Host: "edge-1"} }

func dump(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReadMakesAPlan(t *testing.T) {
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services: {web: {image: nginx}}\n"}), settings())
	if plan.Refusal != nil || plan.Refused != nil || len(plan.Apps) != 1 {
		t.Fatal(dump(t, plan))
	}
}

// symlinkAt puts a symlink into a commit.
func symlinkAt(c *ring.Commit, p, to string) {
	c.Tree.(fstest.MapFS)[p] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
}
