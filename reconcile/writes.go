package reconcile

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// writesOf are what a service writes and what outlives its instances, by the name
// that the host knows it by, and the ports of the host that it publishes.
func writesOf(app *ring.App, s *ring.Service) []string {
	if app == nil || len(s.Spec.Mounts) == 0 && len(s.Image.Volumes) == 0 && len(s.Spec.Ports) == 0 {
		return nil
	}
	out := portsOf(s)
	for _, m := range app.Mounts(s) {
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
			out = append(out, "data folder "+path.Join(cmp.Or(app.DataRoot, ring.DataRootMark), m.Source))
		}
	}
	return out
}

// wantedWrites are those of what v wants: the rules, and those of other services, ask for
// them again and again.
func (v *service) wantedWrites() []string {
	if v.writtenOf != v.want {
		v.writtenOf, v.written = v.want, writesOf(v.app, v.want)
	}
	return v.written
}

// goodWrites are those of a good version, asked for by each instance of it; v may be nil.
func (v *service) goodWrites(g *ring.Good) []string {
	if v == nil {
		return writesOf(&g.App, &g.Service)
	}
	if v.goodWrittenOf != g {
		v.goodWrittenOf, v.goodWritten = g, writesOf(&g.App, &g.Service)
	}
	return v.goodWritten
}

// writtenAs is writtenOf for a service whose view, which may be nil, is at hand too.
func (t *Pass) writtenAs(id ring.ServiceID, v *service, in *instance) []string {
	if v != nil && v.want.Version == in.Version {
		return v.wantedWrites()
	}
	if g, ok := t.Facts.Good[id]; ok && g.Service.Version == in.Version {
		return v.goodWrites(g)
	}
	if in.Kind.Ends() {
		if what, known := t.runWrites(id, in); known {
			return what
		}
	} else if what, known := t.Facts.Rollouts[id].Writes[in.Version]; known {
		return what
	}
	return mountedWrites(in)
}

// runWrites is what the run of an instance writes.
func (t *Pass) runWrites(id ring.ServiceID, in *instance) (what []string, known bool) {
	for _, key := range t.runsOf(id) {
		if run := t.Facts.Jobs[key]; run.Instance == in.ID {
			return run.Writes, true
		}
	}
	return nil, false
}

// mountedWrites is what an instance holds by its mounts and ports, in the words of writes: all that
// is known of one whose version a lost database alone knew.
func mountedWrites(in *instance) []string {
	var out []string
	for _, what := range in.Writes {
		out = append(out, what)
		if !strings.HasPrefix(what, "volume ") && !isPort(what) {
			out = append(out, "data folder "+what)
		}
	}
	return out
}

// portsOf are the ports of the host that a service publishes, one by one. Where an
// address is said, it is part.
func portsOf(s *ring.Service) []string {
	var out []string
	for _, p := range s.Spec.Ports {
		if p.HostPort != "" {
			out = append(out, portWord+p.Published())
		}
	}
	return out
}

const portWord = ring.PortWord

func isPort(what string) bool { return strings.HasPrefix(what, portWord) }

// anyClash reports whether some hold what cannot be had beside what: the same, or a port of
// another address that clashes with it.
func anyClash(some []string, what string) bool {
	if slices.Contains(some, what) {
		return true
	}
	if !isPort(what) {
		return false
	}
	p := ring.ParsePublished(what[len(portWord):])
	return slices.ContainsFunc(some, func(other string) bool {
		return isPort(other) && p.Clashes(ring.ParsePublished(other[len(portWord):]))
	})
}

// anyAddress is the key under which all that may clash is found: a port without
// its address.
func anyAddress(what string) string {
	if i := strings.LastIndexByte(what, ':'); i >= 0 && isPort(what) {
		return portWord + what[i+1:]
	}
	return what
}

// exclusiveWrites is what of some nobody else may have at the same time: what is shared
// may be written by several, but a port is always one service's.
func exclusiveWrites(share bool, some []string) []string {
	if !share {
		return some
	}
	return slices.DeleteFunc(slices.Clone(some), func(what string) bool { return !isPort(what) })
}

// firstCommon is the first of some that is among others; "" when none is.
func firstCommon(others, some []string) string {
	if i := slices.IndexFunc(some, func(what string) bool { return anyClash(others, what) }); i >= 0 {
		return some[i]
	}
	return ""
}

// subtract is some without what is among others.
func subtract(some, others []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(what string) bool { return slices.Contains(others, what) })
}

// sharesAs reports whether a version of v shares what it writes, as far as that is remembered.
func (v *service) sharesAs(version ring.Version) bool {
	switch {
	case version == v.want.Version:
		return v.want.Share
	case v.good != nil && version == v.good.Service.Version:
		return v.good.Service.Share
	}
	return slices.Contains(v.rollout.Shared, version)
}

// sharesOf is sharesAs for a service that may have left its plan: what is remembered of
// it outlasts it until its last instance is gone.
func (t *Pass) sharesOf(id ring.ServiceID, version ring.Version) bool {
	if v := t.views[id]; v != nil {
		return v.sharesAs(version)
	}
	if g := t.Facts.Good[id]; g != nil && g.Service.Version == version {
		return g.Service.Share
	}
	return slices.Contains(t.Facts.Rollouts[id].Shared, version)
}
