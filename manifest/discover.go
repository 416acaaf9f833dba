package manifest

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/gitring/gitring/ring"
)

// candidate is an app as discovery found it, before its files are read.
type candidate struct {
	name    string // from gitring.yaml; "" lets the Compose file or the folder say it
	path    string // folder inside the commit
	files   []string
	without *fault // that there is no Compose file, unless COMPOSE_FILE names one
	filesAt place  // of COMPOSE_FILE, where that names them
	entry   *entry // of gitring.yaml; nil by folder
	notes   []string
	faults  faults
	unnamed string // what it is called when nothing gives it a name
	// nameLost says that name is a stand-in, because of a fault.
	nameLost bool
}

// composeNames are the names of a Compose file, in order.
var composeNames = []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}

// overrideNames are the names of the file that merges into it, whatever it is called itself, in
// Compose's order.
var overrideNames = []string{"compose.override.yml", "compose.override.yaml", "docker-compose.override.yml", "docker-compose.override.yaml"}

// discover finds the apps of the commit: those that gitring.yaml lists, else
// those of folders. A fault is one of the whole commit.
func (r *reader) discover() ([]candidate, *fault) {
	root := r.settings.Path
	switch kind, at := r.tree.look(root); kind {
	case symlink, submodule:
		return nil, odd(kind, at, place{}, "the source's path "+root)
	case regular:
		return nil, &fault{code: ring.BadValue, place: place{file: root}, says: fmt.Sprintf("the source's path %s is a file", root), hint: "make it a folder, or change the source's path in the configuration"}
	}
	apps, listed, f := r.listedApps()
	if f == nil {
		f = r.tree.fault()
	}
	r.listed = listed
	if listed || f != nil {
		return apps, f
	}
	apps = r.folderApps(root, 0, nil)
	return apps, r.tree.fault()
}

// folderApps takes the folder, then its subfolders, as far down as is searched.
func (r *reader) folderApps(dir string, level int, apps []candidate) []candidate {
	entries := r.tree.list(dir)
	if c, ok := r.folderApp(dir, entries); ok {
		apps = append(apps, c)
	}
	if level == r.search.depth {
		return apps
	}
	for _, e := range entries {
		below := path.Join(dir, e.Name())
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !r.search.leavesOut(r.below(below)) {
			apps = r.folderApps(below, level+1, apps)
		}
	}
	return apps
}

func (r *reader) folderApp(dir string, entries []fs.DirEntry) (candidate, bool) {
	files, notes := composeFiles(entries)
	if len(files) == 0 {
		return candidate{}, false
	}
	c := candidate{path: dir, notes: notes, unnamed: r.folderName(dir)}
	for _, f := range files {
		c.files = append(c.files, path.Join(dir, f))
	}
	return c, true
}

// folderName is what an app is called after its folder; the source's own path
// is called after the source.
func (r *reader) folderName(dir string) string {
	if dir == r.settings.Path {
		return r.settings.Source
	}
	return normalName(path.Base(dir))
}

// normalName is a name as Compose has it: in lower case, without what it takes out. One
// of which nothing is left stays as it is, and is refused.
func normalName(name string) string { return or2(loader.NormalizeProjectName(name), name) }

// composeFiles are the Compose file of a folder and the override that merges
// into it. What is there besides and is not read is noted.
func composeFiles(entries []fs.DirEntry) (files, notes []string) {
	has := map[string]bool{}
	for _, e := range entries {
		has[e.Name()] = !e.IsDir()
	}
	for _, name := range composeNames {
		switch {
		case !has[name]:
		case len(files) == 0:
			files = append(files, name)
		default:
			notes = append(notes, fmt.Sprintf("%s is not read: %s comes first", name, files[0]))
		}
	}
	if len(files) == 0 {
		return nil, nil
	}
	for _, name := range overrideNames {
		switch {
		case !has[name]:
		case len(files) == 1:
			files = append(files, name)
		default:
			notes = append(notes, fmt.Sprintf("%s is not read: %s comes first", name, files[1]))
		}
	}
	return files, notes
}

// appName is what an app may be called.
var appName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

func badName(name string, at place) *fault {
	return &fault{
		code: ring.BadName, place: at, says: fmt.Sprintf("%q cannot be the name of an app", head(name)),
		hint: "use at most 63 of a-z, 0-9, _ and -, starting with a letter or digit; set it with name: in the Compose file or in gitring.yaml",
	}
}

// inside reports whether a clean path lies under the source's path.
func (r *reader) inside(p string) bool { return within(r.settings.Path, p) }

// outside is the refusal of a path that leaves the source's path.
func outside(written string, at place) *fault {
	return &fault{
		code: ring.OutsideCommit, place: at, says: fmt.Sprintf("%s leads out of the source's path", head(written)),
		hint: "keep what the app reads under the source's path; .. is fine while it stays there",
	}
}
