package runtime

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lay writes files below dir as the store does.
func layFiles(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		mode := os.FileMode(0o444)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o555
		}
		require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
		require.NoError(t, os.Chmod(at, mode))
	}
	return dir
}

// reads is what a program sees that lists the folder and reads all of it.
func reads(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(rel string)
	walk = func(rel string) {
		entries, err := os.ReadDir(filepath.Join(dir, rel))
		require.NoError(t, err)
		for _, e := range entries {
			name := filepath.Join(rel, e.Name())
			if strings.HasPrefix(e.Name(), "..") {
				continue
			}
			st, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err, "a name that leads nowhere")
			if st.IsDir() {
				walk(name)
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			out[name] = string(b)
		}
	}
	walk("")
	return out
}

func hidden(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out
}

func TestALiveFolderShowsTheNewContentAndNothingOfTheOld(t *testing.T) {
	dir := t.TempDir()
	a := map[string]string{"nginx.conf": "a", "conf.d/x.conf": "xa", "gone.conf": "g", "run.sh": "#!/bin/sh"}
	b := map[string]string{"nginx.conf": "b", "conf.d/y.conf": "yb", "run.sh": "#!/bin/sh", "new/deep/z": "z"}
	f := liveFolder{filepath.Join(dir, "live")}
	one, two := layFiles(t, filepath.Join(dir, "aa"), a), layFiles(t, filepath.Join(dir, "bb"), b)

	changed, err := f.put(one, "aa11")
	require.NoError(t, err)
	require.Empty(t, changed)
	require.Equal(t, a, reads(t, f.dir))
	st, err := os.Stat(filepath.Join(f.dir, "run.sh"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o555), st.Mode().Perm())
	mounted, err := os.Stat(f.dir)
	require.NoError(t, err)

	changed, err = f.put(two, "bb22")
	require.NoError(t, err)
	require.Empty(t, changed)
	require.Equal(t, b, reads(t, f.dir))
	again, err := os.Stat(f.dir)
	require.NoError(t, err)
	require.True(t, os.SameFile(mounted, again), "what is mounted stays the same folder")
	require.Equal(t, []string{"..aa11", "..bb22", "..data"}, hidden(t, f.dir), "the old content stays until the swap has succeeded")

	require.NoError(t, f.back("..aa11"))
	require.Equal(t, a, reads(t, f.dir))
	require.NoError(t, f.sweep())
	require.Equal(t, []string{"..aa11", "..data"}, hidden(t, f.dir))
}

func TestALiveFolderIsAsItShouldBeAfterACrashAtAnyMomentOfASwap(t *testing.T) {
	dir := t.TempDir()
	a, b := map[string]string{"conf": "a", "old/x": "1"}, map[string]string{"conf": "b", "new/y": "2"}
	one, two := layFiles(t, filepath.Join(dir, "aa"), a), layFiles(t, filepath.Join(dir, "bb"), b)
	// What a swap leaves behind when it ends after each of its effects.
	moments := []func(f liveFolder){
		func(f liveFolder) { _ = os.MkdirAll(filepath.Join(f.dir, liveNew, "half"), 0o755) },
		func(f liveFolder) { require.NoError(t, f.write(two, f.generation("bb22"))) },
		func(f liveFolder) { _ = os.Symlink("..bb22", filepath.Join(f.dir, "..data_new")) },
		func(f liveFolder) {
			require.NoError(t, f.write(two, f.generation("bb22")))
			require.NoError(t, f.turn("..bb22"))
		},
		func(f liveFolder) {
			require.NoError(t, f.write(two, f.generation("bb22")))
			require.NoError(t, f.turn("..bb22"))
			require.NoError(t, f.link("..data/new", "new"))
		},
	}
	for i, crash := range moments {
		for _, next := range []struct {
			from, hash string
			want       map[string]string
		}{{two, "bb22", b}, {one, "aa11", a}} {
			f := liveFolder{filepath.Join(t.TempDir(), "live")}
			_, err := f.put(one, "aa11")
			require.NoError(t, err)
			crash(f)
			changed, err := f.put(next.from, next.hash)
			require.NoError(t, err, "moment %d", i)
			require.Empty(t, changed)
			require.Equal(t, next.want, reads(t, f.dir), "moment %d", i)
			require.NoError(t, f.sweep())
			require.Len(t, hidden(t, f.dir), 2, "moment %d", i)
		}
	}
}

func TestWhatAHandChangedInALiveFolderIsWrittenAgainAndTold(t *testing.T) {
	dir := t.TempDir()
	a := map[string]string{"conf": "a", "more": "m"}
	one := layFiles(t, filepath.Join(dir, "aa"), a)
	write := func(at, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		_ = os.Remove(at)
		require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
	}
	hands := []struct {
		name string
		does func(at string)
		told bool
	}{
		{"a file's bytes are another's", func(at string) { write(filepath.Join(at, "..data", "conf"), "hacked") }, true},
		{"a file is removed", func(at string) { _ = os.Remove(filepath.Join(at, "..data", "conf")) }, true},
		{"a name is a file of its own", func(at string) { write(filepath.Join(at, "conf"), "x") }, true},
		{"a name is a folder", func(at string) { _ = os.Remove(filepath.Join(at, "conf")); write(filepath.Join(at, "conf", "x"), "x") }, true},
		{"a file is added", func(at string) { write(filepath.Join(at, "added"), "x") }, true},
		{"a name is removed", func(at string) { _ = os.Remove(filepath.Join(at, "conf")) }, false},
		{"the swap is removed", func(at string) { _ = os.Remove(filepath.Join(at, "..data")) }, false},
		{"all of it is removed", func(at string) { _ = os.RemoveAll(at) }, false},
	}
	for _, hand := range hands {
		t.Run(hand.name, func(t *testing.T) {
			f := liveFolder{filepath.Join(t.TempDir(), "live")}
			_, err := f.put(one, "aa11")
			require.NoError(t, err)
			hand.does(f.dir)
			changed, err := f.put(one, "aa11")
			require.NoError(t, err)
			require.Equal(t, hand.told, len(changed) > 0, "%v", changed)
			require.Equal(t, a, reads(t, f.dir))
			require.NoError(t, f.sweep())
			require.Equal(t, a, reads(t, f.dir))
		})
	}
}
