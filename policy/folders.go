package policy

import (
	"path"
	"slices"
)

// isMine reports whether a path lies in the folder that gitring keeps for the app. Of
// folders inside one another the innermost counts.
func (l *look) isMine(p string) bool {
	root := plain(l.req.root())
	return l.req.DataRoot != "" && within(p, root) && !slices.ContainsFunc(sortedKeys(l.req.Others.Folders), func(other string) bool {
		return plain(other) != root && within(plain(other), root) && within(p, plain(other))
	})
}

// dataOfOthers finds a path that lies in what gitring keeps for another app, or that
// contains it. mine says that the path lies in the app's own folder, where only data
// that apps in other hands mount already is theirs.
func (l *look) dataOfOthers(p string, mine bool) *finding {
	o := l.req.Others
	if !mine {
		for _, folder := range sortedKeys(o.Folders) {
			// Two apps of two sources may have one folder: then what each mounts tells.
			if within(p, plain(folder)) && plain(folder) != plain(l.req.root()) {
				return &finding{grade: forbidden, risk: "is the data of " + o.Folders[folder].called()}
			}
		}
	}
	for _, folder := range sortedKeys(o.Data) {
		if within(p, plain(folder)) {
			return &finding{grade: forbidden, risk: "is the data of " + o.Data[folder].called(), instead: "mount another folder, or give one of the two sources a data_root of its own"}
		}
	}
	// Whoever mounts a folder above all data asks for the host, and is judged by that.
	if !slices.ContainsFunc(append(o.DataRoots, l.req.DataRoot), func(root string) bool { return root != "" && within(p, plain(root)) }) {
		return nil
	}
	for _, all := range []map[string]Other{o.Folders, o.Data} {
		for _, folder := range sortedKeys(all) {
			if by := all[folder]; !by.OneHand && within(plain(folder), p) && (plain(folder) != plain(l.req.root()) || path.Clean(p) != plain(folder)) {
				return &finding{grade: forbidden, risk: "holds the data of " + by.called()}
			}
		}
	}
	return nil
}

// holds reports whether a folder of another app lies at or below p.
func holds(folders map[string]Other, p string) bool {
	return slices.ContainsFunc(sortedKeys(folders), func(other string) bool { return within(plain(other), p) })
}
