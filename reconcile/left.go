package reconcile

import (
	"cmp"
	"slices"

	"github.com/gitring/gitring/ring"
)

// What holds data and has no app any more is remembered: an app that leaves in one commit
// may come again in a later one, under another name.

// giveUpData notes what an app has and next does not have any more.
func (t *decider) giveUpData(have, next *ring.App) {
	services := givenUpBy(have, next)
	if len(services) == 0 {
		return
	}
	was := t.Facts.Left[have.Name]
	if was.App.Source != have.Source {
		was = ring.Left{}
	}
	for i := range was.App.Services {
		services = withOld(services, &was.App.Services[i])
	}
	slices.SortFunc(services, func(a, b ring.Service) int { return cmp.Compare(a.Name, b.Name) })
	t.setFact(ring.Left{Commit: next.Commit, At: t.now, App: ring.App{
		Name: have.Name, Source: have.Source, Path: have.Path, Files: have.Files, DataRoot: have.DataRoot,
		Volumes: volumesIn(services, have.Volumes, was.App.Volumes), Services: services,
	}})
}

// givenUpBy are the services of have with the mounts that next does not have, each with its
// name and image; of an app that leaves all of them, as by them it is known again.
func givenUpBy(have, next *ring.App) (out []ring.Service) {
	still := map[string]bool{}
	for _, h := range holdingsOf(next, ring.DataRootMark) {
		still[h.name] = true
	}
	some := false
	for i := range have.Services {
		s := &have.Services[i]
		gone := slices.DeleteFunc(slices.Clone(s.Spec.Mounts), func(m ring.Mount) bool {
			h, ok := holdingOf(have, ring.DataRootMark, m)
			return !ok || still[h.name]
		})
		some = some || len(gone) > 0
		if len(gone) > 0 || len(next.Services) == 0 {
			out = append(out, ring.Service{Name: s.Name, Kind: s.Kind, Spec: ring.Spec{Image: s.Spec.Image, Mounts: gone}})
		}
	}
	if !some {
		return nil
	}
	return out
}

// withOld adds to services one that gave something up before.
func withOld(services []ring.Service, old *ring.Service) []ring.Service {
	i := slices.IndexFunc(services, func(s ring.Service) bool { return s.Name == old.Name })
	if i < 0 {
		return append(services, *old)
	}
	for _, m := range old.Spec.Mounts {
		if !slices.ContainsFunc(services[i].Spec.Mounts, func(o ring.Mount) bool { return o.Kind == m.Kind && o.Source == m.Source }) {
			services[i].Spec.Mounts = append(services[i].Spec.Mounts, m)
		}
	}
	return services
}

// volumesIn are those volumes that services mount; of one key the first.
func volumesIn(services []ring.Service, all ...[]ring.Volume) (out []ring.Volume) {
	for _, v := range slices.Concat(all...) {
		mounted := slices.ContainsFunc(services, func(s ring.Service) bool {
			return slices.ContainsFunc(s.Spec.Mounts, func(m ring.Mount) bool { return m.Kind == ring.MountVolume && m.Source == v.Key })
		})
		if mounted && !slices.ContainsFunc(out, func(o ring.Volume) bool { return o.Key == v.Key }) {
			out = append(out, v)
		}
	}
	return out
}
