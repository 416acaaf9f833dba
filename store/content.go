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

// Place is a folder that holds one folder per content, by hash. The zero value is none.
type Place struct{ dir string }

// PlaceAt is the place at a folder, which is made when the first content is written.
func PlaceAt(dir string) Place { return Place{dir} }

// Dir is the folder.
func (p Place) Dir() string { return p.dir }

// contents is the place of contents without values of the host.
func (s *Store) contents() Place { return Place{s.ContentDir()} }

// HasContent reports whether a content is here. It came whole; what a hand took out
// of it since, the next WriteContent puts back.
func (s *Store) HasContent(hash string) bool { return s.contents().Has(hash) }

// WriteContent is Write of the place of contents.
func (s *Store) WriteContent(ctx context.Context, c ring.Content) error {
	return s.contents().Write(ctx, c)
}

// KeepContent is Keep of the place of contents.
func (s *Store) KeepContent(keep map[string]bool) error { return s.contents().Keep(keep) }

// RemoveContent is Remove of the place of contents.
func (s *Store) RemoveContent(hash string) error { return s.contents().Remove(hash) }

// Has reports whether a content is here.
func (p Place) Has(hash string) bool {
	if !hashName.MatchString(hash) {
		return false
	}
	fi, err := os.Lstat(filepath.Join(p.dir, hash))
	return err == nil && fi.IsDir()
}

// Write puts a content below the place, whole or not at all: regular
// files, 0444 or 0555, that a container of any user may read. Of one that is
// there already only the files that are missing are written, each whole.
func (p Place) Write(ctx context.Context, c ring.Content) error {
	if !hashName.MatchString(c.Hash) {
		return fmt.Errorf("cannot write a content under %q: not a hash", c.Hash)
	}
	if p.Has(c.Hash) {
		if err := p.mend(ctx, c); err != nil {
			return fmt.Errorf("cannot mend content %.8s: %w", c.Hash, err)
		}
		return nil
	}
	root := p.dir
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
		if p.Has(c.Hash) {
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
func (p Place) mend(ctx context.Context, c ring.Content) error {
	dir := filepath.Join(p.dir, c.Hash)
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
	tmp, err := os.MkdirTemp(p.dir, tempMark)
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
		err = give(out, f.As, mode)
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// give sets the mode of a file, and hands it to whom it is for. The mode comes first: after
// that the daemon is its owner no more, and CAP_CHOWN alone changes no mode. Where the daemon
// may not give it away, the file stays the daemon's, for everybody to read.
func give(out *os.File, to *ring.FileOwner, otherwise fs.FileMode) error {
	if to == nil {
		return out.Chmod(otherwise)
	}
	if err := out.Chmod(fs.FileMode(to.Mode) & fs.ModePerm); err != nil {
		return err
	}
	err := out.Chown(to.UID, to.GID)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) {
		return out.Chmod(otherwise)
	}
	return err
}

// Keep removes every content that keep does not hold. Keep names what
// any instance that is here mounts, and what a plan in force or next will. It
// must not run beside a Write of a hash that it does not keep.
func (p Place) Keep(keep map[string]bool) error {
	entries, err := os.ReadDir(p.dir)
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
		if err := p.drop(e.Name()); err != nil {
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

// Remove removes one content; of one that is not here it does nothing. It
// must not run beside a Write of the same hash.
func (p Place) Remove(hash string) error {
	if !p.Has(hash) {
		return nil
	}
	if err := p.drop(hash); err != nil {
		return fmt.Errorf("cannot remove content %.8s: %w", hash, err)
	}
	return nil
}

// drop takes the name away first: a content is never half there.
func (p Place) drop(hash string) error {
	name := filepath.Join(p.dir, hash)
	gone := filepath.Join(p.dir, tempMark+hash)
	if err := os.Rename(name, gone); err != nil {
		return err
	}
	if err := os.RemoveAll(gone); err != nil {
		return err
	}
	return disk.Sync(p.dir)
}

// Hashes are those of the contents here.
func (p Place) Hashes() (all []string, err error) {
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the contents: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && hashName.MatchString(e.Name()) {
			all = append(all, e.Name())
		}
	}
	return all, nil
}

// Sweep removes what a crash left half written. It must not run beside a Write.
func (p Place) Sweep() error { return sweep(p.dir) }
