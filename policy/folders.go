package policy

import (
	"path"
	"slices"
)

// isMine reports whether a path lies in the folder that gitring keeps for the app. Of
// folders inside one another the innermost counts.
func (l *look) isMine(p string) bool {
	root := plain(l.req.root())
	return l.req.DataRoot != "" && within(p, root) && !l.req.Others.folderBetween(root, p)
}

// folderBetween reports whether gitring keeps a folder for another app below root that is p,
// or holds it.
func (o *Others) folderBetween(root, p string) bool {
	if o.whose == nil {
		return false
	}
	return slices.ContainsFunc(ancestors(p), func(at string) bool {
		if at == root || !within(at, root) {
			return false
		}
		_, is := o.folder(at)
		return is
	})
}

// dataOfOthers finds a path that lies in what gitring keeps for another app, or that
// contains it. mine says that the path lies in the app's own folder, where only data
// that apps in other hands mount already is theirs.
func (l *look) dataOfOthers(p string, mine bool) *finding {
	o := &l.req.Others
	if o.whose == nil {
		return nil
	}
	root := plain(l.req.root())
	for _, at := range ancestors(p) {
		// Two apps of two sources may have one folder: then what each mounts tells.
		if by, is := o.folder(at); is && !mine && at != root {
			return &finding{grade: forbidden, risk: "is the data of " + by.called()}
		}
	}
	for _, at := range ancestors(p) {
		if by, is := o.mounted(at); is {
			return &finding{grade: forbidden, risk: "is the data of " + by.called(), instead: "mount another folder, or give one of the two sources a data_root of its own"}
		}
	}
	// Whoever mounts a folder above all data asks for the host, and is judged by that.
	if !l.inDataRoots(p) {
		return nil
	}
	holds := func(paths []string, whose func(string) (Other, bool)) *finding {
		for _, at := range below(paths, p) {
			if by, is := whose(at); is && !by.OneHand && (at != root || path.Clean(p) != root) {
				return &finding{grade: forbidden, risk: "holds the data of " + by.called()}
			}
		}
		return nil
	}
	if f := holds(o.whose.index.folderPaths, o.folder); f != nil {
		return f
	}
	return holds(o.whose.index.dataPaths, o.mounted)
}

// holdsFolder reports whether a folder of another app lies at or below p.
func (o *Others) holdsFolder(p string) bool {
	return o.whose != nil && slices.ContainsFunc(below(o.whose.index.folderPaths, p), func(at string) bool {
		_, is := o.folder(at)
		return is
	})
}
