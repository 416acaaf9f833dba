package gitsync

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// borrower is a clone that borrows, made by git, and its info/alternates.
func (o *origin) borrower(t *testing.T, from, name string) (dir, alternates string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	o.git("", "clone", "-q", "--shared", from, dir)
	return dir, filepath.Join(dir, ".git", "objects", "info", "alternates")
}

func names(t *testing.T, file string, lines ...string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

var complaint = regexp.MustCompile(`(?m)^error: (object directory|unable to normalize).*\n?`)

// way is how one folder is named from a folder of objects.
func way(t *testing.T, from, to string) string {
	t.Helper()
	rel, err := filepath.Rel(from, to)
	require.NoError(t, err)
	return rel
}

// The oracle is git: of each clone every object that git reaches is read, byte by byte, by
// its full id and by a short one.
func TestWhatGitBorrowsIsRead(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(t *testing.T, o *origin) string{
		"by absolute path": func(t *testing.T, o *origin) string {
			dir, _ := o.borrower(t, o.bare, "a")
			return dir
		},
		"with --reference": func(t *testing.T, o *origin) string {
			dir := filepath.Join(t.TempDir(), "a")
			o.git("", "clone", "-q", "--reference", o.bare, "file://"+o.bare, dir)
			return dir
		},
		"by relative path": func(t *testing.T, o *origin) string {
			dir, file := o.borrower(t, o.bare, "a")
			names(t, file, way(t, filepath.Dir(filepath.Dir(file)), filepath.Join(o.bare, "objects")))
			return dir
		},
		"behind a comment, quoted, with a slash at its end": func(t *testing.T, o *origin) string {
			dir, file := o.borrower(t, o.bare, "a")
			names(t, file, "# a comment", "", `"`+strings.Replace(o.bare, "/", `\057`, 1)+`/objects/"`)
			return dir
		},
		"over two steps, the second relative": func(t *testing.T, o *origin) string {
			first, file := o.borrower(t, o.bare, "a")
			dir, _ := o.borrower(t, first, "b")
			names(t, file, way(t, filepath.Dir(filepath.Dir(file)), filepath.Join(o.bare, "objects")))
			return dir
		},
		"over six steps": func(t *testing.T, o *origin) string {
			dir := o.bare
			for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
				dir, _ = o.borrower(t, dir, name)
			}
			return dir
		},
		"in a circle": func(t *testing.T, o *origin) string {
			first, _ := o.borrower(t, o.bare, "a")
			dir, file := o.borrower(t, first, "b")
			names(t, filepath.Join(o.bare, "objects", "info", "alternates"), way(t, filepath.Join(o.bare, "objects"), filepath.Dir(filepath.Dir(file))))
			return dir
		},
		"from itself": func(t *testing.T, o *origin) string {
			dir, file := o.borrower(t, o.bare, "a")
			names(t, file, "../objects", "../../.git/objects", o.bare+"/objects")
			return dir
		},
		"by a link to the folder": func(t *testing.T, o *origin) string {
			dir, file := o.borrower(t, o.bare, "a")
			link := filepath.Join(t.TempDir(), "objects")
			require.NoError(t, os.Symlink(filepath.Join(o.bare, "objects"), link))
			names(t, file, link)
			return dir
		},
		"from a folder by another name": func(t *testing.T, o *origin) string {
			dir, file := o.borrower(t, o.bare, "a")
			pool := filepath.Join(t.TempDir(), "pool")
			require.NoError(t, os.CopyFS(pool, os.DirFS(filepath.Join(o.bare, "objects"))))
			names(t, file, pool)
			return dir
		},
		"packed": func(t *testing.T, o *origin) string {
			dir, _ := o.borrower(t, o.bare, "a")
			o.git(o.bare, "gc", "-q")
			return dir
		},
		"in a linked work tree": func(t *testing.T, o *origin) string {
			dir, file := o.borrower(t, o.bare, "a")
			names(t, file, way(t, filepath.Dir(filepath.Dir(file)), filepath.Join(o.bare, "objects")))
			linked := filepath.Join(t.TempDir(), "linked")
			o.git(dir, "worktree", "add", "-q", linked, "HEAD")
			return linked
		},
		"and one that is gone beside": func(t *testing.T, o *origin) string {
			dir, file := o.borrower(t, o.bare, "a")
			names(t, file, "/nowhere/objects", "../../nowhere", o.bare+"/objects")
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			o.write("apps/web/x", strings.Repeat("x", 3000))
			o.signed("one")
			o.signed("two")
			dir := make(t, o)
			asked := func(args ...string) string { // without what git has to say of folders that are gone
				return complaint.ReplaceAllString(o.git(dir, args...), "")
			}
			r, err := OpenRepo(dir)
			require.NoError(t, err)
			head, err := r.Resolve("HEAD")
			require.NoError(t, err)
			require.Equal(t, asked("rev-parse", "HEAD"), string(head))
			all := strings.Split(asked("rev-list", "--objects", "--no-object-names", "HEAD"), "\n")
			require.Greater(t, len(all), 8)
			for _, id := range all {
				kind, body, err := r.Raw(ring.SHA(id))
				require.NoError(t, err)
				require.Equal(t, asked("cat-file", "-t", id), kind)
				require.Equal(t, asked("cat-file", kind, id), strings.TrimSpace(string(body)))
				size, err := r.size(ring.SHA(id))
				require.NoError(t, err)
				require.Equal(t, asked("cat-file", "-s", id), strconv.FormatInt(size, 10))
				if kind == "commit" {
					short, err := r.Resolve(id[:9])
					require.NoError(t, err)
					require.Equal(t, id, string(short))
				}
			}
			_, _, err = r.Raw(ring.SHA(strings.Repeat("1", 40)))
			require.ErrorIs(t, err, ErrMissing)
		})
	}
}

