package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// entryKind is what the commit holds at a path.
type entryKind int

const (
	missing entryKind = iota
	regular
	folder
	symlink
	submodule
)

// tree reads a commit's tree: folders once each. It follows symlinks itself, under root.
type tree struct {
	fsys    fs.FS
	root    string // the source's path
	limits  Limits
	folders map[string][]fs.DirEntry
	bodies  map[string][]byte // manifests, which several services may name
	files   int
	size    int64
	broken  *fault
	own     share
	facts   *facts // what the app that is read has asked; nil where nobody remembers
}

// share is what one app has read of the manifests. The app may read half of what the
// commit may hold: whoever writes one of several apps could refuse all others by its size.
type share struct {
	shared bool // there are other apps
	files  int
	size   int64
}

// next begins another app. shared says that the commit has several.
func (t *tree) next(shared bool) { t.own = share{shared: shared} }

// over is the fault of an app that has read more than its share.
func (t *tree) over(p string) *fault {
	f := &fault{code: ring.TooLarge, place: place{file: p}, hint: "read fewer and smaller files in one app, or make it a source of its own"}
	switch files, bytes := t.limits.Files/2, t.limits.TotalSize/2; {
	case !t.own.shared:
		return nil
	case t.own.files > files:
		f.says = fmt.Sprintf("the app reads more than %d manifest files, half of what the commit may have", files)
	case t.own.size > bytes:
		f.says = fmt.Sprintf("the manifests that the app reads are larger than %s together, half of what the commit may have", wording.ExactSize(bytes))
	default:
		return nil
	}
	return f
}

func newTree(fsys fs.FS, root string, l Limits) *tree {
	return &tree{fsys: fsys, root: root, limits: l, folders: map[string][]fs.DirEntry{}, bodies: map[string][]byte{}}
}

// fault is what makes the rest of the commit not worth reading: an object that
// cannot be read.
func (t *tree) fault() *fault { return t.broken }

func (t *tree) unreadable(p string, err error) {
	if t.broken != nil {
		return
	}
	t.broken = &fault{
		code: ring.Unreadable, place: place{file: p},
		says: fmt.Sprintf("%s cannot be read from the local mirror: %v", p, err),
		hint: "gitring sync fetches again; see the daemon's log",
	}
}

// list is the entries of a folder by name; none for a folder that is not there.
func (t *tree) list(dir string) []fs.DirEntry {
	l := t.entries(dir)
	if t.facts != nil {
		t.facts.add(fact{about: listed, path: dir, says: listSaid(l)})
	}
	return l
}

func (t *tree) entries(dir string) []fs.DirEntry {
	if l, ok := t.folders[dir]; ok {
		return l
	}
	l, err := fs.ReadDir(t.fsys, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.unreadable(dir, err)
	}
	t.folders[dir] = l
	return l
}

func (t *tree) entry(dir, name string) (e fs.DirEntry) {
	for _, one := range t.entries(dir) {
		if one.Name() == name {
			e = one
			break
		}
	}
	if t.facts != nil {
		t.facts.add(fact{about: entryIs, path: path.Join(dir, name), says: kindSaid(e)})
	}
	return e
}

// look says what the commit holds at p, a clean path inside it. A symlink or a
// submodule on the way is what it is, at the path where it stands.
func (t *tree) look(p string) (entryKind, string) {
	if p == "." {
		return folder, p
	}
	at, kind := ".", folder
	for part := range strings.SplitSeq(p, "/") {
		if kind != folder {
			return missing, p // a file stands where a folder is asked for
		}
		e := t.entry(at, part)
		if e == nil {
			return missing, p
		}
		at = path.Join(at, part)
		if kind = kindOf(e); kind == symlink || kind == submodule {
			return kind, at
		}
	}
	return kind, p
}

func kindOf(e fs.DirEntry) entryKind {
	switch m := e.Type(); {
	case m.IsDir():
		return folder
	case m&fs.ModeSymlink != 0:
		return symlink
	case m.IsRegular():
		return regular
	}
	return submodule // fs.ModeIrregular; nothing else is in a Git tree
}

// odd is the refusal of a symlink where none is followed, or of a submodule.
func odd(kind entryKind, at string, from place, what string) *fault {
	if from.file == "" {
		from = place{file: at}
	}
	if kind == symlink {
		return &fault{
			code: ring.SymlinkInManifest, place: from, says: fmt.Sprintf("%s: %s is a symlink", what, at),
			hint: "commit the file itself; no symlink is followed as the source's path, or inside of a folder that is mounted",
		}
	}
	return &fault{
		code: ring.Submodule, place: from, says: fmt.Sprintf("%s: %s is a submodule", what, at),
		hint: "commit the files themselves; gitring fetches no submodule",
	}
}

