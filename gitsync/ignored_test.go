package gitsync

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A clone in which an app runs holds more than its commits do: passwords, and
// data that nobody may read. It reads as Git would commit it.
func TestAClonesIgnoredFilesAreNotThere(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git decides here what is ignored")
	}
	dir := folderWith(t, map[string]string{
		".gitignore":           "# values\n.env\n/data/\n*.log\n!keep.log\nbuild/*\n!build/made.conf\n",
		".env":                 "PASSWORD=x",
		"compose.yaml":         "services: {}",
		"data/deep/file":       "x",
		"web/data/file":        "x", // only the one at the root is ignored
		"web/.gitignore":       "/cache\n!.env\n",
		"web/.env":             "A=b",
		"web/cache/x":          "x",
		"web/a.log":            "x",
		"web/keep.log":         "x",
		"forced.log":           "committed though ignored",
		"build/made.conf":      "x",
		"build/other":          "x",
		"later.yaml":           "not committed yet",
		"private/notes.txt":    "x",
		"private/deep/one.txt": "x",
	})
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	git("init", "-q")
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git/info/exclude"), []byte("private\n"), 0o644))
	git("add", "-f", "forced.log", "compose.yaml", ".gitignore")
	want := strings.Fields(git("ls-files", "--cached", "--others", "--exclude-standard"))
	slices.Sort(want)

	tree, err := OpenFolder(dir)
	require.NoError(t, err)
	defer tree.Close()
	var got []string
	require.NoError(t, fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, p)
		}
		return err
	}))
	require.Equal(t, want, got)
	for _, gone := range []string{".env", "data", "data/deep/file", "web/cache/x", "private/deep/one.txt"} {
		_, err := fs.Stat(tree, gone)
		require.ErrorIs(t, err, fs.ErrNotExist, gone)
	}

	// Without an index it could not be told what is committed all the same.
	require.NoError(t, os.Remove(filepath.Join(dir, ".git/index")))
	bare, err := OpenFolder(dir)
	require.NoError(t, err)
	defer bare.Close()
	_, err = fs.Stat(bare, ".env")
	require.NoError(t, err)
}
