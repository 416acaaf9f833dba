package gitsync

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gitring/gitring/ring"
)

// treeObjects is the store a tree reads from.
type treeObjects interface {
	Objects
	// size is the length of an object as the store says it, without reading it.
	size(ring.SHA) (int64, error)
	// spoiled is told when the store held something else than it should.
	spoiled(error)
}

// cachedFolders bounds the folders a tree keeps parsed.
const cachedFolders = 64

// tree is a commit's tree as a read-only file system. Nothing is read before it
// is asked for; every object's hash is compared when it is. Links are not
// followed. Safe for use by several goroutines.
type tree struct {
	objects treeObjects
	root    ring.SHA
	most    int64 // bytes of one file

	mu      sync.Mutex // guards folders; not held while reading
	folders map[ring.SHA]folder
}

var (
	_ fs.ReadDirFS  = (*tree)(nil)
	_ fs.ReadFileFS = (*tree)(nil)
	_ fs.StatFS     = (*tree)(nil)
	_ fs.ReadLinkFS = (*tree)(nil)
)

func newTree(o treeObjects, root ring.SHA, lim Limits) *tree {
	return &tree{objects: o, root: root, most: lim.Blob, folders: map[ring.SHA]folder{}}
}

// folder is one parsed tree object, by name as people sort it.
type folder []node

// node is a file, folder, link or submodule of a tree.
type node struct {
	name string
	mode fs.FileMode
	git  uint32 // the mode as Git has it: several may be one for a file system
	sha  ring.SHA
}

// find is by binary search.
func (f folder) find(name string) (node, bool) {
	i, ok := slices.BinarySearchFunc(f, name, func(n node, name string) int { return strings.Compare(n.name, name) })
	if !ok {
		return node{}, false
	}
	return f[i], true
}

// Open reads a regular file or link whole; a folder when it is listed.
func (t *tree) Open(name string) (fs.File, error) {
	n, err := t.lookup("open", name)
	if err != nil {
		return nil, err
	}
	if n.mode.IsDir() {
		list, err := t.list(n.sha)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return &openFolder{info: t.info(n), path: name, entries: t.entries(list)}, nil
	}
	b, err := t.content(n)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &openFile{info: info{node: n, size: int64(len(b))}, Reader: strings.NewReader(string(b))}, nil
}

// ReadFile is the content of a file, or the target of a link.
func (t *tree) ReadFile(name string) ([]byte, error) {
	n, err := t.lookup("read", name)
	if err != nil {
		return nil, err
	}
	b, err := t.content(n)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return b, nil
}

// ReadDir lists a folder by name.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.lookup("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a folder")}
	}
	list, err := t.list(n.sha)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return t.entries(list), nil
}

// Stat does not follow links. The size is what the store says; the content is
// checked when it is read.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	n, err := t.lookup("stat", name)
	if err != nil {
		return nil, err
	}
	in, err := t.sized(n)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return in, nil
}

// Lstat is Stat.
func (t *tree) Lstat(name string) (fs.FileInfo, error) { return t.Stat(name) }

// ReadLink is the target of a link.
func (t *tree) ReadLink(name string) (string, error) {
	n, err := t.lookup("readlink", name)
	if err != nil {
		return "", err
	}
	if n.mode.Type() != fs.ModeSymlink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	b, err := t.content(n)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(b), nil
}

