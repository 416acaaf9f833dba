package gitsync

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// treeOf is the tree of the working clone's HEAD, read as the CLI does.
func (o *origin) treeOf(lim Limits) fs.FS {
	o.t.Helper()
	r, err := OpenRepo(o.work)
	require.NoError(o.t, err)
	c, err := commitOf(r, ring.Verified{SHA: o.head()}, lim.withDefaults())
	require.NoError(o.t, err)
	return c.Tree
}

func TestATreeKeepsTheContractOfFileSystems(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.write("a/b/c.txt", "c")
	o.write("a-file", "sorts before a/ for git, after it for people")
	o.write("a.txt", "")
	o.commit("one")
	require.NoError(t, fstest.TestFS(o.treeOf(Limits{}), "a/b/c.txt", "a-file", "a.txt", "compose.yaml"))
	list, err := fs.ReadDir(o.treeOf(Limits{}), ".")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a-file", "a.txt", "compose.yaml"}, []string{list[0].Name(), list[1].Name(), list[2].Name(), list[3].Name()})
}

func TestATreeShowsModesLinksAndSubmodulesAsTheyAre(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.write("run.sh", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(o.work, "run.sh"), 0o755))
	require.NoError(t, os.Symlink("/etc/shadow", filepath.Join(o.work, "link")))
	o.git(o.work, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",module")
	o.write("compose.yaml", "x")
	o.git(o.work, "add", "run.sh", "link", "compose.yaml")
	o.git(o.work, "commit", "-q", "-m", "odd things")
	tree := o.treeOf(Limits{})

	for name, mode := range map[string]fs.FileMode{
		"run.sh": 0o555, "compose.yaml": 0o444, ".": fs.ModeDir | 0o555,
		"link": fs.ModeSymlink | 0o444, "module": fs.ModeIrregular | 0o444,
	} {
		in, err := fs.Stat(tree, name)
		require.NoError(t, err, name)
		require.Equal(t, mode, in.Mode(), name)
	}
	b, err := fs.ReadFile(tree, "link")
	require.NoError(t, err)
	require.Equal(t, "/etc/shadow", string(b), "the target, never what it leads to")
	target, err := fs.ReadLink(tree, "link")
	require.NoError(t, err)
	require.Equal(t, "/etc/shadow", target)
	_, err = tree.Open("module")
	require.ErrorContains(t, err, "submodule")
	_, err = fs.ReadFile(tree, "link/passwd")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fs.ReadFile(tree, "nothing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fs.ReadFile(tree, "../compose.yaml")
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = fs.ReadFile(tree, ".")
	require.ErrorContains(t, err, "is a folder")
	_, err = fs.ReadDir(tree, "run.sh")
	require.ErrorContains(t, err, "not a folder")
	in, err := fs.Stat(tree, "run.sh")
	require.NoError(t, err)
	require.EqualValues(t, 10, in.Size())
}

func TestAFileAboveTheLimitIsNotRead(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit(strings.Repeat("x", 1000))
	_, err := fs.ReadFile(o.treeOf(Limits{Blob: 999}), "compose.yaml")
	require.ErrorIs(t, err, errTooBig)
	_, err = fs.ReadFile(o.treeOf(Limits{Blob: 1000}), "compose.yaml")
	require.NoError(t, err)
}

// shelf is a store that holds what it is told to, under whatever name.
type shelf struct {
	objects map[ring.SHA]string // kind, space, content
	told    []error
	read    int
}

func (s *shelf) put(kind, content string) ring.SHA {
	sha, _ := objectHash(kind, []byte(content))
	if s.objects == nil {
		s.objects = map[ring.SHA]string{}
	}
	s.objects[sha] = kind + " " + content
	return sha
}

func (s *shelf) Raw(sha ring.SHA) (string, []byte, error) {
	s.read++
	o, ok := s.objects[sha]
	if !ok {
		return "", nil, ErrMissing
	}
	kind, content, _ := strings.Cut(o, " ")
	return kind, []byte(content), nil
}

func (s *shelf) size(sha ring.SHA) (int64, error) {
	_, b, err := s.Raw(sha)
	return int64(len(b)), err
}

