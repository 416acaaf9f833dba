package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func reopened(t *testing.T, dir string, all []migration) (*Store, error) {
	t.Helper()
	s, err := open(t.Context(), dir, all, func() time.Time { return noon })
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

func TestADatabaseIsCopiedBeforeItIsMigrated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	all, err := migrations()
	require.NoError(t, err)
	s, err := reopened(t, dir, all)
	require.NoError(t, err)
	facts, events := record(1)
	require.NoError(t, s.Record(t.Context(), facts, events))
	require.NoError(t, s.Close())
	require.Empty(t, copies(t, dir), "a new one holds nothing to copy")

	for n := range 4 {
		id := fmt.Sprintf("100%d_more", n)
		all = append(all, migration{ID: id, SQL: fmt.Sprintf("CREATE TABLE more%d (id INTEGER); INSERT INTO more%d VALUES (1)", n, n)})
		s, err := reopened(t, dir, all)
		require.NoError(t, err)
		require.Empty(t, s.Notice())
		require.Equal(t, 1, s.count(t, fmt.Sprintf("SELECT count(*) FROM more%d", n)))
		require.NoError(t, s.Close())
		require.Contains(t, copies(t, dir), fileName+".before-"+id)
	}
	require.Equal(t, []string{fileName + ".before-1002_more", fileName + ".before-1003_more"}, copies(t, dir))

	name := filepath.Join(dir, fileName+".before-1003_more")
	fi, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
	old := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(old, 0o700))
	require.NoError(t, os.Rename(name, filepath.Join(old, fileName)))
	s, err = reopened(t, old, all[:len(all)-1])
	require.NoError(t, err, "the release before can use the copy")
	got, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Len(t, got.Verdicts, 1)
	require.NoError(t, s.CheckJournal(t.Context()))
}

func copies(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.before-*"))
	require.NoError(t, err)
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return names
}

func TestAMigrationThatFailsChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	all, err := migrations()
	require.NoError(t, err)
	s, err := reopened(t, dir, all)
	require.NoError(t, err)
	facts, events := record(1)
	require.NoError(t, s.Record(t.Context(), facts, events))
	require.NoError(t, s.Close())

	bad := append(all[:len(all):len(all)], migration{"1001_fine", "CREATE TABLE fine (id INTEGER)"}, migration{"1002_bad", "DELETE FROM facts; CREATE TABLE facts (id INTEGER)"})
	_, err = reopened(t, dir, bad)
	require.ErrorContains(t, err, "cannot run migration 1002_bad")

	s, err = reopened(t, dir, all)
	require.NoError(t, err)
	require.Empty(t, s.Notice())
	got, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Len(t, got.Verdicts, 1)
	require.Zero(t, s.count(t, "SELECT count(*) FROM sqlite_master WHERE name = 'fine'"))
}

func TestADatabaseOfANewerGitringIsLeftAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	all, err := migrations()
	require.NoError(t, err)
	s, err := reopened(t, dir, append(all[:len(all):len(all)], migration{"9999_future", "CREATE TABLE future (id INTEGER)"}))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = reopened(t, dir, all)
	require.ErrorContains(t, err, "a newer gitring has written it")
	aside, err := filepath.Glob(filepath.Join(dir, "*damaged*"))
	require.NoError(t, err)
	require.Empty(t, aside)
}

func TestMigrationsAreInOrderAndNeverEdited(t *testing.T) {
	all, err := migrations()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for i, m := range all {
		require.Regexp(t, fmt.Sprintf(`^%04d_[a-z_]+$`, i+1), m.ID)
	}
}
