package reconcile

import (
	"cmp"
	"path"
	"slices"

	"github.com/gitring/gitring/ring"
)

// inherits is why the wanted version of v may not start yet: another service
// still runs, by an earlier plan, on what v is to write now. A service that is
// given another name is such a one, and so is a volume that moves from one service
// to another. What one plan has two services write is their author's wish.
func (t *turn) inherits(v *service) string {
	mine := writes(v.app, v.want)
	if len(mine) == 0 || v.want.Share {
		return ""
	}
	for _, id := range sortedKeys(t.seen) {
		app, name := id.Split()
		if app != v.app.Name || id == v.id {
			continue
		}
		other := t.views[id]
		for _, in := range t.seen[id] {
			if !in.Live() && !in.restartable() || other != nil && in.Version == other.want.Version {
				continue
			}
			what := t.writtenBy(id, in, mine)
			if what == "" {
				continue
			}
			if other == nil {
				return say("waits until %s is gone, which left the plan and writes %s", name, what)
			}
			if other.want.Share || slices.Contains(writes(other.app, other.want), what) {
				continue
			}
			if t.needs(v.app, name, []string{v.want.Name}) {
				return say("waits for %s to let go of %s, and %s waits for it: move it in a commit of its own", name, what, name)
			}
			return say("waits for %s to let go of %s", name, what)
		}
	}
	return ""
}

// writtenBy is the first of some things that an instance writes; of a version
// that is not remembered, "".
func (t *turn) writtenBy(id ring.ServiceID, in *inst, some []string) string {
	g, ok := t.Facts.Good[id]
	if !ok || g.Service.Version != in.Version {
		return ""
	}
	for _, what := range writes(&g.App, &g.Service) {
		if slices.Contains(some, what) {
			return what
		}
	}
	return ""
}

// inherited says that a service of the plan waits for an instance of one that
// left to be gone: that serves nobody any more who could wait for it.
func (t *turn) inherited(id ring.ServiceID, in *inst) bool {
	app, _ := id.Split()
	for _, s := range t.Facts.Apps[app].App.Services {
		v := t.views[ring.ID(app, s.Name)]
		if !v.want.Share && v.row.Version != v.want.Version && t.writtenBy(id, in, writes(v.app, v.want)) != "" {
			return true
		}
	}
	return false
}

// givenUp says that what v's instances are tied to is on its way out, with them:
// nothing of v is healed until that is gone.
func (t *turn) givenUp(v *service) bool {
	f := t.Facts.Apps[v.app.Name]
	if f.App.NoPrune || !t.fresh(v.app) {
		return false
	}
	for _, in := range v.all {
		for _, owner := range in.Joined {
			y := t.ids[owner]
			if y == nil {
				continue
			}
			if id := ring.ID(y.App, y.Service); t.views[id] == nil && t.inherited(id, y) {
				return true
			}
		}
	}
	return false
}

// writes are what a service writes and what outlives its instances, by the name
// that the host knows it by.
func writes(app *ring.App, s *ring.Service) []string {
	var out []string
	for _, m := range s.Mounts() {
		switch {
		case !m.Outlives():
		case m.Kind == ring.MountVolume:
			v := ring.Volume{Key: m.Source}
			if i := slices.IndexFunc(app.Volumes, func(x ring.Volume) bool { return x.Key == m.Source }); i >= 0 {
				v = app.Volumes[i]
			}
			out = append(out, "volume "+v.EngineName(app.Name))
		case m.Kind == ring.MountBind:
			out = append(out, path.Clean(m.Source))
		default:
			out = append(out, "data folder "+path.Join(cmp.Or(app.DataRoot, "<data_root>"), m.Source))
		}
	}
	return out
}
