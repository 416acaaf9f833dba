package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// keptByOthers refuses an app that would write what an app of another source
// keeps. Inside one repository two apps may name one folder, and its authors see both;
// the authors of two repositories see nothing of each other, and a Compose file at
// the root of each makes their ./data one folder.
func (t *Pass) keptByOthers(next *ring.App) *ring.Refusal {
	mine := belongingsOf(next)
	if len(mine) == 0 {
		return nil
	}
	for _, name := range t.keepersOf(mine) {
		other := t.Facts.Apps[name].App
		if other.Source == next.Source {
			continue
		}
		for _, b := range belongingsOf(&other) {
			i := slices.IndexFunc(mine, func(m belonging) bool { return m.name == b.name })
			if i < 0 {
				continue
			}
			r := &ring.Refusal{
				Code: ring.Conflict, Commit: next.Commit, App: next.Name, File: mine[i].at.File, Line: mine[i].at.Line,
				Says: say("%s belongs to app %s of source %s on this host", b.name, other.Name, other.Source), Hint: "give it another name",
			}
			if b.folder {
				r.Hint = say("give one of the two a place of its own: in the daemon's configuration data_root of source %s, or another path in the Compose file", next.Source)
			}
			return r
		}
	}
	return nil
}
