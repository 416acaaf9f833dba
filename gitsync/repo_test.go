package gitsync

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestARepositoryIsFoundFromAnywhereInsideIt(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.write("apps/web/x", "x")
	sha := o.signed("one")
	linked := filepath.Join(t.TempDir(), "linked")
	o.git(o.work, "worktree", "add", "-q", linked, "HEAD")
	for _, dir := range []string{o.work, filepath.Join(o.work, "apps", "web"), linked, filepath.Join(linked, "apps"), o.bare} {
		r, err := OpenRepo(dir)
		require.NoError(t, err, dir)
		head, err := r.Resolve("HEAD")
		require.NoError(t, err, dir)
		require.Equal(t, sha, head)
		c, err := r.Commit(head)
		require.NoError(t, err)
		require.Empty(t, c.Signer)
		b, err := fs.ReadFile(c.Tree, "apps/web/x")
		require.NoError(t, err)
		require.Equal(t, "x", string(b))
	}
	_, err := OpenRepo(t.TempDir())
	require.ErrorContains(t, err, "neither")
}

func TestACloneThatBorrowsObjectsIsRead(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.write("apps/web/x", "x")
	sha := o.signed("one")
	shared := filepath.Join(t.TempDir(), "shared")
	o.git(o.work, "clone", "-q", "--shared", o.bare, shared)
	again := filepath.Join(t.TempDir(), "again")
	o.git(o.work, "clone", "-q", "--shared", shared, again) // it borrows from what borrows itself
	for _, clone := range []string{shared, again} {
		r, err := OpenRepo(clone)
		require.NoError(t, err)
		head, err := r.Resolve("HEAD")
		require.NoError(t, err)
		require.Equal(t, sha, head)
		c, err := r.Commit(head)
		require.NoError(t, err)
		b, err := fs.ReadFile(c.Tree, "apps/web/x")
		require.NoError(t, err)
		require.Equal(t, "x", string(b))
	}
}

func TestARevisionIsWhatGitSaysItIs(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	one := o.signed("one")
	o.git(o.work, "tag", "light")
	o.git(o.work, "tag", "-a", "-m", "v1", "v1")
	two := o.signed("two")
	o.git(o.work, "branch", "dev", "HEAD~1")
	r, err := OpenRepo(o.work)
	require.NoError(t, err)
	for rev, want := range map[string]ring.SHA{
		"HEAD": two, "main": two, "dev": one, "light": one, "v1": one, "HEAD~1": one, "HEAD^": one, "v1^{commit}": one,
		string(two): two, string(two[:7]): two, "origin/main": two, "refs/heads/dev": one,
	} {
		sha, err := r.Resolve(rev)
		require.NoError(t, err, rev)
		require.Equal(t, want, sha, rev)
	}
	for _, rev := range []string{"nope", "", strings.Repeat("1", 40), "HEAD~9"} {
		_, err = r.Resolve(rev)
		require.ErrorContains(t, err, "cannot find", "%q", rev)
	}
	_, _, err = r.Raw(ring.SHA(strings.Repeat("1", 40)))
	require.ErrorIs(t, err, ErrMissing)
	kind, body, err := r.Raw(one)
	require.NoError(t, err)
	require.Equal(t, "commit", kind)
	require.Equal(t, o.git(o.work, "cat-file", "commit", string(one)), strings.TrimSpace(string(body)))
}
