package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWholeDiskIsNotReadAsACommit(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "home", "alice")
	require.NoError(t, os.MkdirAll(inner, 0o755))
	for i := range mostFolders {
		require.NoError(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755))
	}
	_, err := openFolder(dir)
	require.ErrorContains(t, err, "is in no clone, and has more than 5000 folders below it")
	for _, git := range []string{inner, dir} { // the second time all of it is a clone
		tree, err := openFolder(inner)
		require.NoError(t, err)
		require.NoError(t, tree.Close())
		require.NoError(t, os.Mkdir(filepath.Join(git, ".git"), 0o755))
	}
	tree, err := openFolder(dir)
	require.NoError(t, err, "whoever has such a clone means it")
	require.NoError(t, tree.Close())
	require.True(t, isInClone(filepath.Join(dir, "1")))
}
