package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/gitring/gitring/disk"
)

// tempMark is in the name of everything that is not whole yet; what a crash
// left of it is removed at the next Open. No name of ours holds it.
const tempMark = ".tmp~"

// writeWhole puts v as JSON under name: after a crash the file is the old or
// the new one, never a part. When it returns nil the file is on disk.
func writeWhole(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	dir := filepath.Dir(name)
	if err := makeDirs(dir); err != nil {
		return err
	}
	return disk.WriteWhole(name, tempMark, append(b, '\n'), 0o600)
}

// makeDirs makes a folder of ours and those above it, and has each on disk.
func makeDirs(dir string) error {
	if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
		return nil
	}
	if err := makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return disk.Sync(filepath.Dir(dir))
}

// sweep removes what a crash left half-made in the folders that match.
func sweep(patterns ...string) error {
	for _, p := range patterns {
		left, err := filepath.Glob(filepath.Join(p, "*"+tempMark+"*"))
		if err != nil {
			return err
		}
		for _, name := range left {
			if err := os.RemoveAll(name); err != nil {
				return fmt.Errorf("cannot remove a leftover: %w", err)
			}
		}
	}
	return nil
}

// keepNewest removes all databases that match, but for the n written last, each
// with its WAL.
func keepNewest(pattern string, n int) error {
	names, err := newest(pattern)
	if err != nil {
		return err
	}
	for _, name := range names[min(n, len(names)):] {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(name + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// newest are the databases that match, the one written last first.
func newest(pattern string) ([]string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var names []string
	age := map[string]int64{}
	for _, name := range found {
		if strings.HasSuffix(name, "-wal") || strings.HasSuffix(name, "-shm") || strings.Contains(name, tempMark) {
			continue
		}
		names = append(names, name)
		fi, err := os.Lstat(name)
		if err != nil {
			return nil, err
		}
		age[name] = fi.ModTime().UnixNano()
	}
	sort.Slice(names, func(i, j int) bool { return age[names[i]] > age[names[j]] })
	return names, nil
}

// element says why s cannot be one element of a path of ours.
func element(what, s string) error {
	if !fs.ValidPath(s) || s == "." || strings.ContainsAny(s, "/\x00") || strings.Contains(s, tempMark) || len(s) > 200 {
		return fmt.Errorf("cannot use %q as the name of a file: not a %s", s, what)
	}
	return nil
}
