package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func recorded(t *testing.T, s *Store, reasons ...string) {
	t.Helper()
	for _, r := range reasons {
		require.NoError(t, s.Record(t.Context(), nil, []ring.Event{{At: time.Now().UTC(), Kind: ring.DaemonStarted, Reason: r}}))
	}
}

func reasonsOf(t *testing.T, s *Store) (out []string) {
	t.Helper()
	all, err := s.Events(t.Context(), EventQuery{})
	require.NoError(t, err)
	for _, e := range all {
		out = append(out, e.Reason)
	}
	return out
}

// A rehearsal may write what it wants, and migrate: the copy is its own.
func TestACopyOfAStateIsWholeAndApart(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir)
	require.NoError(t, err)
	recorded(t, s, "before")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "jobs", "web", "backup"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs", "web", "backup", "v1"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "env.key"), []byte("k"), 0o600))

	copied, err := Copy(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, dir, filepath.Dir(copied))
	c, err := Open(t.Context(), copied)
	require.NoError(t, err)
	require.Contains(t, reasonsOf(t, c), "before")
	recorded(t, c, "rehearsed")
	require.NoError(t, c.Close())
	require.NotContains(t, reasonsOf(t, s), "rehearsed")
	require.FileExists(t, filepath.Join(copied, "jobs", "web", "backup", "v1"))
	require.FileExists(t, filepath.Join(copied, "env.key"))
	require.NoError(t, s.Close())

	s, err = Open(t.Context(), dir)
	require.NoError(t, err)
	require.NoDirExists(t, copied, "what a crash leaves goes with the next start")
	require.NoError(t, s.Close())
	_, err = Copy(t.Context(), t.TempDir())
	require.Error(t, err, "there is no database")
}

// What a release that is taken back recorded is not there any more, not even what only stood
// in the WAL; the copy stays, so that it can be put back again.
func TestTheDatabaseOfBeforeComesBackWhole(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir)
	require.NoError(t, err)
	recorded(t, s, "old")
	require.NoError(t, s.Close())
	require.NoError(t, KeepPrev(t.Context(), dir))
	for range 2 {
		s, err = Open(t.Context(), dir)
		require.NoError(t, err)
		recorded(t, s, "new")
		wal, err := os.ReadFile(filepath.Join(dir, "gitring.db-wal"))
		require.NoError(t, err)
		require.NotEmpty(t, wal)
		require.NoError(t, s.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, "gitring.db-wal"), wal, 0o600), "as kill -9 leaves it")

		require.NoError(t, PutBackPrev(dir))
		s, err = Open(t.Context(), dir)
		require.NoError(t, err)
		require.Contains(t, reasonsOf(t, s), "old")
		require.NotContains(t, reasonsOf(t, s), "new")
		require.NoError(t, s.Close())
	}
	fi, err := os.Stat(filepath.Join(dir, "gitring.db"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
	require.Error(t, PutBackPrev(t.TempDir()))
}
