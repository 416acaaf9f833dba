package runtime

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// garden is a data root with one seeded folder, and contents to seed it with.
type garden struct {
	*fake
	t       *testing.T
	data    string // the seeded folder
	content string
	root    string
}

func newGarden(t *testing.T) *garden {
	t.Helper()
	dir := t.TempDir()
	g := &garden{t: t, root: filepath.Join(dir, "data"), content: filepath.Join(dir, "content")}
	g.data = filepath.Join(g.root, "shop/conf")
	g.fake = newFake(Options{Host: "edge-1", DataRoot: g.root, ContentDir: g.content, SeedDir: filepath.Join(dir, "state/seeds")})
	require.NoError(t, os.MkdirAll(g.data, 0o755))
	return g
}

// commit puts a content into the store and is the mount that seeds it.
func (g *garden) commit(hash string, files map[string]string) ring.Mount {
	g.t.Helper()
	hash = strings.Repeat(hash, 32)
	for name, text := range files {
		g.put(filepath.Join(g.content, hash, name), text)
	}
	return ring.Mount{Kind: ring.MountSeed, Source: "shop/conf", Target: "/conf", Seed: hash}
}

func (g *garden) put(file, text string) {
	g.t.Helper()
	require.NoError(g.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(g.t, os.WriteFile(file, []byte(text), 0o644))
}

func (g *garden) seed(m ring.Mount) []string {
	g.t.Helper()
	told, err := g.Docker.seed(g.root, m)
	require.NoError(g.t, err)
	return told
}

// files are what the folder holds, by path.
func (g *garden) files() map[string]string {
	g.t.Helper()
	out := map[string]string{}
	require.NoError(g.t, filepath.Walk(g.data, func(p string, st os.FileInfo, err error) error {
		if err != nil || !st.Mode().IsRegular() {
			return err
		}
		rel, _ := filepath.Rel(g.data, p)
		b, err := os.ReadFile(p)
		out[rel] = string(b)
		return err
	}))
	return out
}

func TestSeededFilesFollowTheCommitUntilTheAppChangesThem(t *testing.T) {
	g := newGarden(t)
	first := map[string]string{"a": "1", "b": "1", "sub/deep/c": "1", "gone": "1"}
	require.Empty(t, g.seed(g.commit("aa", first)))
	require.Equal(t, first, g.files())

	g.put(filepath.Join(g.data, "b"), "the app's")
	g.put(filepath.Join(g.data, "state.db"), "the app's own")
	second := g.commit("bb", map[string]string{"a": "2", "b": "2", "sub/deep/c": "1", "new": "1"})
	told := []string{filepath.Join(g.data, "b") + " was changed by the app; it stays as it is"}
	for range 2 {
		require.Equal(t, told, g.seed(second))
		require.Equal(t, map[string]string{
			"a": "2", "b": "the app's", "sub/deep/c": "1", "gone": "1", "new": "1", "state.db": "the app's own",
		}, g.files(), "what left the commit stays, what the app changed too")
	}

	// The app's change was taken into the commit: the file is the commit's again.
	require.Empty(t, g.seed(g.commit("cc", map[string]string{"b": "the app's"})))
	require.Empty(t, g.seed(g.commit("dd", map[string]string{"b": "4"})))
	require.Equal(t, "4", g.files()["b"])

	require.NoError(t, os.Remove(filepath.Join(g.data, "b")))
	told = []string{filepath.Join(g.data, "b") + " was removed by the app; it stays as it is"}
	require.Equal(t, told, g.seed(g.commit("ee", map[string]string{"b": "5"})))
	require.NoFileExists(t, filepath.Join(g.data, "b"), "an installer that removed itself does not come back")
}

func TestWhatWasThereBeforeIsNotTheCommits(t *testing.T) {
	g := newGarden(t)
	g.put(filepath.Join(g.data, "a"), "theirs")
	g.put(filepath.Join(g.data, "b"), "same")
	told := g.seed(g.commit("aa", map[string]string{"a": "1", "b": "same", "c": "1"}))
	require.Equal(t, []string{filepath.Join(g.data, "a") + " was there before and is not the commit's; it stays as it is"}, told)
	require.Equal(t, map[string]string{"a": "theirs", "b": "same", "c": "1"}, g.files())
}

func TestAFolderEmptiedByHandIsSeededAnew(t *testing.T) {
	g := newGarden(t)
	all := map[string]string{"a": "1", "sub/b": "1"}
	m := g.commit("aa", all)
	g.seed(m)
	require.NoError(t, os.RemoveAll(g.data))
	_, err := g.Docker.seed(g.root, m)
	require.Error(t, err, "one that is gone is not made here")
	require.NoError(t, os.MkdirAll(g.data, 0o755))
	require.Empty(t, g.seed(m))
	require.Equal(t, all, g.files())
}

func TestSeedsGoThroughNoSymlink(t *testing.T) {
	g := newGarden(t)
	outside := t.TempDir()
	g.put(filepath.Join(outside, "a"), "outside")
	m := g.commit("aa", map[string]string{"a": "1", "sub/b": "1", "sub2/c": "1", "pipe": "1"})
	for at, to := range map[string]string{"a": outside + "/a", "sub": outside, "sub2": "."} {
		require.NoError(t, os.Symlink(to, filepath.Join(g.data, at)))
	}
	require.NoError(t, os.Mkdir(filepath.Join(g.data, "pipe"), 0o755))
	told := g.seed(m)
	require.Len(t, told, 4)
	for _, line := range told {
		require.Contains(t, line, "it stays as it is")
	}
	require.Empty(t, g.files(), "nothing was written through a link, not even one to within")
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	b, err := os.ReadFile(filepath.Join(outside, "a"))
	require.NoError(t, err)
	require.Equal(t, "outside", string(b))

	require.NoError(t, os.RemoveAll(g.data))
	require.NoError(t, os.Symlink(outside, g.data))
	_, err = g.Docker.seed(g.root, m)
	require.ErrorContains(t, err, "is no folder")
}

func TestASeededFileKeepsItsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	g := newGarden(t)
	g.seed(g.commit("aa", map[string]string{"a": "1"}))
	for _, p := range []string{g.data, filepath.Join(g.data, "a")} {
		require.NoError(t, os.Chown(p, 70, 71)) // as images do with their data
	}
	g.seed(g.commit("bb", map[string]string{"a": "2", "new/b": "1"}))
	r, err := os.OpenRoot(g.data)
	require.NoError(t, err)
	defer r.Close()
	for _, p := range []string{"a", "new", "new/b"} {
		uid, gid, err := owner(r, p)
		require.NoError(t, err)
		require.Equal(t, []int{70, 71}, []int{uid, gid}, p)
	}
}

