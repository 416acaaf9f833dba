package runtime

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gitring/gitring/ring"
)

// seeds writes the seeded files of an action's service before its instance
// starts: not when it is created, because the instance before it may still run on the
// folder; and again when a kept one is started, because the files are those of the
// version that failed.
func (d *Docker) seeds(a ring.Action) (told []string, err error) {
	if a.Of == nil || a.Want == nil {
		return nil, nil
	}
	for _, m := range a.Want.Spec.Mounts {
		if m.Kind != ring.MountSeed {
			continue
		}
		more, err := d.seed(cmp.Or(a.Of.DataRoot, d.opts.DataRoot), m)
		told = append(told, more...)
		if err != nil {
			return told, err
		}
	}
	return told, nil
}

// seed writes the files of a mount's content into its data folder, which is
// there: each whole or not at all, and only where nobody but us wrote since. A
// committed file that differs from what was written last was changed by the app; it
// stays, and is told. What left the commit stays too. Repeated after a crash at
// any moment it does the rest.
func (d *Docker) seed(root string, m ring.Mount) (told []string, err error) {
	d.seeding.Lock() // two services may have one folder
	defer d.seeding.Unlock()
	told, err = d.sow(root, m)
	if err != nil {
		return told, &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("cannot seed %s: %w", filepath.Join(root, m.Source), err)}
	}
	return told, nil
}

func (d *Docker) sow(root string, m ring.Mount) (told []string, err error) {
	if d.opts.SeedDir == "" {
		return nil, errors.New("there is no folder to note it in")
	}
	if err := haveContent(d.opts.ContentDir, ring.Mount{Source: m.Seed}); err != nil {
		return nil, err
	}
	from, err := os.OpenRoot(filepath.Join(d.opts.ContentDir, m.Seed))
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // opened to read only
	to, err := openFolder(root, m.Source)
	if err != nil {
		return nil, err
	}
	defer func() { _ = to.Close() }() // its files are closed by themselves
	b, err := newBed(d.opts.SeedDir, filepath.Join(root, m.Source), from, to)
	if err != nil {
		return nil, err
	}
	return b.sow()
}

// openFolder opens a folder below root, no part of the way a symlink.
func openFolder(root, rel string) (*os.Root, error) {
	at, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(filepath.Clean(rel), "/") {
		if part == "." {
			continue
		}
		next, err := step(at, part)
		_ = at.Close() // opened to step on only
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// step opens a folder directly below at. What was looked at is what is open: a
// symlink put there in between is found out.
func step(at *os.Root, name string) (*os.Root, error) {
	seen, err := at.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, fmt.Errorf("%s is no folder", filepath.Join(at.Name(), name))
	}
	next, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	is, err := next.Stat(".")
	if err == nil && !os.SameFile(seen, is) {
		err = fmt.Errorf("%s was replaced meanwhile", filepath.Join(at.Name(), name))
	}
	if err != nil {
		_ = next.Close() // opened to look only
		return nil, err
	}
	return next, nil
}

// A bed is one seeded folder while it is being sown.
type bed struct {
	from, to *os.Root
	folder   string // absolute, for messages
	notes    *seedNotes
	told     []string
}

func newBed(dir, folder string, from, to *os.Root) (*bed, error) {
	b := &bed{from: from, to: to, folder: folder}
	var err error
	if b.notes, err = readSeedNotes(dir, folder); err != nil {
		return nil, err
	}
	if b.notes.lost != "" {
		b.told = append(b.told, b.notes.lost)
	}
	// A person who made an empty folder means a new beginning.
	if f, err := glance(folder); err != nil {
		return nil, err
	} else if f == empty {
		b.notes.Files = map[string][]string{}
	}
	return b, nil
}

// sow notes what it is about to write before it writes, so that a file written
// just before a crash is known as ours whatever commit comes next.
func (b *bed) sow() (told []string, err error) {
	var due []seedling
	err = fs.WalkDir(b.from.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		s, err := b.look(p)
		if err == nil && s.due {
			due = append(due, s)
		}
		return err
	})
	if err != nil {
		return b.told, err
	}
	for _, s := range due {
		b.notes.Files[s.path] = append(b.notes.Files[s.path], s.want)
	}
	if err := b.notes.write(); err != nil {
		return b.told, err
	}
	for _, s := range due {
		if err := b.plant(s); err != nil {
			return b.told, fmt.Errorf("%s: %w", s.path, err)
		}
		b.notes.Files[s.path] = []string{s.want}
	}
	if len(due) == 0 {
		return b.told, nil
	}
	return b.told, b.notes.write()
}

