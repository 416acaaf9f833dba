package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// held is what the commit holds at a path that a service mounts.
type held struct {
	held bool
	hash string // of the content
	file string // its name when it is one file
}

// placeholders are files by which a folder is kept in Git and that hold nothing
// for a container.
func placeholder(name string) bool {
	switch name {
	case ".gitkeep", ".keep", ".gitignore":
		return true
	}
	stem := strings.TrimSuffix(strings.ToLower(name), strings.ToLower(path.Ext(name)))
	return stem == "readme"
}

// hold reads what the commit holds at p and keeps it as content by its hash.
func (r *reader) hold(p string, at place) (h held, f *fault) {
	h, known := r.mounted[p]
	if !known {
		if h, f = r.readHeld(p, at); f == nil {
			r.mounted[p] = h
		}
	}
	if told := r.tree.facts; told != nil {
		told.add(fact{about: mountedIs, path: p, held: h})
		told.spoiled = told.spoiled || f != nil
	}
	return h, f
}

func (r *reader) readHeld(p string, at place) (held, *fault) {
	from := r.tree.real(p)
	switch {
	case from.kind == symlink, from.kind == submodule, from.lost:
		return held{}, from.odd(at, "a mount needs "+p)
	case from.kind == missing:
		return held{}, nil
	case from.kind == regular:
		return r.heldFile(from.path, path.Base(p), at)
	}
	g := &gatherer{reader: r, root: from.path, at: at}
	g.folder(from.path)
	if g.fault != nil {
		return held{}, g.fault
	}
	if !g.real {
		return held{}, nil
	}
	hash, f := r.content(g.files, at)
	return held{held: true, hash: hash}, f
}

// heldFile is a file of the commit under the name that it is mounted by.
func (r *reader) heldFile(p, name string, at place) (held, *fault) {
	file, f := r.contentFile(r.tree.entry(path.Dir(p), path.Base(p)), p, name, at)
	if f != nil {
		return held{}, f
	}
	hash, f := r.content([]ring.ContentFile{file}, at)
	return held{held: true, hash: hash, file: name}, f
}

// gatherer lists the files of a folder that is mounted.
type gatherer struct {
	*reader
	root  string
	at    place
	files []ring.ContentFile
	real  bool // more than placeholders
	fault *fault
}

func (g *gatherer) folder(dir string) {
	for _, e := range g.tree.list(dir) {
		if g.fault != nil {
			return
		}
		p := path.Join(dir, e.Name())
		switch kind := kindOf(e); kind {
		case folder:
			g.folder(p)
		case regular:
			g.file(e, p)
		default:
			g.fault = odd(kind, p, g.at, "a mount needs "+g.root)
		}
	}
}

func (g *gatherer) file(e fs.DirEntry, p string) {
	if len(g.files) == g.limits.ContentFiles {
		g.fault = &fault{
			code: ring.TooLarge, place: g.at, says: fmt.Sprintf("%s holds more than %d files", g.root, g.limits.ContentFiles),
			hint: "mount a smaller folder, or put the files into an image",
		}
		return
	}
	rel := p
	if g.root != "." {
		rel = strings.TrimPrefix(p, g.root+"/")
	}
	f, fault := g.contentFile(e, p, rel, g.at)
	if fault != nil {
		g.fault = fault
		return
	}
	g.real = g.real || !placeholder(e.Name())
	g.files = append(g.files, f)
}

func (r *reader) contentFile(e fs.DirEntry, p, rel string, at place) (ring.ContentFile, *fault) {
	info, err := e.Info()
	if err != nil {
		r.tree.unreadable(p, err)
		return ring.ContentFile{}, r.tree.broken
	}
	if info.Size() > r.limits.ContentFile {
		return ring.ContentFile{}, tooMuch(p, at, r.limits.ContentFile)
	}
	fsys := r.tree.fsys
	return ring.ContentFile{
		Path: rel, Exec: info.Mode()&0o111 != 0,
		Read: func() ([]byte, error) { return fs.ReadFile(fsys, p) },
	}, nil
}

// content hashes files, sorted by path, each with its mode and bytes, and keeps
// them under that hash.
func (r *reader) content(files []ring.ContentFile, at place) (string, *fault) {
	sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
	all, left := sha256.New(), r.limits.ContentSize
	var ciphers []string
	for _, f := range files {
		body, err := f.Read()
		if err != nil {
			r.tree.unreadable(f.Path, err)
			return "", r.tree.broken
		}
		if left -= int64(len(body)); left < 0 {
			return "", tooMuch("what is mounted", at, r.limits.ContentSize)
		}
		if lfsPointer(body) {
			return "", lfs(f.Path, at)
		}
		if gitCrypted(body) {
			return "", gitCrypt(f.Path, at)
		}
		if !f.Sealed && r.encrypted(body) {
			ciphers = append(ciphers, f.Path)
		}
		f.AddTo(all, body)
	}
	hash := hex.EncodeToString(all.Sum(nil))
	if len(ciphers) > 0 {
		r.ciphers[hash] = ciphers
	}
	r.contents[hash] = ring.Content{Hash: hash, Files: files}
	return hash, nil
}

func tooMuch(what string, at place, limit int64) *fault {
	return &fault{
		code: ring.TooLarge, place: at, says: fmt.Sprintf("%s is larger than %s", what, wording.ExactSize(limit)),
		hint: "put large files into an image or a volume",
	}
}