func (s *shelf) spoiled(err error) { s.told = append(s.told, err) }

// line is one entry of a tree object.
func line(mode, name string, sha ring.SHA) string {
	var raw strings.Builder
	for i := 0; i < 40; i += 2 {
		hex := "0123456789abcdef"
		raw.WriteByte(byte(strings.IndexByte(hex, sha[i])<<4 | strings.IndexByte(hex, sha[i+1])))
	}
	return mode + " " + name + "\x00" + raw.String()
}

func TestAFolderThatCouldLeadAstrayCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, entries := range map[string]func(blob, tree ring.SHA) string{
		"a name of two dots":      func(b, _ ring.SHA) string { return line("100644", "..", b) },
		"a name of one dot":       func(b, _ ring.SHA) string { return line("100644", ".", b) },
		"no name":                 func(b, _ ring.SHA) string { return line("100644", "", b) },
		"a slash in a name":       func(b, _ ring.SHA) string { return line("100644", "a/b", b) },
		"a .git":                  func(_, d ring.SHA) string { return line("40000", ".GIT", d) },
		"a name that is not text": func(b, _ ring.SHA) string { return line("100644", "\xff", b) },
		"a name twice":            func(b, d ring.SHA) string { return line("100644", "a", b) + line("40000", "a", d) },
		"a mode of a device":      func(b, _ ring.SHA) string { return line("020644", "a", b) },
		"a mode that is none":     func(b, _ ring.SHA) string { return line("10x644", "a", b) },
		"an entry cut short":      func(b, _ ring.SHA) string { return line("100644", "a", b)[:15] },
		"no mode":                 func(ring.SHA, ring.SHA) string { return "100644" },
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{}
			root := s.put("tree", entries(s.put("blob", "x"), s.put("tree", "")))
			_, err := newTree(s, root, Limits{}.withDefaults()).ReadDir(".")
			require.Error(t, err)
			require.Empty(t, s.told, "a fault of the commit, not of the store")
		})
	}
}

func TestAnObjectThatIsNotItselfIsNeverHandedOut(t *testing.T) {
	s := &shelf{}
	blob, other := s.put("blob", "good"), s.put("blob", "evil")
	sub := s.put("tree", line("100644", "f", blob))
	root := s.put("tree", line("40000", "d", sub)+line("100644", "f", blob))
	tree := newTree(s, root, Limits{}.withDefaults())
	s.objects[blob] = s.objects[other]
	_, err := tree.ReadFile("f")
	require.ErrorIs(t, err, errDamaged)
	s.objects[sub] = "tree " + line("100644", "f", other)
	_, err = tree.ReadFile("d/f")
	require.ErrorIs(t, err, errDamaged)
	s.objects[sub] = "blob x"
	_, err = tree.ReadDir("d")
	require.ErrorIs(t, err, errDamaged)
	delete(s.objects, sub)
	_, err = tree.ReadDir("d")
	require.ErrorIs(t, err, ErrMissing)
	require.Len(t, s.told, 4)
}

func TestATreeReadsOnlyWhatItIsAskedFor(t *testing.T) {
	s := &shelf{}
	blob := s.put("blob", "x")
	var root strings.Builder
	for _, d := range []string{"a", "b", "c"} {
		root.WriteString(line("40000", d, s.put("tree", line("100644", "f"+d, blob))))
	}
	tree := newTree(s, s.put("tree", root.String()), Limits{}.withDefaults())
	require.Zero(t, s.read)
	_, err := tree.ReadFile("b/fb")
	require.NoError(t, err)
	require.Equal(t, 4, s.read, "root, one folder, one size, one file")
	_, err = tree.ReadDir("b")
	require.NoError(t, err)
	require.Equal(t, 4, s.read)
}

func TestATreeIsReadByManyAtOnce(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for _, name := range []string{"a/1", "a/2", "b/1", "b/c/2"} {
		o.write(name, name)
	}
	o.commit("one")
	tree := o.treeOf(Limits{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				_, err = fs.ReadFile(tree, path)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
