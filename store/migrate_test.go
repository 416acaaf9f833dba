package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	require.ErrorContains(t, err, "cannot bring "+filepath.Join(dir, fileName)+" up to date, and left it as it was: cannot run migration 1002_bad: ")
	require.ErrorContains(t, err, "; run the gitring that it ran with before, or move the file, its -wal and its -shm away: ")

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
	require.EqualError(t, err, "cannot use "+filepath.Join(dir, fileName)+": a newer gitring has written it; run that one, "+
		"or move the file, its -wal and its -shm away: then a new one is made from Git, files and labels, "+
		"and what people had set by hand (holds, pauses, counts, approvals, adoptions) is to be set again", "it made no copy: there was nothing before it")
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

// What is newer may have moved an older database, and left the copy that it made of it.
func TestWhoGoesBackIsToldTheCopyFromBeforeTheMigration(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	all, err := migrations()
	require.NoError(t, err)
	s, err := reopened(t, dir, all)
	require.NoError(t, err)
	facts, events := record(1)
	require.NoError(t, s.Record(t.Context(), facts, events))
	require.NoError(t, s.Close())
	s, err = reopened(t, dir, append(all[:len(all):len(all)], migration{"9999_future", "CREATE TABLE future (id INTEGER)"}))
	require.NoError(t, err)
	require.NoError(t, s.Close())

	_, err = reopened(t, dir, all)
	aside := filepath.Join(dir, fileName+".before-9999_future")
	require.ErrorContains(t, err, "a newer gitring has written it; run that one, or move its -wal and -shm away and put "+aside+" in its place")
	require.NoError(t, os.Rename(aside, filepath.Join(dir, fileName)), "as it says; it was closed, so there is no -wal")
	s, err = reopened(t, dir, all)
	require.NoError(t, err)
	require.Empty(t, s.Notice())
	got, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Len(t, got.Verdicts, 1)
}

// Which migrations ran is noted in rows, and a row can get lost. What the tables look
// like tells it too.
func TestAMigrationThatRanAndIsNotNotedIsNotedAgain(t *testing.T) {
	all, err := migrations()
	require.NoError(t, err)
	closed := full(t)
	for name, c := range map[string]struct{ do, says string }{
		"the first":                 {"DELETE FROM migrations WHERE id LIKE '0001%'", "0001_begin"},
		"one between":               {"DELETE FROM migrations WHERE id LIKE '0003%'", "0003_records"},
		"the last":                  {"DELETE FROM migrations WHERE id = (SELECT max(id) FROM migrations)", all[len(all)-1].ID},
		"two":                       {"DELETE FROM migrations WHERE id < '0003'", "0001_begin, 0002_trust"},
		"all":                       {"DELETE FROM migrations", "0001_begin, 0002_trust, 0003_records"},
		"the table that notes them": {"DROP TABLE migrations", "0001_begin, 0002_trust, 0003_records"},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := opened(t, copyOf(t, closed)).Facts(t.Context())
			require.NoError(t, err)
			dir := copyOf(t, closed)
			spoil(t, dir, c.do)
			s := opened(t, dir)
			require.Contains(t, s.Notice(), "the database did not say any more that it has the changes of "+c.says)
			require.NotContains(t, s.Notice(), "is new")
			got, err := s.Facts(t.Context())
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got), "no row of it is lost")
			s.trusts(t, anchored(2))
			require.NoError(t, s.CheckJournal(t.Context()))
			require.NoError(t, s.Close())
			require.Empty(t, copies(t, dir), "nothing was changed that a copy would be of")

			again := opened(t, dir)
			require.Empty(t, again.Notice(), "it is told once")
			require.NoError(t, again.Close())
			next := append(all[:len(all):len(all)], migration{"9999_next", "UPDATE facts SET at = 7"})
			s, err = reopened(t, dir, next)
			require.NoError(t, err, "what comes next runs")
			require.Zero(t, s.count(t, "SELECT count(*) FROM facts WHERE at <> 7"))
		})
	}
	t.Run("a newer release finds what it has to change", func(t *testing.T) {
		dir := copyOf(t, closed)
		spoil(t, dir, "DELETE FROM migrations WHERE id LIKE '0003%'")
		next := append(all[:len(all):len(all)],
			migration{"9998_rows", "UPDATE facts SET at = 7"}, migration{"9999_more", "CREATE TABLE more (id INTEGER)"})
		s, err := reopened(t, dir, next)
		require.NoError(t, err)
		require.Contains(t, s.Notice(), "has the changes of 0003_records, which are there")
		require.Zero(t, s.count(t, "SELECT count(*) FROM facts WHERE at <> 7"))
		require.Equal(t, []string{fileName + ".before-9998_rows"}, copies(t, dir))
	})
}

// Tables that none of ours ever looked like are not guessed at.
func TestADatabaseThatLooksLikeNoneOfOursIsLeftAsItIs(t *testing.T) {
	dir := full(t)
	spoil(t, dir, "DELETE FROM migrations WHERE id LIKE '0002%'", "ALTER TABLE anchors DROP COLUMN degraded")
	for range 2 {
		_, err := Open(t.Context(), dir)
		require.ErrorContains(t, err, "cannot bring "+filepath.Join(dir, fileName)+" up to date, and left it as it was: cannot run migration 0002_trust: ")
		require.ErrorContains(t, err, orBeginAnew)
	}
	aside, err := filepath.Glob(filepath.Join(dir, "*damaged*"))
	require.NoError(t, err)
	require.Empty(t, aside)
	for _, suffix := range []string{"", "-wal", "-shm"} { // as it says
		require.NoError(t, os.RemoveAll(filepath.Join(dir, fileName+suffix)))
	}
	opened(t, dir).trusts(t, anchored(2))
}
