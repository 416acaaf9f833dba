package gitsync

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// edit commits files as the named key; "" removes one.
func (y *yard) edit(key, message string, fs map[string]string) ring.SHA {
	y.t.Helper()
	for name, text := range fs {
		path := filepath.Join(y.dir, name)
		if text == "" {
			require.NoError(y.t, os.RemoveAll(path))
			continue
		}
		require.NoError(y.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(y.t, os.WriteFile(path, []byte(text), 0o644))
	}
	y.git("add", "-A")
	return y.commit(key, noon, message)
}

func bound(bs ...Binding) func(*TrustConfig) {
	return func(c *TrustConfig) { c.Bindings = bs }
}

// TestRights is the rows of docs/testing/trust-table.md about who may change what.
func TestRights(t *testing.T) {
	web := Binding{Signer: "bob@example.org", Paths: []string{"apps/web/**"}}
	bot := Binding{Signer: "bot@example.org", Roles: []Role{RoleImages}, Paths: []string{"apps/**"}}
	const compose = "services:\n  web:\n    image: ghcr.io:443/acme/web:1.0@sha256:" // and a digest
	digest := func(c string) string { return strings.Repeat(c, 64) + "\n" }
	start := func(y *yard) ring.SHA {
		y.allow("alice", "")
		y.allow("bob", "")
		y.allow("bot", "")
		return y.edit("alice", "one", map[string]string{
			"apps/web/a.yaml": "a", "apps/web/deep/b.yaml": "b", "apps/db/x.yaml": "x", "apps/shop/compose.yaml": compose + digest("a"),
		})
	}
	rows := []struct {
		id, name string
		edit     func(y *yard) ring.SHA
		trust    func(*TrustConfig)
		want     ring.Code
		says     string
	}{
		{
			"V17", "a signer bound to another branch", func(y *yard) ring.SHA { return y.edit("bob", "two", map[string]string{"apps/web/a.yaml": "2"}) },
			bound(Binding{Signer: "bob@example.org", Branches: []string{"dev"}}), ring.BranchNotAllowed, "branch main",
		},
		{
			"V17", "a signer bound to a branch by a pattern", func(y *yard) ring.SHA { return y.edit("bob", "two", map[string]string{"apps/web/a.yaml": "2"}) },
			bound(Binding{Signer: "*@example.org", Branches: []string{"dev", "ma*"}}), "", "",
		},
		{
			"", "a signer bound to another source", func(y *yard) ring.SHA { return y.edit("bob", "two", map[string]string{"apps/web/a.yaml": "2"}) },
			bound(Binding{Signer: "bob@example.org", Sources: []string{"staging"}}), ring.BranchNotAllowed, "source prod",
		},
		{
			"V40", "a path that the signer has", func(y *yard) ring.SHA { return y.edit("bob", "two", map[string]string{"apps/web/deep/b.yaml": "2"}) },
			bound(web), "", "",
		},
		{"V40", "a path that the signer does not have", func(y *yard) ring.SHA {
			return y.edit("bob", "two", map[string]string{"apps/web/a.yaml": "2", "apps/db/x.yaml": "2"})
		}, bound(web), ring.PathNotAllowed, "apps/db/x.yaml"},
		{"V40", "two bindings add up", func(y *yard) ring.SHA {
			return y.edit("bob", "two", map[string]string{"apps/web/a.yaml": "2", "apps/db/x.yaml": "2"})
		}, bound(web, Binding{Signer: "bob@example.org", Paths: []string{"apps/db/*.yaml"}}), "", ""},
		{"V40", "a file whose mode alone changes", func(y *yard) ring.SHA {
			require.NoError(y.t, os.Chmod(filepath.Join(y.dir, "apps/db/x.yaml"), 0o755))
			return y.edit("bob", "two", nil)
		}, bound(web), ring.PathNotAllowed, "apps/db/x.yaml"},
		{"V41", "a rename into the signer's path", func(y *yard) ring.SHA {
			return y.edit("bob", "two", map[string]string{"apps/db/x.yaml": "", "apps/web/x.yaml": "x"})
		}, bound(web), ring.PathNotAllowed, "apps/db/x.yaml"},
		{"V41", "a folder that becomes a file", func(y *yard) ring.SHA {
			y.edit("", "gone", map[string]string{"apps/db": ""})
			y.git("reset", "-q", "--soft", "HEAD~1")
			return y.edit("bob", "two", map[string]string{"apps/db": "file"})
		}, bound(web), ring.PathNotAllowed, "apps/db"},
		{
			"", "a signer whom no binding names may do everything", func(y *yard) ring.SHA { return y.edit("alice", "two", map[string]string{"apps/db/x.yaml": "2"}) },
			bound(web), "", "",
		},
		{"V26g", "a bot that moves a digest", func(y *yard) ring.SHA {
			return y.edit("bot", "two", map[string]string{"apps/shop/compose.yaml": compose + digest("b")})
		}, bound(bot), "", ""},
		{"V26g", "a bot that moves a tag and a digest", func(y *yard) ring.SHA {
			return y.edit("bot", "two", map[string]string{"apps/shop/compose.yaml": strings.Replace(compose, "web:1.0", "web:1.1", 1) + digest("c")})
		}, bound(bot), "", ""},
		{"V26g", "a bot that names another repository", func(y *yard) ring.SHA {
			return y.edit("bot", "two", map[string]string{"apps/shop/compose.yaml": strings.Replace(compose, "acme/web", "evil/web", 1) + digest("a")})
		}, bound(bot), ring.NotImagesOnly, "line 3"},
		{"V26g", "a bot that names another registry's port", func(y *yard) ring.SHA {
			return y.edit("bot", "two", map[string]string{"apps/shop/compose.yaml": strings.Replace(compose, ":443", ":444", 1) + digest("a")})
		}, bound(bot), ring.NotImagesOnly, "line 3"},
		{"V26g", "a bot that takes the tag and digest away", func(y *yard) ring.SHA {
			return y.edit("bot", "two", map[string]string{"apps/shop/compose.yaml": strings.SplitN(compose, ":1.0", 2)[0] + "\n"})
		}, bound(bot), ring.NotImagesOnly, "line 3"},
		{"V26g", "a bot that changes another key", func(y *yard) ring.SHA {
			return y.edit("bot", "two", map[string]string{"apps/shop/compose.yaml": strings.Replace(compose, "  web:", "  wob:", 1) + digest("a")})
		}, bound(bot), ring.NotImagesOnly, "line 2"},
		{"V26g", "a bot that adds a line", func(y *yard) ring.SHA {
			return y.edit("bot", "two", map[string]string{"apps/shop/compose.yaml": compose + digest("a") + "    privileged: true\n"})
		}, bound(bot), ring.NotImagesOnly, "lines"},
		{
			"V26g", "a bot that adds a file", func(y *yard) ring.SHA {
				return y.edit("bot", "two", map[string]string{"apps/new.yaml": "image: a:1\n"})
			},
			bound(bot), ring.NotImagesOnly, "apps/new.yaml",
		},
		{
			"V26g", "a bot outside its paths", func(y *yard) ring.SHA { return y.edit("bot", "two", map[string]string{"README.md": "image: a:1\n"}) },
			bound(bot), ring.PathNotAllowed, "README.md",
		},
		{
			"", "a signer without the role commit", func(y *yard) ring.SHA { return y.edit("bob", "two", map[string]string{"a": "b"}) },
			bound(Binding{Signer: "bob@example.org", Roles: []Role{RoleMerge}}), ring.RoleNotAllowed, "commit",
		},
	}
	for _, r := range rows {
		t.Run(strings.TrimSpace(r.id+" "+r.name), func(t *testing.T) {
			y := newYard(t)
			anchor := start(y)
			tip := r.edit(y)
			_, refusal, err := y.trust(r.trust).Range(y, anchor, tip, noon, nil)
			require.NoError(t, err)
			if r.want == "" {
				require.Nil(t, refusal)
				return
			}
			require.NotNil(t, refusal)
			require.Equal(t, r.want, refusal.Code, refusal.Says)
			require.Contains(t, refusal.Says, r.says)
		})
	}
}

// TestAMergeAnswersForWhatItAloneChanges: a merge is held to the paths that
// differ from all its parents, and needs the role.
func TestAMergeAnswersForWhatItAloneChanges(t *testing.T) {
	for _, c := range []struct {
		name string
		evil string
		bind Binding
		want ring.Code
	}{
		{"a clean merge of somebody else's paths", "", Binding{Signer: "bob@example.org", Paths: []string{"web/**"}}, ""},
		{"a merge that changes a path of neither side", "db/z", Binding{Signer: "bob@example.org", Paths: []string{"web/**"}}, ring.PathNotAllowed},
		{"a merge that changes a path of the signer's own", "web/z", Binding{Signer: "bob@example.org", Paths: []string{"web/**"}}, ""},
		{"a merge without the role", "", Binding{Signer: "bob@example.org", Roles: []Role{RoleCommit}}, ring.RoleNotAllowed},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newYard(t)
			y.allow("alice", "")
			y.allow("bob", "")
			anchor := y.edit("alice", "one", map[string]string{"db/a": "1", "web/a": "1"})
			y.git("checkout", "-q", "-b", "side")
			side := y.edit("alice", "db", map[string]string{"db/b": "2"})
			y.git("checkout", "-q", "main")
			y.edit("alice", "web", map[string]string{"db/c": "2"})
			y.git("-c", "user.name=B", "-c", "user.email=b@example.org", "merge", "-q", "--no-ff", "--no-commit", string(side))
			fs := map[string]string{}
			if c.evil != "" {
				fs[c.evil] = "evil"
			}
			tip := y.edit("bob", "merge", fs)
			_, refusal, err := y.trust(bound(c.bind)).Range(y, anchor, tip, noon, nil)
			require.NoError(t, err)
			if c.want == "" {
				require.Nil(t, refusal)
				return
			}
			require.NotNil(t, refusal)
			require.Equal(t, c.want, refusal.Code)
		})
	}
}

