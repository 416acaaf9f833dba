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

// migrate brings the database up to date, all or nothing, and says whether it
// was new. A database that already held something is copied first.
func migrate(ctx context.Context, db *gorm.DB, file string, all []migration) (fresh bool, err error) {
	have, err := applied(ctx, db)
	if err != nil {
		return false, fmt.Errorf("cannot read which migrations ran: %w", err)
	}
	pending := pendingOf(all, have)
	if len(have) > 0 && len(pending) > 0 {
		if err := backup(ctx, db, file, pending[0].ID); err != nil {
			return false, fmt.Errorf("cannot copy the database before migrating it: %w", err)
		}
	}
	var steps []*gormigrate.Migration
	for _, m := range all {
		steps = append(steps, &gormigrate.Migration{ID: m.ID, Migrate: func(tx *gorm.DB) error {
			if err := tx.Exec(m.SQL).Error; err != nil {
				return fmt.Errorf("cannot run migration %s: %w", m.ID, err)
			}
			return nil
		}})
	}
	opts := *gormigrate.DefaultOptions
	opts.UseTransaction, opts.ValidateUnknownMigrations = true, true
	err = gormigrate.New(db.WithContext(ctx), &opts, steps).Migrate()
	if errors.Is(err, gormigrate.ErrUnknownPastMigration) {
		return false, fmt.Errorf("cannot use %s: a newer gitring has written it; run that one, or start from the copy %s.before-… that it made", file, filepath.Base(file))
	}
	return len(have) == 0, err
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
	if err := syncFile(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, name); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(file)); err != nil {
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
