package manifest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/secrets"
)

// repo makes a commit of path -> text.
func repo(files map[string]string) *ring.Commit {
	fsys := fstest.MapFS{}
	for p, text := range files {
		fsys[p] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return &ring.Commit{SHA: ring.SHA(strings.Repeat("a", 40)), Tree: fsys}
}

func settings() Settings {
	return Settings{Source: "prod", Path: ".", Host: "edge-1", Secrets: keyless{}}
}

// keyless reads encrypted files as the daemon does, on a host that has no key.
type keyless struct{}

func (keyless) Encrypted(body []byte) bool { _, is := secrets.FormOf(body); return is }

func (keyless) Open(f SecretFile) (*OpenedFile, *ring.Refusal) {
	read, err := secrets.Read(f.Body)
	if err == nil {
		_, err = read.Open(nil)
	}
	var r *ring.Refusal
	errors.As(err, &r)
	return nil, r
}

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

func (keyless) Provided(r SecretRef) (ProvidedValue, *ring.Refusal) {
	return ProvidedValue{MAC: ring.NotOpened(r.Name)}, nil
}