func TestABindingMayNameAKey(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	anchor := y.edit("alice", "one", map[string]string{"a": "1"})
	tip := y.edit("alice", "two", map[string]string{"b": "1"})
	key := ssh.FingerprintSHA256(y.signer("alice").PublicKey())
	_, refusal, err := y.trust(bound(Binding{Signer: key, Paths: []string{"a"}})).Range(y, anchor, tip, noon, nil)
	require.NoError(t, err)
	require.NotNil(t, refusal)
	require.Equal(t, ring.PathNotAllowed, refusal.Code)
}

func TestPathsMatchFolderByFolder(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		want          bool
	}{
		{"apps/web/**", "apps/web/a", true},
		{"apps/web/**", "apps/web/a/b", true},
		{"apps/web/**", "apps/web", false},
		{"apps/web/**", "apps/website/a", false},
		{"apps/*/image.lock", "apps/web/image.lock", true},
		{"apps/*/image.lock", "apps/a/b/image.lock", false},
		{"**/image.lock", "image.lock", true},
		{"**/image.lock", "a/b/image.lock", true},
		{"a/**/z", "a/z", true},
		{"a/**/z", "a/b/c/z", true},
		{"a/**/z", "a/b/c", false},
		{"**", "anything/at/all", true},
		{"*.yaml", "a.yaml", true},
		{"*.yaml", "b/a.yaml", false},
		{"apps", "apps/a", false},
	} {
		require.Equal(t, c.want, matchPath(c.pattern, c.file), "%s %s", c.pattern, c.file)
	}
}

func TestABadBindingIsNamed(t *testing.T) {
	for _, c := range []struct {
		b    Binding
		says string
	}{
		{Binding{}, "names no signer"},
		{Binding{Signer: "a", Roles: []Role{"admin"}}, `role "admin"`},
		{Binding{Signer: "a", Paths: []string{"/etc"}}, `path "/etc"`},
		{Binding{Signer: "a", Paths: []string{"a/../b"}}, "clean path"},
		{Binding{Signer: "a", Paths: []string{"a/["}}, "bracket"},
	} {
		_, err := LoadTrust(TrustConfig{Mode: Strict, Bindings: []Binding{c.b}}, "prod", "main")
		require.ErrorContains(t, err, c.says)
	}
}
