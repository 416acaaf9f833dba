package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/gitring/gitring/ring"
)

// childEnv has the test binary act as another process: "<what> <argument>…".
const childEnv = "GITRING_STORE_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		child(strings.Split(job, "|"))
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func child(args []string) {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	switch args[0] {
	case "record":
		s, err := Open(ctx, args[1])
		check(err)
		n, err := strconv.Atoi(args[2])
		check(err)
		for ; ; n++ {
			facts, events := record(n)
			check(s.Record(ctx, facts, events))
			fmt.Println(n)
		}
	case "lock":
		release, err := Lock(args[1], args[2], args[3])
		check(err)
		fmt.Println("locked")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent closes it
		release()
	case "rotate":
		s, err := Open(ctx, args[1])
		check(err)
		fmt.Println("begins")
		for n := 0; ; n++ {
			check(s.WriteContent(ctx, openedContent(n)))
			check(s.RemoveContent(openedContent(n - 1).Hash))
		}
	case "content":
		s, err := Open(ctx, args[1])
		check(err)
		check(s.WriteContent(ctx, ring.Content{Hash: strings.Repeat("ab", 32), Files: []ring.ContentFile{
			file("a", "first"), {Path: "b", Read: func() ([]byte, error) {
				fmt.Println("half")
				select {} // until killed
			}},
		}}))
	}
}

// spawn starts the test binary as another process and gives the lines it says.
func spawn(t *testing.T, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(args, "|"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

func file(path, body string) ring.ContentFile {
	return ring.ContentFile{Path: path, Read: func() ([]byte, error) { return []byte(body), nil }}
}

var noon = time.Date(2025, 11, 21, 12, 0, 0, 0, time.UTC)

// opened is a store of dir whose clock stands at noon.
func opened(t *testing.T, dir string) *Store {
	t.Helper()
	all, err := migrations()
	require.NoError(t, err)
	s, err := open(t.Context(), dir, all, func() time.Time { return noon })
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func fresh(t *testing.T) *Store {
	t.Helper()
	s := opened(t, filepath.Join(t.TempDir(), "state"))
	require.Empty(t, s.Notice(), "a first start has nothing to tell")
	return s
}

func (s *Store) sql(t *testing.T, q string, args ...any) {
	t.Helper()
	_, err := s.db.rawW.ExecContext(t.Context(), q, args...)
	require.NoError(t, err)
}

func (s *Store) count(t *testing.T, q string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, s.db.rawW.QueryRowContext(t.Context(), q, args...).Scan(&n))
	return n
}

func sha(n int) ring.SHA { return ring.SHA(fmt.Sprintf("%040x", n)) }

// record is one step of the loop: a fact, its post and two events.
func record(n int) ([]ring.Fact, []ring.Event) {
	v := ring.Verdict{ID: "web/web", Version: ring.Version(fmt.Sprintf("1:%064d", n)), At: noon}
	p := ring.Post{SHA: sha(n), Context: "gitring/edge-1", State: ring.PostSuccess, At: noon}
	return []ring.Fact{v, p}, []ring.Event{
		{Kind: ring.InstanceStep, App: "web", Reason: fmt.Sprint(n), At: noon},
		{Kind: ring.RolloutCompleted, App: "web", Reason: fmt.Sprint(n), At: noon},
	}
}

func TestKilledAtAnyMomentNothingAcknowledgedIsLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	next := 0
	for range 10 {
		cmd, lines := spawn(t, "record", dir, strconv.Itoa(next))
		acked := next - 1
		for stop := next + 1 + rand.IntN(60); acked < stop && lines.Scan(); {
			n, err := strconv.Atoi(lines.Text())
			require.NoError(t, err, lines.Text())
			acked = n
		}
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() { // said before it died
			if n, err := strconv.Atoi(lines.Text()); err == nil {
				acked = n
			}
		}
		_ = cmd.Wait()

		s, err := Open(t.Context(), dir)
		require.NoError(t, err)
		require.Empty(t, s.Notice())
		facts, err := s.Facts(t.Context())
		require.NoError(t, err)
		for n := range acked + 1 {
			f, _ := record(n)
			_, key := f[0].Row()
			require.Contains(t, facts.Verdicts, key, "acknowledged %d", n)
		}
		require.NoError(t, s.CheckJournal(t.Context()))
		require.Len(t, facts.Posts, len(facts.Verdicts), "a fact and its post are one transaction")
		require.Equal(t, 2*len(facts.Verdicts), s.count(t, "SELECT count(*) FROM journal"), "and so are its events")
		next = len(facts.Verdicts)
		require.NoError(t, s.Close())
	}
}

func TestSixteenWritersThatReadFirstAllSucceed(t *testing.T) {
	s := fresh(t)
	s.sql(t, "CREATE TABLE counter (n INTEGER NOT NULL)")
	s.sql(t, "INSERT INTO counter VALUES (0)")
	const writers, each = 16, 25
	var wg sync.WaitGroup
	errs := make(chan error, writers*each*2)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				errs <- s.write(t.Context(), func(tx *gorm.DB) error {
					var n int
					if err := tx.Raw("SELECT n FROM counter").Scan(&n).Error; err != nil {
						return err
					}
					return tx.Exec("UPDATE counter SET n = ?", n+1).Error
				})
				facts, events := record(w*each + i)
				errs <- s.Record(t.Context(), facts, events)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, writers*each, s.count(t, "SELECT n FROM counter"))
	require.Equal(t, 2*writers*each, s.count(t, "SELECT max(seq) FROM journal"))
	require.NoError(t, s.CheckJournal(t.Context()))
}

