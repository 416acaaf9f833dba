package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// lived makes a state directory with a history, and copies of it: closed as
// after Close, and torn as after a power cut, its WAL not yet in the database.
func lived(t *testing.T) (closed, torn string, last ring.Anchor) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	// Large enough for pages in the middle to be cut, changed or missed.
	for n := range 40 {
		facts, events := record(n)
		require.NoError(t, s.Record(t.Context(), facts, events))
		last = ring.Anchor{Source: "prod", SHA: sha(n), How: "verified", At: noon}
		require.NoError(t, s.Trust(t.Context(), last, []ring.Verified{{SHA: sha(n), Signer: "alice"}}, nil))
	}
	run := ring.JobRun{ID: "web/migrate", Version: "1:a", State: "succeeded"}
	require.NoError(t, s.Record(t.Context(), []ring.Fact{run}, nil))
	torn = filepath.Join(t.TempDir(), "torn")
	require.NoError(t, os.CopyFS(torn, os.DirFS(dir)))
	require.NoError(t, s.Close())
	closed = filepath.Join(t.TempDir(), "closed")
	require.NoError(t, os.CopyFS(closed, os.DirFS(dir)))
	return closed, torn, last
}

func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// works checks that a store records, is whole, trusts up to a, and still knows
// that the job ran.
func works(t *testing.T, s *Store, a ring.Anchor) {
	t.Helper()
	got, err := s.Anchor(t.Context(), "prod")
	require.NoError(t, err)
	require.Equal(t, a, got)
	facts, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Equal(t, "succeeded", facts.Jobs["web/migrate@1:a"].State)
	f, e := record(1000)
	require.NoError(t, s.Record(t.Context(), f, e))
	require.NoError(t, s.CheckJournal(t.Context()))
	next := ring.Anchor{Source: "prod", SHA: sha(1000), How: "verified", At: noon}
	require.NoError(t, s.Trust(t.Context(), next, nil, nil))
	got, err = s.Anchor(t.Context(), "prod")
	require.NoError(t, err)
	require.Equal(t, next, got)
}

func TestADamagedDatabaseIsMovedAsideAndTold(t *testing.T) {
	closed, _, anchor := lived(t)
	whole, err := os.ReadFile(filepath.Join(closed, fileName))
	require.NoError(t, err)
	changed := func(at, n int) []byte {
		b := append([]byte(nil), whole...)
		for i := range n {
			b[at+i] ^= 0xa5
		}
		return b
	}
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"garbage", []byte("this is a shopping list, and quite a long one at that, so that it is longer than a header of SQLite; eggs, milk")},
		{"cut in half", whole[:len(whole)/2]},
		{"cut in a page", whole[:len(whole)-1000]},
		{"cut in the header", whole[:50]},
		{"its header overwritten", changed(0, 100)},
		{"a page in the middle overwritten", changed(len(whole)/8192*4096, 4096)},
		{"the schema overwritten", changed(100, 2000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copyOf(t, closed)
			require.NoError(t, os.WriteFile(filepath.Join(dir, fileName), c.body, 0o600))
			s := opened(t, dir)
			aside := fileName + ".damaged-20251121T120000Z"
			require.Contains(t, s.Notice(), "the database was damaged")
			require.Contains(t, s.Notice(), aside)
			require.Contains(t, s.Notice(), "anchor files of prod")
			kept, err := os.ReadFile(filepath.Join(dir, aside))
			require.NoError(t, err)
			require.Equal(t, c.body, kept, "nothing of it is lost")
			works(t, s, anchor)
			require.NoError(t, s.Close())
			require.Empty(t, opened(t, dir).Notice(), "it is told once")
		})
	}
}

func TestADatabaseThatIsGoneIsToldToo(t *testing.T) {
	closed, _, anchor := lived(t)
	for name, do := range map[string]func(file string) error{
		"removed":  os.Remove,
		"emptied":  func(file string) error { return os.Truncate(file, 0) },
		"replaced": func(file string) error { return os.WriteFile(file, nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, closed)
			require.NoError(t, do(filepath.Join(dir, fileName)))
			s := opened(t, dir)
			require.Contains(t, s.Notice(), "the database is new; trusted up to is taken from the anchor files of prod")
			works(t, s, anchor)
		})
	}
}

