package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gitring/gitring/disk"
)

// fileName is the database's, in the state directory.
const fileName = "gitring.db"

// keepDamaged is how many damaged databases stay beside the new one.
const keepDamaged = 3

// The pragmas come by their name in the DSN; a driver that does not know the
// form ignores them in silence, so Open checks one of them. FULL: a commit
// waits for the disk. Immediate: a transaction that reads and then writes would
// otherwise end as busy at once. The page caches are small because an idle
// daemon is to be small.
const (
	pragmas     = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)&_pragma=synchronous(FULL)&_pragma=journal_size_limit(4194304)"
	writerQuery = pragmas + "&_pragma=cache_size(-1024)&_txlock=immediate"
	readerQuery = pragmas + "&_pragma=cache_size(-512)&_pragma=query_only(1)"
	copierQuery = pragmas + "&_pragma=cache_size(-512)" // VACUUM INTO is no query
)

// handles are the two ways into one file.
type handles struct {
	w, r       *gorm.DB // one connection; a few that may only read
	rawW, rawR *sql.DB
}

func (h *handles) close() error {
	var err error
	for _, db := range []*sql.DB{h.rawR, h.rawW} { // the writer last: it clears the WAL away
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return err
}

// damage is what SQLite says is wrong with the content of the file.
type damage struct{ says string }

func (d *damage) Error() string { return d.says }

// isDamage tells a broken file from a world that does not let us read it: a
// full disk or a lack of rights must never cost the database.
func isDamage(err error) bool {
	var d *damage
	if errors.As(err, &d) {
		return true
	}
	var rows badRows
	if errors.As(err, &rows) {
		_, newer := rows.newer()
		return !newer
	}
	code, ok := codeOf(err)
	return ok && (code == corrupt || code == notADB)
}

// Primary result codes of SQLite.
const (
	sqlError = 1
	corrupt  = 11
	notADB   = 26
)

// codeOf is the primary result code of an error that SQLite gave.
func codeOf(err error) (code int, ok bool) {
	var c interface{ Code() int }
	if !errors.As(err, &c) {
		return 0, false
	}
	return c.Code() & 0xff, true
}

// openDatabase opens the file, moved to the newest schema. A damaged one is
// moved aside and said in the notice.
func openDatabase(ctx context.Context, dir string, all []migration, now time.Time) (h *handles, fresh bool, notice string, err error) {
	file := filepath.Join(dir, fileName)
	h, was, err := wholeDatabase(ctx, file, all)
	if err == nil || !isDamage(err) {
		return h, was.fresh, was.notice(), err
	}
	aside, moveErr := setAside(file, now)
	if moveErr != nil {
		return nil, false, "", fmt.Errorf("cannot move the damaged database aside: %w", errors.Join(moveErr, err))
	}
	notice = fmt.Sprintf("the database was damaged (%v): it is kept as %s, and a new one is made from Git, files and labels; "+
		"what people had set by hand (holds, pauses, counts, approvals, adoptions) is to be set again", err, aside)
	h, was, err = tryDatabase(ctx, file, all)
	return h, was.fresh, notice, err
}

// notice says what was mended of a database that is whole otherwise.
func (p past) notice() string {
	if len(p.unnoted) == 0 {
		return ""
	}
	return "the database did not say any more that it has the changes of " + strings.Join(p.unnoted, ", ") + ", which are there: it says so again"
}

// wholeDatabase is one of which every row can be read, too.
func wholeDatabase(ctx context.Context, file string, all []migration) (h *handles, was past, err error) {
	h, was, err = tryDatabase(ctx, file, all)
	if err != nil {
		return nil, was, err
	}
	if err := (&Store{dir: filepath.Dir(file), db: h}).checkRows(ctx); err != nil {
		return nil, was, errors.Join(fmt.Errorf("cannot use the database %s: %w", file, err), h.close())
	}
	return h, was, nil
}

func tryDatabase(ctx context.Context, file string, all []migration) (h *handles, was past, err error) {
	if err := private(file); err != nil {
		return nil, was, err
	}
	if err := hasRoom(filepath.Dir(file), leastRoom); err != nil {
		return nil, was, err
	}
	h = &handles{}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
			h = nil
		}
	}()
	h.w, h.rawW, err = handle(file, writerQuery, 1)
	if err != nil {
		return h, was, fmt.Errorf("cannot open %s: %w", file, err)
	}
	if err := quickCheck(ctx, h.rawW); err != nil {
		return h, was, fmt.Errorf("cannot check %s: %w", file, err)
	}
	if err := inWAL(ctx, h.rawW); err != nil {
		return h, was, err
	}
	if was, err = migrate(ctx, h.w, file, all); err != nil {
		return h, was, err
	}
	h.r, h.rawR, err = handle(file, readerQuery, 2)
	if err != nil {
		return h, was, fmt.Errorf("cannot open %s for reading: %w", file, err)
	}
	return h, was, nil
}

func handle(file, query string, conns int) (*gorm.DB, *sql.DB, error) {
	dsn := "file:" + (&url.URL{Path: file}).EscapedPath() + query
	raw, err := sql.Open(sqlite.DriverName, dsn)
	if err != nil {
		return nil, nil, err
	}
	raw.SetMaxOpenConns(conns)
	raw.SetMaxIdleConns(1)
	db, err := gorm.Open(&sqlite.Dialector{Conn: raw}, &gorm.Config{
		SkipDefaultTransaction: true,
		PrepareStmt:            false, // its cache is a goroutine that nothing ends
		TranslateError:         true,
		Logger:                 logger.Discard, // its lines would hold values of rows
	})
	if err != nil {
		return nil, nil, errors.Join(err, raw.Close())
	}
	return db, raw, nil
}

func inWAL(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("cannot use the database: its journal mode is %q, not wal; the state directory must be on a local disk", mode)
	}
	return nil
}

// private makes the file, and closes it to others. SQLite gives the files that
// it makes beside it the same mode.
func private(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open the database: %w", err)
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// setAside renames the database and what belongs to it. The database goes
// first: SQLite throws away a WAL that it finds beside an empty database, but
// would replay it into any other.
func setAside(file string, now time.Time) (string, error) {
	name := file + ".damaged-" + now.UTC().Format("20060102T150405Z")
	for i := 2; exists(name); i++ {
		name = fmt.Sprintf("%s.damaged-%s-%d", file, now.UTC().Format("20060102T150405Z"), i)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(file+suffix, name+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	if err := keepNewest(file+".damaged-*", keepDamaged); err != nil {
		return "", err
	}
	return name, disk.Sync(filepath.Dir(file))
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// leastRoom is what opening the database may take: the index of its WAL, which
// SQLite grows by 32 KiB at a time, and a WAL that is read again, for the writer
// and for readers. The rest is for what is written next.
const leastRoom = 256 << 10