// A daemon that follows the clone as a folder reads the same.
func TestAFolderThatBorrowsIsFollowed(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.signed("one")
	first, file := o.borrower(t, o.bare, "a")
	dir, second := o.borrower(t, first, "b")
	names(t, file, way(t, filepath.Dir(filepath.Dir(file)), filepath.Join(o.bare, "objects")), filepath.Dir(filepath.Dir(second)))
	names(t, second, way(t, filepath.Dir(filepath.Dir(second)), filepath.Dir(filepath.Dir(file))))
	o.git(dir, "rev-list", "--objects", "HEAD") // as git does
	f := o.follow(&ledger{}, at("file://"+dir))
	require.Equal(t, sha, lookAt(t, f).must().Commit.SHA)
}

// What git cannot read either is told once, by the folder that is not there.
func TestWhatCannotBeBorrowedIsNamed(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.signed("one")
	dir, file := o.borrower(t, o.bare, "a")
	names(t, file, "../../nowhere/objects")
	gone := filepath.Join(dir, "nowhere", "objects")
	r, err := OpenRepo(dir)
	require.NoError(t, err)
	_, err = r.Resolve("HEAD")
	require.ErrorContains(t, err, gone+", which "+file+" names, is not there")
	require.Equal(t, 1, strings.Count(err.Error(), gone))
	_, _, err = r.Raw(sha)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, gone)

	deep := o.bare
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		deep, _ = o.borrower(t, deep, name)
	}
	last := filepath.Join(t.TempDir(), "last")
	o.git("", "clone", "-q", "--bare", o.bare, last)
	require.NoError(t, os.RemoveAll(filepath.Join(last, "objects")))
	names(t, filepath.Join(last, "objects", "info", "alternates"), filepath.Join(deep, ".git", "objects"))
	r, err = OpenRepo(last)
	require.NoError(t, err)
	_, err = r.Resolve("HEAD")
	require.ErrorContains(t, err, "more than 6 folders away, as far as git goes")
}
