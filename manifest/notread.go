package manifest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// NotRead is a Compose file of the commit that no app reads, and why.
type NotRead struct {
	File string `json:"file"` // inside the commit
	// Why is TooDeep, OtherName, NotListed or Excluded.
	Why string `json:"why"`
	// Alone reports whether its folder has no Compose file by a usual name, and no other
	// file such as this: to name it is to say all.
	Alone bool `json:"-"`
	// Entry is how gitring.yaml would list a file of another name, with a name of its own where
	// others lie beside it; "" for files that are not read for another reason.
	Entry string `json:"-"`
}

// Why a Compose file is not read.
const (
	TooDeep   = "too deep"   // below the folders that are searched
	OtherName = "other name" // none that Compose looks for
	NotListed = "not listed" // in gitring.yaml, which lists the apps
	Excluded  = "excluded"   // by gitring.yaml
)

// servicesKey is how a Compose file of any name is told from other YAML.
var servicesKey = regexp.MustCompile(`(?m)^services:[ \t]*(?:#.*)?\r?$`)

// mostLookedInto is how many files of other names are looked into.
const mostLookedInto = 5_000

// notRead are the Compose files below the source's path that nothing reads.
func (r *reader) notRead(listed bool) []NotRead {
	var out []NotRead
	left := mostLookedInto
	r.walkFolders(r.settings.Path, 0, false, func(dir string, level int, excluded bool) {
		if slices.Contains(r.elsewhere, dir) {
			return
		}
		usual, others := r.composeLike(dir, &left)
		why := func(otherwise string) string {
			switch {
			case excluded:
				return Excluded
			case listed:
				return NotListed
			case level > r.search.depth:
				return TooDeep
			}
			return otherwise
		}
		if usual != "" && why("") != "" && !r.folders[dir] && r.unread(usual) {
			out = append(out, NotRead{File: usual, Why: why("")})
		}
		for _, file := range others {
			n := NotRead{File: file, Why: why(OtherName), Alone: usual == "" && len(others) == 1}
			if n.Why == OtherName {
				n.Entry = r.entryOf(n)
			}
			out = append(out, n)
		}
	})
	return out
}

// entryOf lists a file that is not read. docker-compose.prod.yml in web is app web-prod.
func (r *reader) entryOf(n NotRead) string {
	dir := r.below(path.Dir(n.File))
	name := strings.TrimSuffix(path.Base(n.File), path.Ext(n.File))
	name = strings.Join(strings.FieldsFunc(notItsOwn.ReplaceAllString(name, ""), func(c rune) bool { return strings.ContainsRune("._- ", c) }), "-")
	if dir != "." && name != "" {
		name = path.Base(dir) + "-" + name
	}
	name = normalName(name)
	if n.Alone || !appName.MatchString(name) {
		return fmt.Sprintf("{path: %s, files: [%s]}", dir, path.Base(n.File))
	}
	return fmt.Sprintf("{path: %s, name: %s, files: [%s]}", dir, name, path.Base(n.File))
}

// notItsOwn is what the names of all Compose files have.
var notItsOwn = regexp.MustCompile(`(?i)(docker[-_.]?)?compose`)

// unread reports whether no app reads a file of the commit.
func (r *reader) unread(file string) bool {
	_, read := r.tree.bodies[file]
	return !read
}

// composeLike are the Compose file of a folder by its usual name, and the unread files
// that are Compose files by what stands in them.
func (r *reader) composeLike(dir string, left *int) (usual string, others []string) {
	entries := r.tree.list(dir)
	if files, _ := composeFiles(entries); len(files) > 0 {
		usual = path.Join(dir, files[0])
	}
	for _, e := range entries {
		file := path.Join(dir, e.Name())
		ext := path.Ext(e.Name())
		if kindOf(e) != regular || ext != ".yml" && ext != ".yaml" || usualName(e.Name()) || !r.unread(file) || *left == 0 {
			continue
		}
		*left--
		body, err := r.tree.read(file, r.limits.FileSize)
		if err == nil && int64(len(body)) <= r.limits.FileSize && servicesKey.Match(body) {
			others = append(others, file)
		}
	}
	return usual, others
}

// usualName reports whether Compose looks for a file of that name, as the file itself or
// as what merges into it.
func usualName(name string) bool {
	stem := strings.TrimSuffix(strings.TrimSuffix(name, path.Ext(name)), ".override")
	return slices.Contains(composeNames, stem+path.Ext(name))
}

// walkFolders visits the folders of the commit from dir on, but those whose name begins
// with a dot.
func (r *reader) walkFolders(dir string, level int, excluded bool, visit func(dir string, level int, excluded bool)) {
	visit(dir, level, excluded)
	for _, e := range r.tree.list(dir) {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" {
			continue
		}
		below := path.Join(dir, e.Name())
		r.walkFolders(below, level+1, excluded || r.search.leavesOut(r.below(below)), visit)
	}
}

// below is a path inside the commit relative to the source's path.
func (r *reader) below(p string) string {
	if r.settings.Path == "." {
		return p
	}
	return strings.TrimPrefix(p, r.settings.Path+"/")
}

// SayNotRead is one sentence for each reason why Compose files are not read, with the
// number of files, the first and the way out. Excluded files are as somebody wants them.
func SayNotRead(all []NotRead) []string {
	var out []string
	for _, x := range []struct{ why, says, hint string }{
		{TooDeep, "too deep below the source's path", "say depth: in gitring.yaml, or give the source a path"},
		{OtherName, "another name than Compose looks for", "list the apps in gitring.yaml"},
		{NotListed, "in no app that gitring.yaml lists", "list their folders too, or leave it so"},
	} {
		n, first := 0, ""
		for _, f := range all {
			if f.Why == x.why {
				if n++; first == "" {
					first = f.File
					if f.Entry != "" {
						x.hint += ", this one as " + f.Entry
					}
				}
			}
		}
		switch n {
		case 0:
		case 1:
			out = append(out, fmt.Sprintf("1 Compose file is not read, %s: %s; %s", x.says, first, x.hint))
		default:
			out = append(out, fmt.Sprintf("%d Compose files are not read, %s, the first %s; %s", n, x.says, first, x.hint))
		}
	}
	return out
}
