package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
)

// hashName is what a content's folder may be called; nothing else in the folder
// of contents is ever removed.
var hashName = regexp.MustCompile(`^[0-9a-f]{32,128}$`)

// ContentDir is the folder that holds one folder per content, by hash.
func (s *Store) ContentDir() string { return filepath.Join(s.dir, "content") }

// HasContent reports whether a content is here. It came whole; what a hand took out
// of it since, the next WriteContent puts back.
func (s *Store) HasContent(hash string) bool {
	if !hashName.MatchString(hash) {
		return false
	}
	fi, err := os.Lstat(filepath.Join(s.ContentDir(), hash))
	return err == nil && fi.IsDir()
}

// WriteContent puts a content below ContentDir, whole or not at all: regular
// files, 0444 or 0555, that a container of any user may read. Of one that is
// there already only the files that are missing are written, each whole.
func (s *Store) WriteContent(ctx context.Context, c ring.Content) error {
	if !hashName.MatchString(c.Hash) {
		return fmt.Errorf("cannot write a content under %q: not a hash", c.Hash)
	}
	if s.HasContent(c.Hash) {
		if err := s.mend(ctx, c); err != nil {
			return fmt.Errorf("cannot mend content %.8s: %w", c.Hash, err)
		}
		return nil
	}
	root := s.ContentDir()
	if err := makeDirs(root); err != nil {
		return fmt.Errorf("cannot make the folder of contents: %w", err)
	}
	tmp, err := os.MkdirTemp(root, tempMark)
	if err != nil {
		return fmt.Errorf("cannot write content %.8s: %w", c.Hash, err)
	}
	if err := fill(ctx, tmp, c.Files); err != nil {
		return errors.Join(fmt.Errorf("cannot write content %.8s: %w", c.Hash, err), os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, filepath.Join(root, c.Hash)); err != nil {
		err = errors.Join(err, os.RemoveAll(tmp))
		if s.HasContent(c.Hash) {
			return nil // somebody else was quicker
		}
		return fmt.Errorf("cannot write content %.8s: %w", c.Hash, err)
	}
	if err := disk.Sync(root); err != nil {
		return fmt.Errorf("cannot write content %.8s: %w", c.Hash, err)
	}
	return nil
}

// mend puts back the files of a content that are missing. The folder stays the
// same one, because running containers mount it.
func (s *Store) mend(ctx context.Context, c ring.Content) error {
	dir := filepath.Join(s.ContentDir(), c.Hash)
	var lost []ring.ContentFile
	for _, f := range c.Files {
		fi, err := os.Lstat(filepath.Join(dir, f.Path))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			lost = append(lost, f)
			continue
		}
		if err != nil {
			return err
		}
		if !fi.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file, although gitring wrote one; remove it", filepath.Join(dir, f.Path))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	tmp, err := os.MkdirTemp(s.ContentDir(), tempMark)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // the next Open sweeps it
	if err := fill(ctx, tmp, lost); err != nil {
		return err
	}
	for _, f := range lost {
		if err := putBack(tmp, dir, f.Path); err != nil {
			return err
		}
	}
	return nil
}

// putBack moves one file, and makes the folders on its way that are gone too.
func putBack(from, to, path string) error {
	at := to
	for _, part := range strings.Split(filepath.Dir(path), string(filepath.Separator)) {
		at = filepath.Join(at, part)
		if err := os.Mkdir(at, 0o755); err == nil {
			if err := os.Chmod(at, 0o755); err != nil { // whatever the umask
				return err
			}
		} else if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := os.Rename(filepath.Join(from, path), filepath.Join(to, path)); err != nil {
		return err
	}
	return disk.Sync(at)
}

// fill writes files below dir and has all of them on disk.
func fill(ctx context.Context, dir string, files []ring.ContentFile) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fillOne(root, f); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if err := root.Chmod(p, 0o755); err != nil { // whatever the umask
			return err
		}
		return disk.Sync(filepath.Join(dir, p))
	})
}