// Whatever was written when the daemon died, the next commit finds the files to
// be ours, and puts all of its own there.
func TestASeedThatWasCutOffIsNoDrift(t *testing.T) {
	first := map[string]string{"a": "1", "b": "1", "sub/c": "1"}
	second := map[string]string{"a": "2", "b": "2", "sub/c": "2", "new/d": "2"}
	third := map[string]string{"a": "3", "b": "3", "sub/c": "3", "new/d": "3"}
	for cut := 0; cut <= 2*len(second)+1; cut++ {
		for name, next := range map[string]map[string]string{"bb": second, "cc": third, "aa": first} {
			g := newGarden(t)
			require.Empty(t, g.seed(g.commit("aa", first)))
			g.cutOff(g.commit("bb", second), cut)
			require.Empty(t, g.seed(g.commit(name, next)), "cut %d, then %s", cut, name)
			want := maps.Clone(next)
			if _, ok := g.files()["new/d"]; ok && name == "aa" {
				want["new/d"] = "2" // left the commit, and stays
			}
			got := g.files()
			maps.DeleteFunc(got, func(p, _ string) bool {
				return strings.Contains(p, ".gitring-seed-") && !slices.Contains(slices.Sorted(maps.Keys(next)), p)
			})
			require.Equal(t, want, got, "cut %d, then %s", cut, name)
		}
	}
}