// lookup walks down from the root.
func (t *tree) lookup(op, name string) (node, error) {
	if !fs.ValidPath(name) {
		return node{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n := node{name: path.Base(name), mode: fs.ModeDir | 0o555, sha: t.root}
	if name == "." {
		return n, nil
	}
	for step := range strings.SplitSeq(name, "/") {
		if !n.mode.IsDir() {
			return node{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		list, err := t.list(n.sha)
		if err != nil {
			return node{}, &fs.PathError{Op: op, Path: name, Err: err}
		}
		var ok bool
		if n, ok = list.find(step); !ok {
			return node{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
	}
	return n, nil
}

// list reads one folder.
func (t *tree) list(sha ring.SHA) (folder, error) {
	t.mu.Lock()
	list, ok := t.folders[sha]
	t.mu.Unlock()
	if ok {
		return list, nil
	}
	body, err := t.object(sha, "tree")
	if err != nil {
		return nil, err
	}
	if list, err = parseFolder(body); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.folders) >= cachedFolders {
		clear(t.folders)
	}
	t.folders[sha] = list
	return list, nil
}

// parseFolder takes only what a checkout could hold: a name that could lead out
// of its folder, or into .git, or stands twice, makes the folder unreadable.
func parseFolder(body []byte) (folder, error) {
	entries, err := entriesOf(body)
	if err != nil {
		return nil, err
	}
	list := make(folder, len(entries))
	for i, e := range entries {
		if err := checkName(e.name); err != nil {
			return nil, err
		}
		mode, err := modeOf(e.mode)
		if err != nil {
			return nil, fmt.Errorf("cannot read tree: %q: %w", e.name, err)
		}
		list[i] = node{name: e.name, mode: mode, git: e.mode, sha: ring.SHA(e.hash.String())}
	}
	slices.SortFunc(list, func(a, b node) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(list); i++ {
		if list[i].name == list[i-1].name {
			return nil, fmt.Errorf("cannot read tree: %q is in it twice", list[i].name)
		}
	}
	return list, nil
}

func checkName(name string) error {
	switch {
	case name == "", name == ".", name == "..", strings.EqualFold(name, ".git"), strings.Contains(name, "/"):
		return fmt.Errorf("cannot read tree: the name %q is not allowed", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("cannot read tree: the name %q is not UTF-8", name)
	}
	return nil
}

func modeOf(git uint32) (fs.FileMode, error) {
	switch git {
	case modeDir:
		return fs.ModeDir | 0o555, nil
	case 0o100644, 0o100664: // the second is of very old commits
		return 0o444, nil
	case 0o100755:
		return 0o555, nil
	case modeLink:
		return fs.ModeSymlink | 0o444, nil
	case modeGitlink:
		return fs.ModeIrregular | 0o444, nil
	}
	return 0, fmt.Errorf("mode %o is unknown", git)
}

// content is a file's bytes or a link's target.
func (t *tree) content(n node) ([]byte, error) {
	switch {
	case n.mode.IsDir():
		return nil, errors.New("is a folder")
	case n.mode&fs.ModeIrregular != 0:
		return nil, errors.New("is a submodule, which is not part of the commit")
	}
	size, err := t.size(n.sha)
	if err != nil {
		return nil, err
	}
	if size > t.most {
		return nil, fmt.Errorf("has %d bytes, at most %d are read: %w", size, t.most, errTooBig)
	}
	return t.object(n.sha, "blob")
}

func (t *tree) object(sha ring.SHA, kind string) ([]byte, error) {
	b, err := checked(t.objects, sha, kind)
	return b, t.told(err)
}

func (t *tree) size(sha ring.SHA) (int64, error) {
	n, err := t.objects.size(sha)
	return n, t.told(err)
}

// told passes an error on. A verified commit's objects have to be there, so one
// that is missing or not itself is a fault of the store.
func (t *tree) told(err error) error {
	if errors.Is(err, ErrMissing) || errors.Is(err, errDamaged) {
		t.objects.spoiled(err)
	}
	return err
}

func (t *tree) entries(list folder) []fs.DirEntry {
	out := make([]fs.DirEntry, len(list))
	for i, n := range list {
		out[i] = dirEntry{t, n}
	}
	return out
}

// info is of a node whose size does not matter: a folder.
func (t *tree) info(n node) info { return info{node: n} }

func (t *tree) sized(n node) (info, error) {
	if n.mode.IsDir() || n.mode&fs.ModeIrregular != 0 {
		return t.info(n), nil
	}
	size, err := t.size(n.sha)
	return info{node: n, size: size}, err
}

// dirEntry asks for the size only when it is asked.
type dirEntry struct {
	t *tree
	n node
}

func (d dirEntry) Name() string               { return d.n.name }
func (d dirEntry) IsDir() bool                { return d.n.mode.IsDir() }
func (d dirEntry) Type() fs.FileMode          { return d.n.mode.Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d.t.sized(d.n) }
func (d dirEntry) String() string             { return fs.FormatDirEntry(d) }

// info has no time: Git keeps none for a file.
type info struct {
	node
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
func (i info) String() string     { return fs.FormatFileInfo(i) }

type openFile struct {
	info
	*strings.Reader
}

func (f *openFile) Size() int64                { return f.info.size }
func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openFolder struct {
	info
	path    string
	entries []fs.DirEntry
}

func (f *openFolder) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFolder) Close() error               { return nil }
func (f *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.path, Err: errors.New("is a folder")}
}

// ReadDir hands the entries out in order, as fs.ReadDirFile asks.
func (f *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(f.entries)
	} else if len(f.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.entries))
	out := f.entries[:n:n]
	f.entries = f.entries[n:]
	return out, nil
}