func fillOne(root *os.Root, f ring.ContentFile) error {
	if !fs.ValidPath(f.Path) || f.Path == "." || strings.Contains(f.Path, "\x00") {
		return errors.New("the path leaves the content")
	}
	b, err := f.Read()
	if err != nil {
		return err
	}
	if dir := filepath.Dir(f.Path); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	out, err := root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o444)
	if f.Exec {
		mode = 0o555
	}
	_, err = out.Write(b)
	if err == nil {
		err = out.Chmod(mode)
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// KeepContent removes every content that keep does not hold. Keep names what
// any instance that is here mounts, and what a plan in force or next will. It
// must not run beside a WriteContent of a hash that it does not keep.
func (s *Store) KeepContent(keep map[string]bool) error {
	entries, err := os.ReadDir(s.ContentDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot list the contents: %w", err)
	}
	for _, e := range entries {
		if keep[e.Name()] || !e.IsDir() || !hashName.MatchString(e.Name()) {
			continue
		}
		if err := s.dropContent(e.Name()); err != nil {
			return fmt.Errorf("cannot remove content %.8s: %w", e.Name(), err)
		}
	}
	return nil
}

// OpenedContents are the contents here that hold a value of the host, by hash. No
// mark is needed, and those that an earlier release wrote are known too: a hash is of
// the sealed bytes, so what lies there opened has another.
func (s *Store) OpenedContents() (map[string]bool, error) {
	entries, err := os.ReadDir(s.ContentDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the contents: %w", err)
	}
	found := map[string]bool{}
	for _, e := range entries {
		if !e.IsDir() || !hashName.MatchString(e.Name()) {
			continue
		}
		holds, err := s.holdsValue(e.Name())
		if err != nil {
			return nil, fmt.Errorf("cannot tell whether content %.8s holds a value: %w", e.Name(), err)
		}
		if holds {
			found[e.Name()] = true
		}
	}
	return found, nil
}

// holdsValue reports whether a content is a file that was opened on its way here.
func (s *Store) holdsValue(hash string) (bool, error) {
	name := filepath.Join(s.ContentDir(), hash, ring.ValueFile)
	st, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !st.Mode().IsRegular() {
		return false, err
	}
	beside, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(beside) != 1 {
		return false, err // a folder of the commit that has such a file
	}
	seen := fileState{st.Size(), st.ModTime(), st.Mode()}
	s.mu.Lock()
	plain := s.plain[hash]
	s.mu.Unlock()
	if plain == seen {
		return false, nil
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return false, err
	}
	sum := sha256.New()
	ring.ContentFile{Path: ring.ValueFile, Exec: st.Mode()&0o111 != 0}.AddTo(sum, body)
	if hex.EncodeToString(sum.Sum(nil)) != hash {
		return true, nil
	}
	s.mu.Lock()
	s.plain[hash] = seen
	s.mu.Unlock()
	return false, nil
}

// fileState is what a file was when it was read, so that it is not read again.
type fileState struct {
	size int64
	at   time.Time
	mode fs.FileMode
}

// RemoveContent removes one content; of one that is not here it does nothing. It
// must not run beside a WriteContent of the same hash.
func (s *Store) RemoveContent(hash string) error {
	if !s.HasContent(hash) {
		return nil
	}
	if err := s.dropContent(hash); err != nil {
		return fmt.Errorf("cannot remove content %.8s: %w", hash, err)
	}
	return nil
}

// dropContent takes the name away first: a content is never half there.
func (s *Store) dropContent(hash string) error {
	name := filepath.Join(s.ContentDir(), hash)
	gone := filepath.Join(s.ContentDir(), tempMark+hash)
	if err := os.Rename(name, gone); err != nil {
		return err
	}
	if err := os.RemoveAll(gone); err != nil {
		return err
	}
	return disk.Sync(s.ContentDir())
}
