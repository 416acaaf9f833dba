package manifest

import (
	"path"
	"strings"
)

// search says which folders are looked into where no list of apps says it.
type search struct {
	depth   int      // levels of folders below the source's path
	exclude []string // patterns of folders
}

// The depth without gitring.yaml stays what it is: an app that is newly found by an
// upgrade would start.
const (
	usualDepth = 2
	mostDepth  = 16
)

// searchOf are the keys of gitring.yaml that say how folders are searched; said
// reports whether there are any.
func (d *decoder) searchOf(root *node) (s search, said bool) {
	s.depth = usualDepth
	depth, exclude := root.get("depth"), root.get("exclude")
	if !depth.null() {
		s.depth = d.number(depth, "depth", 0, mostDepth)
	}
	for _, w := range d.texts(exclude, "exclude") {
		pattern := path.Clean(strings.TrimSuffix(w.text, "/"))
		if _, err := path.Match(pattern, ""); err != nil || strings.Contains(pattern, "**") || path.IsAbs(pattern) || pattern == "." || strings.HasPrefix(pattern, "..") {
			d.bad(w.place, "write a folder's name such as archive, or its path such as stacks/old* or ./archive; * stands for a part of one name", "exclude: %q is no pattern of folders", head(w.text))
			continue
		}
		if strings.HasPrefix(w.text, atRoot) {
			pattern = atRoot + strings.TrimPrefix(pattern, atRoot)
		}
		s.exclude = append(s.exclude, pattern)
	}
	return s, depth != nil || exclude != nil
}

// atRoot begins a pattern of folders right below the source's path.
const atRoot = "./"

// leavesOut reports whether a folder, relative to the source's path, is excluded. A
// pattern without a slash is for folders of that name wherever they lie.
func (s search) leavesOut(folder string) bool {
	for _, pattern := range s.exclude {
		subject := folder
		if !strings.Contains(pattern, "/") {
			subject = path.Base(folder)
		}
		if ok, err := path.Match(strings.TrimPrefix(pattern, atRoot), subject); err == nil && ok {
			return true
		}
	}
	return false
}