func TestACutWALLosesWhatItHeldAndSaysSo(t *testing.T) {
	_, torn, anchor := lived(t)
	wal, err := os.ReadFile(filepath.Join(torn, fileName+"-wal"))
	require.NoError(t, err)
	require.Greater(t, len(wal), 100_000, "the history is in the WAL")
	for part := range 40 {
		// In frames and between them: a frame has 24 + 4096 bytes, behind a header of 32.
		left := len(wal)*part/40 + part*part%4120
		t.Run(fmt.Sprintf("%d bytes left", left), func(t *testing.T) {
			dir := copyOf(t, torn)
			cut := wal[:left]
			require.NoError(t, os.WriteFile(filepath.Join(dir, fileName+"-wal"), cut, 0o600))
			s := opened(t, dir)
			require.Contains(t, s.Notice(), "anchor files of prod")
			require.NoError(t, s.CheckJournal(t.Context()), "a beginning of the history is a whole one")
			works(t, s, anchor)
		})
	}
	t.Run("overwritten", func(t *testing.T) {
		dir := copyOf(t, torn)
		for i := range wal {
			wal[i] ^= 0x5a
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fileName+"-wal"), wal, 0o600))
		s := opened(t, dir)
		require.NotEmpty(t, s.Notice())
		works(t, s, anchor)
	})
	t.Run("whole, it is taken in without a word", func(t *testing.T) {
		s := opened(t, copyOf(t, torn))
		require.Empty(t, s.Notice())
		works(t, s, anchor)
	})
}

func TestOfDamagedDatabasesTheNewestStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	all, err := migrations()
	require.NoError(t, err)
	for n := range 6 {
		require.NoError(t, os.MkdirAll(dir, 0o700))
		name := filepath.Join(dir, fileName)
		body := fmt.Sprintf("%d: %0200d", n, n)
		require.NoError(t, os.WriteFile(name, []byte(body), 0o600))
		at := noon.Add(time.Duration(n/2) * time.Hour) // two at one time
		require.NoError(t, os.Chtimes(name, noon, noon.Add(time.Duration(n)*time.Hour)))
		s, err := open(t.Context(), dir, all, func() time.Time { return at })
		require.NoError(t, err)
		require.Contains(t, s.Notice(), "damaged")
		require.NoError(t, s.Close())
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.damaged-*"))
	require.NoError(t, err)
	require.Len(t, left, keepDamaged)
	for _, name := range left {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.GreaterOrEqual(t, b[0], byte('3'), name)
	}
}

func TestAWorldThatDoesNotLetUsReadIsNotDamage(t *testing.T) {
	t.Run("the database's name is taken by a folder", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		require.NoError(t, os.MkdirAll(filepath.Join(dir, fileName), 0o700))
		_, err := Open(t.Context(), dir)
		require.ErrorContains(t, err, "cannot open the database")
		require.DirExists(t, filepath.Join(dir, fileName))
	})
	t.Run("an error without a code, or with another", func(t *testing.T) {
		require.False(t, isDamage(nil))
		require.False(t, isDamage(errors.New("database disk image is malformed")))
		require.False(t, isDamage(&fs.PathError{Op: "open", Err: fs.ErrPermission}))
		require.False(t, isDamage(coded(13)), "the disk is full")
		require.False(t, isDamage(coded(10)), "input or output failed")
		require.False(t, isDamage(coded(5)), "somebody else writes")
		require.True(t, isDamage(fmt.Errorf("cannot: %w", coded(11))))
		require.True(t, isDamage(coded(11|1<<8)), "a kind of corruption")
		require.True(t, isDamage(coded(26)))
	})
}

type coded int

func (c coded) Error() string { return fmt.Sprint(int(c)) }
func (c coded) Code() int     { return int(c) }

func TestDamageFoundWhileRunningSaysWhatMendsIt(t *testing.T) {
	s := fresh(t)
	facts, events := record(1)
	require.NoError(t, s.Record(t.Context(), facts, events))
	s.sql(t, "PRAGMA wal_checkpoint(TRUNCATE)")
	require.NoError(t, s.db.rawR.Close())
	f, err := os.OpenFile(filepath.Join(s.dir, fileName), os.O_RDWR, 0)
	require.NoError(t, err)
	fi, err := f.Stat()
	require.NoError(t, err)
	for at := int64(4096); at < fi.Size(); at += 4096 { // every page but the first
		_, err = f.WriteAt(make([]byte, 4096), at)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	s.sql(t, "PRAGMA shrink_memory")
	facts, events = record(2)
	require.ErrorContains(t, s.Record(t.Context(), facts, events), "a restart of gitring moves it aside")
}
