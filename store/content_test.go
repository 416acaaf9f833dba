package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

var (
	hashA = strings.Repeat("ab", 32)
	hashB = strings.Repeat("cd", 32)
)

func TestAContentIsWrittenForAnyUserToRead(t *testing.T) {
	s := fresh(t)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	script := file("bin/deep/run.sh", "#!/bin/sh\n")
	script.Exec = true
	c := ring.Content{Hash: hashA, Files: []ring.ContentFile{file("nginx.conf", "conf"), script, file("bin/empty", "")}}
	require.False(t, s.HasContent(hashA))
	require.NoError(t, s.WriteContent(t.Context(), c))
	require.True(t, s.HasContent(hashA))

	got := map[string]fs.FileMode{}
	require.NoError(t, fs.WalkDir(os.DirFS(s.ContentDir()), ".", func(p string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		fi, err := d.Info()
		got[strings.TrimPrefix(p, hashA)] = fi.Mode()
		return err
	}))
	require.Equal(t, map[string]fs.FileMode{
		".": fs.ModeDir | 0o700, // made under the umask; the engine resolves it as root
		"":  fs.ModeDir | 0o755, "/bin": fs.ModeDir | 0o755, "/bin/deep": fs.ModeDir | 0o755,
		"/nginx.conf": 0o444, "/bin/empty": 0o444, "/bin/deep/run.sh": 0o555,
	}, got)
	b, err := os.ReadFile(filepath.Join(s.ContentDir(), hashA, "nginx.conf"))
	require.NoError(t, err)
	require.Equal(t, "conf", string(b))

	for i := range c.Files {
		c.Files[i].Read = func() ([]byte, error) { panic("it is there already") }
	}
	require.NoError(t, s.WriteContent(t.Context(), c))
}

func TestAFileThatAHandTookOutOfAContentIsPutBack(t *testing.T) {
	s := fresh(t)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	script := file("bin/deep/run.sh", "#!/bin/sh\n")
	script.Exec = true
	c := ring.Content{Hash: hashA, Files: []ring.ContentFile{file("nginx.conf", "conf"), script}}
	require.NoError(t, s.WriteContent(t.Context(), c))
	dir := filepath.Join(s.ContentDir(), hashA)
	before, err := os.Stat(dir)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "bin")))
	c.Files[0].Read = func() ([]byte, error) { panic("it is not missing") }

	require.NoError(t, s.WriteContent(t.Context(), c))
	after, err := os.Stat(dir)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "running containers mount the folder as it was")
	fi, err := os.Stat(filepath.Join(dir, "bin/deep/run.sh"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o555), fi.Mode())
	fi, err = os.Stat(filepath.Join(dir, "bin/deep"))
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|0o755, fi.Mode())
	left, err := filepath.Glob(filepath.Join(s.ContentDir(), tempMark+"*"))
	require.NoError(t, err)
	require.Empty(t, left)

	require.NoError(t, os.Remove(filepath.Join(dir, "nginx.conf")))
	c.Files[0].Read = func() ([]byte, error) { return nil, errors.New("the object is gone") }
	require.ErrorContains(t, s.WriteContent(t.Context(), c), "nginx.conf: the object is gone")
	require.NoFileExists(t, filepath.Join(dir, "nginx.conf"))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "nginx.conf"), 0o755))
	require.ErrorContains(t, s.WriteContent(t.Context(), c), "no regular file")
}

func TestAContentIsThereWholeOrNotAtAll(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	fails := ring.ContentFile{Path: "b", Read: func() ([]byte, error) { return nil, errors.New("the object is gone") }}
	for name, c := range map[string]struct {
		ctx   context.Context
		hash  string
		files []ring.ContentFile
		says  string
	}{
		"a file cannot be read":       {t.Context(), hashA, []ring.ContentFile{file("a", "1"), fails}, "b: the object is gone"},
		"the context ended":           {ended, hashA, []ring.ContentFile{file("a", "1")}, "canceled"},
		"a path goes up":              {t.Context(), hashA, []ring.ContentFile{file("a/../../x", "1")}, "leaves the content"},
		"a path is absolute":          {t.Context(), hashA, []ring.ContentFile{file("/etc/x", "1")}, "leaves the content"},
		"a path is the folder":        {t.Context(), hashA, []ring.ContentFile{file(".", "1")}, "leaves the content"},
		"a path is empty":             {t.Context(), hashA, []ring.ContentFile{file("", "1")}, "leaves the content"},
		"a path is there twice":       {t.Context(), hashA, []ring.ContentFile{file("a", "1"), file("a", "2")}, "a: "},
		"a file is a folder also":     {t.Context(), hashA, []ring.ContentFile{file("a", "1"), file("a/b", "2")}, "a/b: "},
		"a hash that leads elsewhere": {t.Context(), "../../" + hashA, []ring.ContentFile{file("a", "1")}, "not a hash"},
		"no hash":                     {t.Context(), "", []ring.ContentFile{file("a", "1")}, "not a hash"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			require.ErrorContains(t, s.WriteContent(c.ctx, ring.Content{Hash: c.hash, Files: c.files}), c.says)
			require.False(t, s.HasContent(c.hash))
			left, err := filepath.Glob(filepath.Join(s.ContentDir(), "*"))
			require.NoError(t, err)
			require.Empty(t, left)
			require.NoFileExists(t, filepath.Join(s.dir, "x"))
		})
	}
}

func TestAContentThatACrashLeftHalfIsRemovedAtTheNextOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	cmd, lines := spawn(t, "content", dir)
	require.True(t, lines.Scan())
	require.Equal(t, "half", lines.Text())
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	left, err := filepath.Glob(filepath.Join(dir, "content", "*", "a"))
	require.NoError(t, err)
	require.Len(t, left, 1, "the first file is there, under a name that is nobody's")

	s := opened(t, dir)
	require.False(t, s.HasContent(hashA))
	left, err = filepath.Glob(filepath.Join(dir, "content", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, s.WriteContent(t.Context(), ring.Content{Hash: hashA, Files: []ring.ContentFile{file("a", "1")}}))
}

func TestContentsThatNobodyNeedsGo(t *testing.T) {
	s := fresh(t)
	require.NoError(t, s.KeepContent(nil), "there are none yet")
	for _, h := range []string{hashA, hashB} {
		require.NoError(t, s.WriteContent(t.Context(), ring.Content{Hash: h, Files: []ring.ContentFile{file("d/a", "1")}}))
	}
	others := []string{"notes", "ABCDEF", strings.Repeat("ef", 32) + ".d"}
	for _, name := range others {
		require.NoError(t, os.Mkdir(filepath.Join(s.ContentDir(), name), 0o755))
	}
	require.NoError(t, s.KeepContent(map[string]bool{hashB: true}))
	require.False(t, s.HasContent(hashA))
	require.True(t, s.HasContent(hashB))
	require.FileExists(t, filepath.Join(s.ContentDir(), hashB, "d", "a"))
	for _, name := range others {
		require.DirExists(t, filepath.Join(s.ContentDir(), name), "not ours")
	}
}
