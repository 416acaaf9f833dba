package policy

import (
	"cmp"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// CheckNested judges the folders of the host that an app's services mount:
// none may lie inside a folder that a container may write to, the same service
// included. Whoever may write there can put a link in its place, and the engine
// follows that at its next restart.
func CheckNested(r Rules, app *ring.App, dataRoot string, others Others) []Finding {
	mounts := HostMountsOf(app, dataRoot)
	var out []Finding
	for i := range app.Services {
		req := Request{App: app.Name, Source: app.Source, Path: app.Path, Service: app.Services[i].Name, Key: "container", DataRoot: dataRoot}
		out = append(out, nestedOf(r, req, mounts[i].Mounts, mounts, others)...)
	}
	return sorted(out)
}

// CheckMounted judges what one container of a service is about to mount, beside
// what is mounted on the engine already. The paths are those of the host.
// Those below the request's data root are shown from there.
func CheckMounted(r Rules, req Request, mounts []ring.HostMount, all []ring.HostMounts) []Finding {
	req.Key, req.Body = "container", nil
	return sorted(nestedOf(r, req, mounts, all, Others{}))
}

// CheckLeads judges where paths lead that are links, as if those places had been
// written: a link that only the host's own hands can have made. leads has them
// by the path that is mounted. What every app may mount is the host's own to lay out.
func CheckLeads(r Rules, req Request, mounts []ring.HostMount, leads map[string]string) []Finding {
	if r.Profile == "" {
		r.Profile = Compose
	}
	w := walker{r: &r, req: &req}
	l := &look{walker: &w, rule: paths("mounts.bind", "volumes"), spot: spot{path: "App.volumes"}, v: reflect.ValueOf(true)}
	for _, m := range mounts {
		to, linked := leads[m.Source]
		if _, everybodys := readOnlyPlace(r.lists().Always, plain(m.Source)); !linked || everybodys && m.ReadOnly {
			continue
		}
		if f := l.pathAt(to, m.ReadOnly, false); f != nil {
			f.value, f.at, f.risk, f.asks = m.Source, m.Target, "leads to "+plain(to)+", which "+f.risk, asksOf(to, m.ReadOnly)
			l.find(*f)
		}
	}
	return sorted(w.out)
}

func nestedOf(r Rules, req Request, mounts []ring.HostMount, all []ring.HostMounts, others Others) []Finding {
	if r.Profile == "" {
		r.Profile = Compose
	}
	w := walker{r: &r, req: &req}
	shown := func(p string) string { return inside(p, plain(req.DataRoot)) }
	l := &look{walker: &w, rule: nestedRule, spot: spot{path: "App." + nestedRule.key}, v: reflect.ValueOf(true)}
	for _, m := range mounts {
		outer, who := writableAbove(m.Source, all)
		if who == "" {
			outer, who = others.writableAbove(m.Source)
		}
		if who != "" {
			l.find(finding{
				value: shown(m.Source) + " in " + shown(outer) + " of " + who, at: m.Target, asks: m.Source, alone: strings.Contains(m.Source, ":"),
				instead: "mount folders beside each other, the outer one read-only, or the inner one at its own place directly inside the outer one in every service that writes there",
			})
		}
	}
	return w.out
}

// writableAbove returns a folder above source that a container may write to, and
// that container; "" when there is none. A container that mounts source at
// its own place, directly inside its mount of the folder, cannot replace it: to
// its programs the name is a mount point, which cannot be renamed or removed.
func writableAbove(source string, all []ring.HostMounts) (outer, who string) {
	for _, c := range all {
		for _, o := range c.Mounts {
			above := within(source, o.Source) && source != o.Source
			if above && !o.ReadOnly && !mountedInPlace(source, o, c.Mounts) {
				return o.Source, c.Who
			}
		}
	}
	return "", ""
}

// mountedInPlace reports whether source lies directly inside the mount o, and is
// itself mounted there.
func mountedInPlace(source string, o ring.HostMount, mounts []ring.HostMount) bool {
	return path.Dir(source) == o.Source && slices.ContainsFunc(mounts, func(m ring.HostMount) bool {
		return m.Source == source && m.Target == path.Join(o.Target, path.Base(source))
	})
}

// HostMountsOf returns what each service of an app mounts of the host, in their
// order, as far as the plan tells. What gitring places itself is left out: no
// program may write there. dataRoot is the app's, absolute.
func HostMountsOf(app *ring.App, dataRoot string) []ring.HostMounts {
	out := make([]ring.HostMounts, len(app.Services))
	for i := range app.Services {
		s := &app.Services[i]
		out[i].Who = "service " + s.Name
		for _, m := range mountsWithTaken(app, s, map[string]bool{}) {
			if source := onHost(app, m, dataRoot); source != "" {
				out[i].Mounts = append(out[i].Mounts, ring.HostMount{Source: source, Target: path.Clean(m.Target), ReadOnly: m.ReadOnly})
			}
		}
	}
	return out
}

// mountsWithTaken are the mounts of a service and those that it has by volumes_from, at
// whatever distance; met are the services that were asked already.
func mountsWithTaken(app *ring.App, s *ring.Service, met map[string]bool) []ring.Mount {
	met[s.Name] = true
	out := slices.Clone(app.Mounts(s))
	for _, from := range s.Spec.VolumesFrom {
		owner, ok := app.Service(from.Service)
		if !ok || met[from.Service] {
			continue
		}
		for _, m := range mountsWithTaken(app, &owner, met) {
			hidden := slices.ContainsFunc(out, func(o ring.Mount) bool { return o.Target == m.Target })
			if m.ReadOnly = m.ReadOnly || from.ReadOnly; !hidden {
				out = append(out, m)
			}
		}
	}
	return out
}

// onHost is the path of the host that m mounts; "" for what has none that an
// app could write to beside it.
func onHost(app *ring.App, m ring.Mount, dataRoot string) string {
	switch m.Kind {
	case ring.MountData, ring.MountSeed:
		return plain(path.Join(dataRoot, m.Source))
	case ring.MountBind:
		return plain(m.Source)
	case ring.MountVolume:
		i := slices.IndexFunc(app.Volumes, func(v ring.Volume) bool { return v.Key == m.Source })
		if i >= 0 {
			return BoundFolder(app.Volumes[i].DriverOpts)
		}
	}
	return ""
}

// BoundFolder is the folder of the host that a volume of the driver "local" with
// these options shows; "" for none.
func BoundFolder(opts map[string]string) string {
	bound := slices.ContainsFunc(strings.Split(opts["o"], ","), func(o string) bool { return o == "bind" || o == "rbind" })
	if device := cmp.Or(opts["device"], "-"); bound && path.IsAbs(device) {
		return plain(device)
	}
	return ""
}

// inside is p below dir, or p where it does not lie there.
func inside(p, dir string) string {
	if rest := strings.TrimPrefix(p, strings.TrimSuffix(dir, "/")+"/"); within(p, dir) && rest != p {
		return rest
	}
	return p
}
