package gitsync

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// folderWith makes files; a value that begins with -> is a link.
func folderWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		full := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		if to, link := cutPrefix(files[name], "->"); link {
			require.NoError(t, os.Symlink(to, full))
			continue
		}
		require.NoError(t, os.WriteFile(full, []byte(files[name]), 0o640))
	}
	return dir
}

func cutPrefix(s, p string) (string, bool) {
	if len(s) >= len(p) && s[:len(p)] == p {
		return s[len(p):], true
	}
	return s, false
}

func TestAFolderReadsAsACommitsTree(t *testing.T) {
	dir := folderWith(t, map[string]string{
		"compose.yaml": "services: {}", "web/conf/nginx.conf": "x", "run.sh": "#!/bin/sh",
		".git/config": "secret", "web/.gitkeep": "", "sub/.git": "gitdir: ../.git/modules/sub", "sub/file": "x",
		"link": "->web/conf/nginx.conf", "out": "->/etc/passwd", "up": "->..", "folder": "->web",
	})
	require.NoError(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o770))
	tree, err := OpenFolder(dir)
	require.NoError(t, err)
	defer tree.Close()

	entries, err := fs.ReadDir(tree, ".")
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		got = append(got, info.Mode().String()+" "+e.Name())
	}
	require.Equal(t, []string{
		"-rw-r--r-- compose.yaml", "Lrwxrwxrwx folder", "Lrwxrwxrwx link", "Lrwxrwxrwx out",
		"-rwxr-xr-x run.sh", "?--------- sub", "Lrwxrwxrwx up", "drwxr-xr-x web",
	}, got)

	for name, want := range map[string]string{"compose.yaml": "services: {}", "link": "web/conf/nginx.conf", "out": "/etc/passwd", "up": ".."} {
		b, err := fs.ReadFile(tree, name)
		require.NoError(t, err, name)
		require.Equal(t, want, string(b), name)
	}
	for _, name := range []string{".git", ".git/config", "folder/conf/nginx.conf", "up/x", "sub", "sub/file", "none", "/etc/passwd", "../x", "web/../run.sh"} {
		_, err := fs.ReadFile(tree, name)
		require.Error(t, err, name)
	}
	info, err := fs.Stat(tree, "link")
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&fs.ModeSymlink)
}

func TestATreeIsAFileSystem(t *testing.T) {
	dir := folderWith(t, map[string]string{"a": "1", "b/c": "2", "b/d/e": "3"})
	tree, err := OpenFolder(dir)
	require.NoError(t, err)
	defer tree.Close()
	require.NoError(t, fstest.TestFS(tree, "a", "b/c", "b/d/e"))
	var names []string
	require.NoError(t, fs.WalkDir(tree, ".", func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	}))
	require.True(t, slices.IsSorted(names))
}