// manifest reads one manifest file whole. ok is false without a fault when the
// commit does not hold it. from is where it was asked for; the zero place means
// the file itself.
func (t *tree) manifest(p string, from place) (body []byte, ok bool, f *fault) {
	body, ok, f = t.openManifest(p, from)
	if t.facts != nil {
		t.facts.add(fact{about: bodyIs, path: p, says: bodySaid(body, ok)})
		t.facts.spoiled = t.facts.spoiled || f != nil
	}
	return body, ok, f
}

func (t *tree) openManifest(p string, from place) (body []byte, ok bool, _ *fault) {
	r := t.real(p)
	if body, ok := t.bodies[r.path]; ok && r.kind == regular {
		return body, true, nil
	}
	switch {
	case t.broken != nil:
		return nil, false, t.broken
	case r.kind == symlink, r.kind == submodule, r.lost:
		return nil, false, r.odd(from, "gitring reads "+p)
	case r.kind == missing:
		return nil, false, nil
	case r.kind == folder:
		return nil, false, &fault{
			code: ring.BadValue, place: place{file: p}, says: p + " is a folder",
			hint: "put a file there",
		}
	}
	t.own.files++
	if f := t.over(p); f != nil {
		return nil, false, f
	}
	if t.files++; t.files > t.limits.Files {
		return nil, false, &fault{
			code: ring.TooLarge, place: place{file: p}, says: fmt.Sprintf("the commit has more than %d manifest files, and the apps before this one read them", t.limits.Files),
			hint: moreOfCommit("content.files"),
		}
	}
	body, err := t.read(r.path, t.limits.FileSize)
	if err != nil {
		t.unreadable(p, err)
		return nil, false, t.broken
	}
	t.own.size += int64(len(body))
	if f := t.over(p); f != nil {
		return nil, false, f
	}
	t.size += int64(len(body))
	if f := t.weigh(p, body); f != nil {
		return nil, false, f
	}
	t.bodies[r.path] = body
	return body, true, nil
}

// moreOfCommit is the way out where the apps of a commit come to more than they may together.
func moreOfCommit(limit string) string {
	return "raise limits." + limit + " in the configuration, or split the repository into sources by path"
}

func (t *tree) weigh(p string, body []byte) *fault {
	if int64(len(body)) > t.limits.FileSize {
		return &fault{
			code: ring.TooLarge, place: place{file: p}, says: fmt.Sprintf("%s is larger than %s", p, wording.ExactSize(t.limits.FileSize)),
			hint: "split it: a manifest is small",
		}
	}
	if t.size > t.limits.TotalSize {
		return &fault{
			code: ring.TooLarge, place: place{file: p}, says: fmt.Sprintf("the manifests of the commit are larger than %s together, with those of the apps before this one", wording.ExactSize(t.limits.TotalSize)),
			hint: moreOfCommit("content.total_size"),
		}
	}
	if lfsPointer(body) {
		return lfs(p, place{file: p, line: 1})
	}
	if gitCrypted(body) {
		return gitCrypt(p, place{file: p, line: 1})
	}
	return nil
}

// read gives at most one byte more than limit.
func (t *tree) read(p string, limit int64) ([]byte, error) {
	f, err := t.fsys.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// lfsPointer knows a pointer by its first line, which Git LFS fixes.
func lfsPointer(body []byte) bool {
	return bytes.HasPrefix(body, []byte("version https://git-lfs.github.com/spec/"))
}

func lfs(p string, at place) *fault {
	return &fault{
		code: ring.LfsPointer, place: at, says: p + " is a Git LFS pointer, not the file",
		hint: "git lfs untrack it and commit the file itself",
	}
}

// gitCrypted knows what git-crypt wrote by its first bytes. Its key is a person's, and no host's.
func gitCrypted(body []byte) bool { return bytes.HasPrefix(body, []byte("\x00GITCRYPT\x00")) }

func gitCrypt(p string, at place) *fault {
	return &fault{
		code: ring.SecretForm, place: at, says: p + " is encrypted by git-crypt, whose key no host has",
		hint: "encrypt it with SOPS instead",
	}
}
