package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gitring/gitring/disk"
)

// prevSuffix is of the database of before an upgrade.
const prevSuffix = ".prev"

// Copy is a consistent copy of a state directory, in a folder inside it. It holds the database,
// the anchors, the marks of jobs and the keys. gitring may run meanwhile. The caller removes
// it; what a crash leaves goes with the next Open of dir.
func Copy(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the state directory: %w", err)
	}
	if fi, err := os.Stat(filepath.Join(dir, fileName)); err != nil {
		return "", fmt.Errorf("cannot copy the database: %w", err)
	} else if err := hasRoom(dir, uint64(fi.Size())+leastRoom); err != nil { //nolint:gosec // no size is negative
		return "", err
	}
	to, err := os.MkdirTemp(dir, "rehearsal"+tempMark) // 0700
	if err != nil {
		return "", fmt.Errorf("cannot copy the state directory: %w", err)
	}
	if err := copyInto(ctx, dir, to); err != nil {
		return "", errors.Join(err, os.RemoveAll(to))
	}
	return to, nil
}

func copyInto(ctx context.Context, dir, to string) error {
	copied, err := copyDatabase(ctx, dir)
	if err != nil {
		return err
	}
	if err := os.Rename(copied, filepath.Join(to, fileName)); err != nil {
		return fmt.Errorf("cannot copy the database: %w", err)
	}
	for _, pattern := range savedFiles {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				return err
			}
			body, err := os.ReadFile(name)
			if errors.Is(err, fs.ErrNotExist) || strings.Contains(rel, tempMark) {
				continue // a mark went meanwhile, or is half made
			}
			if err == nil {
				err = os.MkdirAll(filepath.Dir(filepath.Join(to, rel)), 0o700)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(to, rel), body, 0o600)
			}
			if err != nil {
				return fmt.Errorf("cannot copy %s: %w", rel, err)
			}
		}
	}
	return nil
}

// KeepPrev leaves a whole copy of the database as gitring.db.prev, in place of an earlier one.
// No gitring may run on dir: what it recorded later would be lost when the copy comes back.
func KeepPrev(ctx context.Context, dir string) error {
	tmp, err := copyDatabase(ctx, dir)
	if err != nil {
		return err
	}
	if err := errors.Join(ownedAs(dir, tmp), disk.Sync(tmp)); err != nil {
		return errors.Join(fmt.Errorf("cannot keep the database: %w", err), os.Remove(tmp))
	}
	if err := os.Rename(tmp, filepath.Join(dir, fileName+prevSuffix)); err != nil {
		return fmt.Errorf("cannot keep the database: %w", err)
	}
	// Root may have made what lies beside a database that was not closed.
	for _, beside := range []string{"-wal", "-shm"} {
		if err := ownedAs(dir, filepath.Join(dir, fileName+beside)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot keep the database: %w", err)
		}
	}
	return disk.Sync(dir)
}

// PutBackPrev has the copy of KeepPrev be the database again. The copy stays. No gitring may
// run on dir. It may be repeated.
func PutBackPrev(dir string) error {
	prev := filepath.Join(dir, fileName+prevSuffix)
	body, err := os.ReadFile(prev)
	if err != nil {
		return fmt.Errorf("cannot put the database back: %w", err)
	}
	tmp := filepath.Join(dir, "prev"+tempMark+fmt.Sprint(os.Getpid()))
	if err := disk.WriteWhole(tmp, "prev"+tempMark, body, 0o600); err != nil {
		return fmt.Errorf("cannot put the database back: %w", err)
	}
	if err := ownedAs(dir, tmp); err != nil {
		return fmt.Errorf("cannot put the database back: %w", err)
	}
	// SQLite would read what lies beside the other database into this one.
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Remove(filepath.Join(dir, fileName+beside)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot put the database back: %w", err)
		}
	}
	if err := os.Rename(tmp, filepath.Join(dir, fileName)); err != nil {
		return fmt.Errorf("cannot put the database back: %w", err)
	}
	return disk.Sync(dir)
}