func TestAReaderThatTakesItsTimeDelaysNoWriter(t *testing.T) {
	s := fresh(t)
	err := s.read(t.Context(), func(tx *gorm.DB) error {
		var n int
		require.NoError(t, tx.Raw("SELECT count(*) FROM journal").Scan(&n).Error)
		facts, events := record(1)
		require.NoError(t, s.Record(t.Context(), facts, events), "while the view is open")
		require.NoError(t, tx.Raw("SELECT count(*) FROM journal").Scan(&n).Error)
		require.Zero(t, n, "the view does not change")
		return nil
	})
	require.NoError(t, err)
}

func TestReadersCannotWrite(t *testing.T) {
	s := fresh(t)
	require.Error(t, s.db.r.Exec("DELETE FROM facts").Error)
}

func TestTheStateIsClosedToOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c#d%20")
	s := opened(t, dir)
	facts, events := record(1)
	require.NoError(t, s.Record(t.Context(), facts, events))
	for name, want := range map[string]os.FileMode{".": 0o700, fileName: 0o600, fileName + "-wal": 0o600, fileName + "-shm": 0o600} {
		fi, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, fi.Mode().Perm(), name)
	}
}

func TestTheDriverTookThePragmas(t *testing.T) {
	s := fresh(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "foreign_keys": "1", "synchronous": "2", "busy_timeout": "5000", "cache_size": "-1024"} {
		var got string
		require.NoError(t, s.db.rawW.QueryRow("PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
	var version string
	require.NoError(t, s.db.rawW.QueryRow("SELECT sqlite_version()").Scan(&version))
	require.NotContains(t, version, "3.41.", "that one corrupts a database when the WAL is reset")
}

func TestASharedFolderOfOthersIsNotTakenForState(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "letters"), nil, 0o644))
	_, err := Open(t.Context(), dir)
	require.ErrorContains(t, err, "holds things that are not gitring's")
	fi, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), fi.Mode().Perm())
}

func TestChangedWakesAtEachCommit(t *testing.T) {
	s := fresh(t)
	first := s.Changed()
	require.NoError(t, s.Record(t.Context(), nil, nil))
	select {
	case <-first:
		t.Fatal("nothing was recorded")
	default:
	}
	facts, events := record(1)
	require.NoError(t, s.Record(t.Context(), facts, events))
	<-first
	second := s.Changed()
	require.NoError(t, s.Trust(t.Context(), ring.Anchor{Source: "prod", SHA: sha(1)}, nil, nil))
	<-second
}

func TestARecordIsNotBegunAfterItsContextEnded(t *testing.T) {
	s := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	facts, events := record(1)
	require.ErrorIs(t, s.Record(ctx, facts, events), context.Canceled)
	require.Zero(t, s.count(t, "SELECT count(*) FROM facts"))

	s.turn <- struct{}{} // somebody else writes
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Record(ctx, facts, events), context.DeadlineExceeded)
	<-s.turn
}
