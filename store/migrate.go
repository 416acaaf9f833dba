package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/gorm"

	"github.com/gitring/gitring/disk"
)

// keepBackups is how many copies from before a migration stay.
const keepBackups = 2

// A migration is plain SQL, run once, in the order of the ids.
type migration struct{ ID, SQL string }

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations are the files of the folder of that name. One that was released
// is never edited.
func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var all []migration
	for _, n := range names {
		b, err := migrationFiles.ReadFile(n)
		if err != nil {
			return nil, err
		}
		all = append(all, migration{ID: strings.TrimSuffix(path.Base(n), ".sql"), SQL: string(b)})
	}
	return all, nil
}

// past is what a database was before it was brought up to date.
type past struct {
	fresh bool
	// unnoted are the migrations that had run and were not noted any more.
	unnoted []string
}

// migrate brings the database up to date, all or nothing. One that already held
// something is copied first.
func migrate(ctx context.Context, db *gorm.DB, file string, all []migration) (was past, err error) {
	have, err := applied(ctx, db)
	if err != nil {
		return was, fmt.Errorf("cannot read which migrations ran: %w", err)
	}
	pending := pendingOf(all, have)
	there := map[string]bool{}
	if len(pending) > 0 {
		if there, err = changesOf(ctx, db, all); err != nil {
			return was, fmt.Errorf("cannot tell which migrations ran: %w", err)
		}
	}
	was.fresh = len(have) == 0 && len(there) == 0
	if toRun := pendingOf(pending, there); !was.fresh && len(toRun) > 0 {
		if err := backup(ctx, db, file, toRun[0].ID); err != nil {
			return was, fmt.Errorf("cannot copy the database before migrating it: %w", err)
		}
	}
	var steps []*gormigrate.Migration
	for _, m := range all {
		steps = append(steps, &gormigrate.Migration{ID: m.ID, Migrate: func(tx *gorm.DB) error {
			if there[m.ID] { // only to be noted again
				was.unnoted = append(was.unnoted, m.ID)
				return nil
			}
			if err := tx.Exec(m.SQL).Error; err != nil {
				return fmt.Errorf("cannot run migration %s: %w", m.ID, err)
			}
			return nil
		}})
	}
	opts := *gormigrate.DefaultOptions
	opts.UseTransaction, opts.ValidateUnknownMigrations = true, true
	err = gormigrate.New(db.WithContext(ctx), &opts, steps).Migrate()
	switch {
	case errors.Is(err, gormigrate.ErrUnknownPastMigration):
		return was, fmt.Errorf("cannot use %s: a newer gitring has written it; run that one, or %s", file, orGoBack(file))
	case err != nil:
		return was, fmt.Errorf("cannot bring %s up to date, and left it as it was: %w; run the gitring that it ran with before, or %s", file, err, orBeginAnew)
	}
	return was, nil
}

// orBeginAnew is what is left to do about a database that is whole and of no use. The
// -wal and -shm beside it go with it: SQLite would read them into any other of that name.
const orBeginAnew = "move the file, its -wal and its -shm away: then a new one is made from Git, files and labels, and what people had set by hand (holds, pauses, counts, approvals, adoptions) is to be set again"

// orGoBack names the newest copy from before a migration, where there is one.
func orGoBack(file string) string {
	copies, err := newest(file + ".before-*")
	if err != nil || len(copies) == 0 {
		return orBeginAnew
	}
	return fmt.Sprintf("move its -wal and -shm away and put %s in its place, the copy from before it was changed: what was recorded since is then lost", copies[0])
}

// changesOf are the migrations whose changes the schema shows, whatever is noted of
// them: those up to the first one after which a database of ours looks as this one does.
// None where it looks like none. (One that changes rows alone shows nothing: it runs
// again where it was the last and is not noted.)
func changesOf(ctx context.Context, db *gorm.DB, all []migration) (map[string]bool, error) {
	is, err := schemaOf(ctx, db)
	if err != nil || is == "" {
		return nil, err
	}
	model, raw, err := handle(":memory:", "", 1)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	there := map[string]bool{}
	for _, m := range all {
		if err := model.WithContext(ctx).Exec(m.SQL).Error; err != nil {
			return nil, nil // what is wrong with it is told when it runs
		}
		there[m.ID] = true
		looks, err := schemaOf(ctx, model)
		if err != nil {
			return nil, err
		}
		if looks == is {
			return there, nil
		}
	}
	return nil, nil
}

// schemaOf is how a database's tables are declared, but for those of SQLite and of
// the migrations themselves.
func schemaOf(ctx context.Context, db *gorm.DB) (string, error) {
	var all []string
	err := db.WithContext(ctx).Raw(`SELECT type || ' ' || name || ' ' || sql FROM sqlite_master
		WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name <> 'migrations' ORDER BY 1`).Scan(&all).Error
	return strings.Join(all, "\n"), err
}

func applied(ctx context.Context, db *gorm.DB) (map[string]bool, error) {
	var n int64
	err := db.WithContext(ctx).Raw("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'migrations'").Scan(&n).Error
	if err != nil || n == 0 {
		return nil, err
	}
	var ids []string
	if err := db.WithContext(ctx).Raw("SELECT id FROM migrations").Scan(&ids).Error; err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for _, id := range ids {
		have[id] = true
	}
	return have, nil
}

func pendingOf(all []migration, have map[string]bool) []migration {
	var p []migration
	for _, m := range all {
		if !have[m.ID] {
			p = append(p, m)
		}
	}
	return p
}

// backup leaves <file>.before-<id>, a whole copy, and removes older ones.
func backup(ctx context.Context, db *gorm.DB, file, id string) error {
	name := file + ".before-" + id
	tmp := name + tempMark
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// SQLite takes an empty file as its target and would make a new one
	// readable to all.
	if err := os.WriteFile(tmp, nil, 0o600); err != nil {
		return err
	}
	if err := db.WithContext(ctx).Exec("VACUUM INTO ?", tmp).Error; err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if err := disk.Sync(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, name); err != nil {
		return err
	}
	if err := disk.Sync(filepath.Dir(file)); err != nil {
		return err
	}
	return keepNewest(file+".before-*", keepBackups)
}

// quickCheck asks SQLite whether the file is whole. It computes the journal's generated
// column, too: where that fails, a line is no JSON, and nobody who reads the journal in
// order gets past it.
func quickCheck(ctx context.Context, db *sql.DB) error {
	var says string
	err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&says)
	if code, ok := codeOf(err); ok && code == sqlError {
		return &damage{fmt.Sprintf("cannot read a line of table %q: %v", "journal", err)}
	}
	if err != nil {
		return err
	}
	if says != "ok" {
		return &damage{says}
	}
	return nil
}
