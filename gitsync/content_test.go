package gitsync

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
)

// save puts files into a commit of the named key.
func (y *yard) save(key, message string, files map[string]string) ring.SHA {
	y.t.Helper()
	for name, content := range files {
		require.NoError(y.t, os.MkdirAll(filepath.Dir(filepath.Join(y.dir, name)), 0o755))
		write(y, name, content)
	}
	y.git("add", "-A")
	return y.commit(key, noon, message)
}

// V16: a revert is a commit like any other, so what it asks for has the content of
// before and the name of now.
func TestV16ARevertIsTheOlderPlanUnderANewID(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	const compose = "services:\n  web:\n    image: example.org/web:"
	older := y.save("alice", "one", map[string]string{"web/compose.yaml": compose + "1\n"})
	y.save("alice", "two", map[string]string{"web/compose.yaml": compose + "2\n"})
	y.git("-c", "gpg.format=ssh", "revert", "--no-edit", "-S"+filepath.Join(y.keys, "alice"), "HEAD")
	revert := y.head()
	all, refusal, err := y.trust().Range(y, older, revert, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Len(t, all, 2)

	repo, err := OpenRepo(y.dir)
	require.NoError(t, err)
	plan := func(sha ring.SHA) ring.Plan {
		c, err := repo.Commit(sha)
		require.NoError(t, err)
		p, refusals := manifest.Check(c, manifest.Settings{Source: "prod", Host: "here"})
		require.Empty(t, refusals)
		require.Len(t, p.Apps, 1)
		return p
	}
	before, now := plan(older), plan(revert)
	require.Equal(t, older, before.Commit)
	require.Equal(t, revert, now.Commit)
	require.NotEqual(t, before.Commit, now.Commit)
	names := cmp.FilterPath(func(p cmp.Path) bool { return strings.HasSuffix(p.String(), "Commit") }, cmp.Ignore())
	require.Empty(t, cmp.Diff(before, now, names))
	require.NotEmpty(t, cmp.Diff(before, plan(all[0].SHA), names), "the commit in between asks for something else")
}

// V45: attributes change what a work tree shows, never what is in a commit. Nothing
// here has a work tree.
func TestV45AttributesChangeNoByte(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	const text = "services:\n  web:\n    image: a # $Format:%H$ $Id$\n"
	y.save("alice", "one", map[string]string{"web/compose.yaml": text})
	// Added after the file, so that git took the file in as it is.
	tip := y.save("alice", "two", map[string]string{".gitattributes": "* eol=crlf ident export-subst filter=lfs\n"})
	_, refusal, err := y.trust().Range(y, "", tip, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
	repo, err := OpenRepo(y.dir)
	require.NoError(t, err)
	c, err := repo.Commit(tip)
	require.NoError(t, err)
	got, err := fs.ReadFile(c.Tree, "web/compose.yaml")
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	require.Equal(t, strings.TrimSpace(text), y.git("cat-file", "blob", string(tip)+":web/compose.yaml"))
}
