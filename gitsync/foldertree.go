package gitsync

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// FolderTree is a folder as ring.Commit.Tree describes a commit's tree: no link is
// followed, .git is not there, a repository inside it is a submodule, and modes
// are those that Git keeps. It reads what is in the folder, committed or not; but
// of a clone not what Git ignores, which no commit of it would hold: the data of
// an app that runs in it, and values that are nobody else's.
type FolderTree struct {
	root    *os.Root
	ignored *Ignore
}

// OpenFolder opens a folder; the caller closes the root.
func OpenFolder(dir string) (*FolderTree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &FolderTree{root: root, ignored: NewIgnore(root.ReadFile)}, nil
}

// Close closes the folder.
func (t *FolderTree) Close() error { return t.root.Close() }

// Open opens a regular file, a folder, or a link as the text of its target.
func (t *FolderTree) Open(name string) (fs.File, error) {
	info, err := t.lstat(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	in := treeInfo{name: path.Base(name), mode: t.mode(name, info), size: info.Size(), at: info.ModTime()}
	switch {
	case in.mode.IsDir():
		return t.openDir(name, in)
	case in.mode&fs.ModeSymlink != 0:
		target, err := t.root.Readlink(name)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		in.size = int64(len(target))
		return &treeFile{Reader: strings.NewReader(target), info: in}, nil
	case in.mode.IsRegular():
		f, err := t.root.Open(name)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: withoutPath(err)}
		}
		return &treeFile{Reader: f, Closer: f, info: in}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
}

// withoutPath is what is wrong, without the path that is said already.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// lstat refuses what a commit could not hold: a path through a link, and .git.
func (t *FolderTree) lstat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, fs.ErrInvalid
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if part == ".git" {
			return nil, fs.ErrNotExist
		}
		if i == 0 {
			continue
		}
		if t.ignored.Match(path.Join(parts[:i]...), true) {
			return nil, fs.ErrNotExist
		}
		parent, err := t.root.Lstat(path.Join(parts[:i]...))
		if err != nil {
			return nil, fs.ErrNotExist
		}
		if !parent.IsDir() || t.repository(path.Join(parts[:i]...)) {
			return nil, fs.ErrNotExist
		}
	}
	info, err := t.root.Lstat(name)
	if err != nil || t.ignored.Match(name, info.IsDir()) {
		return nil, fs.ErrNotExist
	}
	return info, nil
}

func (t *FolderTree) mode(name string, info fs.FileInfo) fs.FileMode {
	switch m := info.Mode(); {
	case m.IsDir() && name != "." && t.repository(name):
		return fs.ModeIrregular
	case m.IsDir():
		return fs.ModeDir | 0o755
	case m&fs.ModeSymlink != 0:
		return fs.ModeSymlink | 0o777
	case !m.IsRegular():
		return fs.ModeIrregular
	case m&0o100 != 0:
		return 0o755
	}
	return 0o644
}

func (t *FolderTree) repository(name string) bool {
	_, err := t.root.Lstat(path.Join(name, ".git"))
	return err == nil
}

func (t *FolderTree) openDir(name string, in treeInfo) (fs.File, error) {
	f, err := t.root.Open(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: withoutPath(err)}
	}
	defer f.Close()
	listed, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	d := &treeDir{info: in}
	for _, e := range listed {
		full := path.Join(name, e.Name())
		info, err := t.lstat(full)
		if err != nil {
			continue // .git, or gone since it was listed
		}
		d.entries = append(d.entries, fs.FileInfoToDirEntry(treeInfo{
			name: e.Name(),
			mode: t.mode(full, info), size: info.Size(), at: info.ModTime(),
		}))
	}
	return d, nil
}

type treeInfo struct {
	name string
	mode fs.FileMode
	size int64
	at   time.Time
}

func (i treeInfo) Name() string       { return i.name }
func (i treeInfo) Mode() fs.FileMode  { return i.mode }
func (i treeInfo) Size() int64        { return i.size }
func (i treeInfo) IsDir() bool        { return i.mode.IsDir() }
func (i treeInfo) ModTime() time.Time { return i.at }
func (i treeInfo) Sys() any           { return nil }

type treeFile struct {
	io.Reader
	io.Closer // nil for a link
	info      treeInfo
}

func (f *treeFile) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *treeFile) Close() error {
	if f.Closer == nil {
		return nil
	}
	return f.Closer.Close()
}

// treeDir is a folder that was read when it was opened; fs.ReadDir sorts.
type treeDir struct {
	info    treeInfo
	entries []fs.DirEntry
	next    int
}

func (d *treeDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *treeDir) Close() error               { return nil }

func (d *treeDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: fs.ErrInvalid}
}

// ReadDir is as fs.ReadDirFile asks for.
func (d *treeDir) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := d.entries[d.next:]
	if n <= 0 {
		d.next = len(d.entries)
		return rest, nil
	}
	if len(rest) == 0 {
		return nil, io.EOF
	}
	rest = rest[:min(n, len(rest))]
	d.next += len(rest)
	return rest, nil
}
