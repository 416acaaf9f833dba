package store

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// e2e fills a file system; here is what is said of one.
func TestAFullFileSystemIsNamedBeforeTheDatabaseIsOpened(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, hasRoom(dir, 1))
	err := hasRoom(dir, math.MaxUint64)
	require.ErrorContains(t, err, "the file system of "+dir+" is full")
	require.ErrorContains(t, err, "make room there")
	require.False(t, isDamage(err), "a full disk must never cost the database")
}
