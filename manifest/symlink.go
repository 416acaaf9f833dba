package manifest

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/gitring/gitring/ring"
)

// mostLinks is how many links one path may lead over; Linux has 40.
const mostLinks = 8

// longestTarget is the longest path that a link can have on Linux.
const longestTarget = 4096

const leadsOut = "leads out of the source's path"

// resolved is what a path of the commit leads to, as a checkout would open it. Links
// are followed in the tree, and only under the source's path.
type resolved struct {
	path string    // without links
	kind entryKind // symlink: a link that is not followed
	link string    // the first link on the way, "" without one
	via  []string  // all of them
	why  string    // a link is not followed
	lost bool      // a link leads to what the commit does not hold
}

// real follows the links of a clean path inside the commit. Whoever writes a link could
// copy what it leads to, so it grants nothing; see docs/decisions/0013.
func (t *tree) real(p string) resolved {
	r := resolved{path: ".", kind: folder}
	left, links, behind := strings.Split(p, "/"), 0, 0 // behind is what p has after the link
	for len(left) > 0 {
		part := left[0]
		switch {
		case part == "" || part == ".":
			left = left[1:]
			continue
		case r.kind != folder:
			return t.missing(r, left, behind)
		case part == ".." && r.path == ".":
			return r.not(leadsOut)
		case part == "..":
			r.path, left = path.Dir(r.path), left[1:]
			continue
		}
		e := t.entry(r.path, part)
		if e == nil {
			return t.missing(r, left, behind)
		}
		at := path.Join(r.path, part)
		left = left[1:]
		switch kind := kindOf(e); kind {
		case submodule:
			r.path, r.kind = at, submodule
			return r
		case folder, regular:
			r.path, r.kind = at, kind
			continue
		}
		if r.link == "" {
			r.link = at
		}
		r.via = append(r.via, at)
		if links == 0 || len(left) < behind {
			behind = len(left)
		}
		if links++; links > mostLinks {
			return r.not(fmt.Sprintf("leads in a circle, or over more than %d links", mostLinks))
		}
		target, err := t.leadsTo(at)
		switch {
		case err != nil:
			t.unreadable(at, err)
			return r.not("cannot be read")
		case target == "", len(target) > longestTarget:
			return r.not("leads nowhere")
		case path.IsAbs(target):
			return r.not("leads to an absolute path")
		case !within(t.root, at):
			return r.not(leadsOut)
		}
		left = append(strings.Split(target, "/"), left...)
	}
	if r.link != "" && !within(t.root, r.path) {
		return r.not(leadsOut)
	}
	return r
}

// missing is a path that the commit does not hold. What is left of it may hold "..".
func (t *tree) missing(r resolved, left []string, behind int) resolved {
	r.path, r.kind, r.lost = path.Join(r.path, path.Join(left...)), missing, r.link != "" && len(left) > behind
	if r.link != "" && !within(t.root, r.path) {
		return r.not(leadsOut)
	}
	return r
}

// not is a link that is not followed.
func (r resolved) not(why string) resolved {
	r.path, r.kind, r.why, r.lost = r.link, symlink, why, false
	return r
}

// leadsTo is the target of a link, as it is written.
func (t *tree) leadsTo(link string) (string, error) {
	target, err := fs.ReadLink(t.fsys, link)
	if err != nil {
		var text []byte
		text, err = t.read(link, longestTarget) // a tree that hands a link out as the text of its target
		target = string(text)
	}
	if t.facts != nil {
		t.facts.add(fact{about: linkTo, path: link, says: target})
		t.facts.spoiled = t.facts.spoiled || err != nil
	}
	return target, err
}

// odd is the refusal of a path that gitring reads and that leads over a link that is
// not followed, or into a submodule.
func (r resolved) odd(from place, what string) *fault {
	if r.kind == submodule {
		return odd(submodule, r.path, from, what)
	}
	why := r.why
	if r.lost {
		why = fmt.Sprintf("leads to %s, which the commit does not hold", r.path)
	}
	if from.file == "" {
		from = place{file: r.link}
	}
	return &fault{
		code: ring.SymlinkInManifest, place: from, says: fmt.Sprintf("%s: symlink %s %s", what, r.link, why),
		hint: "commit the file itself; gitring follows a symlink to what the commit holds under the source's path",
	}
}

// within reports whether a clean path lies under a folder.
func within(dir, p string) bool {
	if p == ".." || strings.HasPrefix(p, "../") || path.IsAbs(p) {
		return false
	}
	return dir == "." || p == dir || strings.HasPrefix(p, dir+"/")
}

// noteLinks tells of the links that the app's Compose files are read through.
func (a *appReader) noteLinks() {
	for _, f := range a.files {
		if r := a.tree.real(f.path); r.link != "" {
			a.noteOnce(fmt.Sprintf("%s is read from %s: %s is a symlink", f.path, r.path, r.link))
			for _, file := range append(r.via, r.path) {
				a.namesAnother(file)
			}
		}
	}
}