// cutOff seeds until the daemon dies: 0 before anything, 1 after it was noted,
// then for each file once with the file beside its place and once in it.
func (g *garden) cutOff(m ring.Mount, cut int) {
	g.t.Helper()
	from, err := os.OpenRoot(filepath.Join(g.content, m.Seed))
	require.NoError(g.t, err)
	defer from.Close()
	to, err := openFolder(g.root, m.Source)
	require.NoError(g.t, err)
	defer to.Close()
	b, err := newBed(g.opts.SeedDir, g.data, from, to)
	require.NoError(g.t, err)
	if cut == 0 {
		return
	}
	var due []seedling
	for _, p := range []string{"a", "b", "new/d", "sub/c"} {
		s, err := b.look(p)
		require.NoError(g.t, err)
		require.True(g.t, s.due)
		due = append(due, s)
		b.notes.Files[p] = append(b.notes.Files[p], s.want)
	}
	require.NoError(g.t, b.notes.write())
	for i, s := range due {
		switch {
		case cut > 2*i+2:
			require.NoError(g.t, b.plant(s))
		case cut == 2*i+2:
			dir, err := b.dir(filepath.Dir(s.path), true)
			require.NoError(g.t, err)
			require.NoError(g.t, b.fill(s.path, dir, filepath.Base(s.path), besideOf(s.path)))
			require.NoError(g.t, dir.Close())
		}
	}
}

func TestLostNotesAreToldAndTouchNothing(t *testing.T) {
	g := newGarden(t)
	g.seed(g.commit("aa", map[string]string{"a": "1", "b": "1"}))
	files, err := filepath.Glob(filepath.Join(g.opts.SeedDir, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte("{half"), 0o600))
	told := g.seed(g.commit("bb", map[string]string{"a": "2", "b": "1"}))
	require.Len(t, told, 2)
	require.Contains(t, told[0], "is not known any more")
	require.Equal(t, map[string]string{"a": "1", "b": "1"}, g.files())
	require.Empty(t, g.seed(g.commit("cc", map[string]string{"b": "3"})), "what is equal is known again")
}

// The file is written when its instance starts, not when it is made: the one
// before it may still run on the folder.
func TestSeedsAreWrittenBeforeAStart(t *testing.T) {
	g := newGarden(t)
	id := g.AddImage(enginetest.Image{Name: "app:1"})
	m := g.commit("aa", map[string]string{"a": "1"})
	s := &ring.Service{Name: "web", Kind: ring.Worker, Pin: ring.Pin{Image: id}, Image: ring.Image{Known: true}, Spec: ring.Spec{Image: "app:1", NoNetwork: true, Mounts: []ring.Mount{m}}}
	app := &ring.App{Name: "shop", Path: "shop"}
	s.Version = ring.VersionOf(app, s, s.Pin)
	a := ring.Action{Kind: ring.DoCreate, App: "shop", Service: "web", Slot: 1, Version: s.Version, Of: app, Want: s}
	done, err := g.Do(t.Context(), a)
	require.NoError(t, err)
	require.Empty(t, g.files())
	require.Equal(t, "data "+g.data, done.Kept[0].Name)
	a.Kind, a.Instance = ring.DoStart, done.Instance
	_, err = g.Do(t.Context(), a)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1"}, g.files())
	g.put(filepath.Join(g.data, "a"), "the app's")
	done, err = g.Do(t.Context(), a)
	require.NoError(t, err)
	require.Len(t, done.Drift, 1)
	require.Contains(t, done.Drift[0], "/a was changed by the app; it stays as it is")
	require.Empty(t, done.Told)
}