// A seedling is one file of the content.
type seedling struct {
	path string
	want string // hash of its bytes
	due  bool
}

// look decides about one file: rules in order of precedence.
func (b *bed) look(p string) (seedling, error) {
	s := seedling{path: p}
	var err error
	if s.want, err = sum(b.from, p); err != nil {
		return s, err
	}
	wrote := b.notes.Files[p]
	have, err := b.have(p)
	var odd *oddFile
	switch {
	case errors.As(err, &odd):
		b.tell(p, odd.what)
		return s, nil
	case err != nil:
		return s, err
	case have == s.want:
		b.notes.Files[p] = []string{s.want}
	case have == "" && len(wrote) == 0:
		b.notes.Files[p] = []string{""} // until it is there, its absence is ours
		s.due = true
	case slices.Contains(wrote, have):
		s.due = true
	case have == "":
		b.tell(p, "was removed by the app")
	case len(wrote) == 0:
		b.tell(p, "was there before and is not the commit's")
	default:
		b.tell(p, "was changed by the app")
	}
	return s, nil
}

func (b *bed) tell(p, what string) {
	b.told = append(b.told, fmt.Sprintf("%s %s; it stays as it is", filepath.Join(b.folder, p), what))
}

// oddFile is something at the place of a file that is no regular file.
type oddFile struct{ what string }

func (o *oddFile) Error() string { return o.what }

// have is the hash of what the data folder has at p, "" for nothing.
func (b *bed) have(p string) (string, error) {
	dir, err := b.dir(path.Dir(p), false)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = dir.Close() }() // opened to look only
	name := path.Base(p)
	switch st, err := dir.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !st.Mode().IsRegular():
		return "", &oddFile{"is no regular file"}
	}
	return sum(dir, name)
}

// dir opens a folder below the data folder; with make, one that is missing is
// made, and belongs to whoever the folder around it belongs to.
func (b *bed) dir(rel string, make bool) (*os.Root, error) {
	at, err := b.to.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(rel, "/") {
		if part == "." {
			continue
		}
		next, err := b.enter(at, part, make)
		_ = at.Close() // opened to step on only
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func (b *bed) enter(at *os.Root, name string, make bool) (*os.Root, error) {
	st, err := at.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && make:
		if err := at.Mkdir(name, 0o755); err != nil {
			return nil, err
		}
		uid, gid, err := owner(at, ".")
		if err != nil {
			return nil, err
		}
		if err := errors.Join(at.Chmod(name, 0o755), at.Lchown(name, uid, gid)); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case !st.IsDir():
		return nil, &oddFile{"is below something that is no folder"}
	}
	return step(at, name)
}

// plant writes one file: beside its place, to the disk, then over it.
func (b *bed) plant(s seedling) error {
	dir, err := b.dir(path.Dir(s.path), true)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // synced below
	name, beside := path.Base(s.path), besideOf(s.path)
	// One of an earlier try; nobody else makes a name like it.
	if err := dir.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := b.fill(s.path, dir, name, beside); err != nil {
		return errors.Join(err, dir.Remove(beside))
	}
	if err := dir.Rename(beside, name); err != nil {
		return errors.Join(err, dir.Remove(beside))
	}
	return syncRoot(dir)
}

// besideOf is the name of a file while it is written, always the same one: what
// a crash left is found by the next try.
func besideOf(p string) string {
	tag := sha256.Sum256([]byte(p))
	return ".gitring-seed-" + hex.EncodeToString(tag[:8])
}

// fill copies a file of the content to beside, which has the owner of what it
// takes the place of: the app may have given the folder to its own user.
func (b *bed) fill(from string, dir *os.Root, name, beside string) error {
	in, err := b.from.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // opened to read only
	st, err := in.Stat()
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if st.Mode()&0o111 != 0 {
		mode = 0o755
	}
	uid, gid, err := owner(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		uid, gid, err = owner(dir, ".")
	}
	if err != nil {
		return err
	}
	out, err := dir.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = errors.Join(out.Chown(uid, gid), out.Chmod(mode), out.Sync())
	}
	return errors.Join(err, out.Close())
}

// sum is the hash of a regular file's bytes. O_NONBLOCK keeps a pipe that was
// put there meanwhile from holding us up.
func sum(dir *os.Root, name string) (string, error) {
	seen, err := dir.Lstat(name)
	if err != nil {
		return "", err
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // opened to read only
	is, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !seen.Mode().IsRegular() || !os.SameFile(seen, is) {
		return "", fmt.Errorf("%s is no regular file", name)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func syncRoot(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
