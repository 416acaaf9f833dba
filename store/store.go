package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/gitring/gitring/ring"
)

// Store is an open state directory. It is safe for concurrent use.
type Store struct {
	dir    string
	db     *handles
	notice string
	now    func() time.Time
	turn   chan struct{} // held by the one who writes
	file   os.FileInfo   // the database's, as it was opened

	mu      sync.Mutex
	changed chan struct{}        // closed and replaced at each commit; guarded by mu
	plain   map[string]fileState // by hash, contents that were read and hold no value; guarded by mu
	named   namedApps            // guarded by mu
}

// Open opens the state directory dir, which Lock has made and holds. A database
// that is damaged, of which a row cannot be read, or missing is no error: a new one is made, and Notice says so.
// A database of a newer gitring is one, and so is a world that does not let us
// read or write.
func Open(ctx context.Context, dir string) (*Store, error) {
	all, err := migrations()
	if err != nil {
		return nil, fmt.Errorf("cannot read the migrations: %w", err)
	}
	return open(ctx, dir, all, time.Now)
}

func open(ctx context.Context, dir string, all []migration, now func() time.Time) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the state directory: %w", err)
	}
	if err := stateDir(dir); err != nil {
		return nil, err
	}
	err = sweep(dir, filepath.Join(dir, "anchors"), filepath.Join(dir, "content"), filepath.Join(dir, "jobs", "*", "*"))
	if err != nil {
		return nil, err
	}
	h, fresh, notice, err := openDatabase(ctx, dir, all, now())
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, db: h, now: now, turn: make(chan struct{}, 1), changed: make(chan struct{}), plain: map[string]fileState{}}
	if s.file, err = os.Stat(filepath.Join(dir, fileName)); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot look at the database: %w", err), h.close())
	}
	taken, err := s.takeMarks(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot take over the job marks: %w", err), h.close())
	}
	behind, err := s.compareAnchors(ctx, fresh)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot compare the anchors with their files: %w", err), h.close())
	}
	s.notice = strings.Join(nonEmpty([]string{notice, taken, behind}), "; ")
	return s, nil
}

func nonEmpty(all []string) []string {
	var out []string
	for _, s := range all {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Notice is what Open found wrong and mended, for the journal and the log; ""
// when all was well.
func (s *Store) Notice() string { return s.notice }

// Close ends the store. No other method may run or be called any more.
func (s *Store) Close() error {
	if err := s.db.close(); err != nil {
		return fmt.Errorf("cannot close the database: %w", err)
	}
	return nil
}

// Changed is closed at the next commit of facts, events or posts. Take it
// before reading, then read, then wait: nothing is missed.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Store) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// write runs fn in one transaction. The context ends the wait for its turn; once
// begun it is carried through, so that an error always means "not written".
func (s *Store) write(ctx context.Context, fn func(tx *gorm.DB) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	if err := s.stays(); err != nil {
		return err
	}
	err := s.db.w.WithContext(context.WithoutCancel(ctx)).Transaction(fn)
	if err == nil {
		return nil
	}
	// A COMMIT that failed leaves the transaction open on the one connection,
	// and no other could ever begin. It fails when there is nothing to end.
	_, _ = s.db.rawW.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return s.mendable(err)
}

// mendable adds to what is damage that the next Open mends it.
func (s *Store) mendable(err error) error {
	if !isDamage(err) {
		return err
	}
	return fmt.Errorf("%w: the database %s is damaged, a restart of gitring moves it aside", err, filepath.Join(s.dir, fileName))
}

// stays says that the database is still the file that was opened. Where somebody removed
// or replaced it, everything that is written would go to a file that nobody finds again.
func (s *Store) stays() error {
	at := filepath.Join(s.dir, fileName)
	if f, err := os.Stat(at); err == nil && os.SameFile(f, s.file) {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot look at the database: %w", err)
	}
	return fmt.Errorf("cannot write to %s: it was removed or replaced while gitring runs; restart gitring, which goes on with what is there", at)
}

// read runs fn on one unchanging view of the database.
func (s *Store) read(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return s.mendable(s.db.r.WithContext(ctx).Transaction(fn))
}

// ns is t as the database keeps it.
func ns(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// timeOf is the inverse of ns, in UTC.
func timeOf(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

var _ interface {
	Facts(context.Context) (ring.Facts, error)
	Record(context.Context, []ring.Fact, []ring.Event) error
} = (*Store)(nil)
