package manifest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Bounds of a front, besides its memory. The limit of descriptors leaves room for two
// connections of each that it may carry, and for the proxy before it. Every file that it could
// write on the host stays empty (fsize): it makes none but sockets.
const (
	frontPids      = 256
	frontReserved  = 16 << 20 // what an idle one has; its limit is for the worst day, and is not kept free
	frontFiles     = 65536
	frontInterval  = 30 * time.Second
	frontAtStart   = time.Second
	frontSysctl    = "net.ipv4.ip_unprivileged_port_start"
	composeNoFront = "it has a front, of which Compose knows nothing"
)

// addFronts gives each service that has a route its front, and takes from the service what
// is then the front's: ports, labels and variables by which a proxy finds it.
func (b *builderOf) addFronts(app *ring.App, routes map[string]*ring.Route) {
	traffic := b.settings.Traffic.withDefaults()
	for i := range app.Services {
		s := &app.Services[i]
		r := routes[s.Name]
		if r == nil {
			continue
		}
		f := fronting{b, app, s, b.project.Services[s.Name], &b.extras[s.Name].route, traffic}
		front := f.front(r)
		f.strip(r)
		app.Services = append(app.Services, front) // s is not used after it
	}
	slices.SortFunc(app.Services, func(x, y ring.Service) int { return strings.Compare(x.Name, y.Name) })
}

// front is the service that stands before s.
func (f *fronting) front(r *ring.Route) ring.Service {
	s := f.s
	pids := int64(frontPids)
	spec := ring.Spec{
		Image: ring.FrontImage, User: userOf(ring.FrontUser), Ports: s.Spec.Ports,
		Labels:   pick(s.Spec.Labels, f.traffic.moves),
		CapDrop:  []string{"ALL"},
		Networks: f.frontNetworks(r), ReadOnly: true, SecurityOpt: []string{"no-new-privileges=true"}, StopSignal: "SIGTERM",
		Sysctls:   map[string]string{frontSysctl: "0"},
		Ulimits:   []ring.Ulimit{{Name: "fsize"}, {Name: "nofile", Soft: frontFiles, Hard: frontFiles}},
		Resources: &ring.Resources{Memory: f.traffic.Memory, MemoryReservation: frontReserved, PidsLimit: &pids},
		Logging:   &ring.Logging{Driver: "json-file", Options: map[string]string{"max-size": "10m", "max-file": "2"}},
	}
	spec.Environment = pick(s.Spec.Environment, f.traffic.movesEnv)
	for _, p := range r.Ports {
		spec.Expose = append(spec.Expose, strconv.Itoa(p.Port)+"/"+p.Protocol())
	}
	slices.Sort(spec.Expose)
	out := ring.Service{
		Name: s.Name + ring.FrontSuffix, Kind: ring.Worker, Replicas: 1, FrontOf: s.Name,
		Rollout: ring.DefaultRollout(), Restart: ring.Restart{Policy: ring.Always, Engine: ring.Always},
		Pin: ring.Pin{Image: ring.FrontImage}, Composed: &ring.Composed{Not: composeNoFront},
		File: s.File, Line: s.Line, Places: s.Places,
	}
	if spec.Labels != nil || spec.Environment != nil {
		// The engine asks each second only within a start period.
		spec.Healthcheck = &ring.Healthcheck{Test: []string{"CMD", ring.FrontProgram, "health"}, Interval: frontInterval, StartPeriod: frontInterval, StartInterval: frontAtStart, Retries: 1}
		out.Checks = []ring.Check{engineCheck()}
	}
	out.Rollout.MinReadyTime = 0 // it serves once it took a table, which is waited for
	out.Spec, out.Written = spec, ring.WrittenHash(spec)
	return out
}

func userOf(id int) string { return strconv.Itoa(id) + ":" + strconv.Itoa(id) }

// pick are the entries whose names move; nil where none do.
func pick(all map[string]string, moves func(string) bool) map[string]string {
	var out map[string]string
	for name, value := range all {
		if moves(name) {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = value
		}
	}
	return out
}

// frontNetworks are the service's, without its addresses. Its names there are the front's
// only where route.internal says so.
func (f *fronting) frontNetworks(r *ring.Route) []ring.Attachment {
	var out []ring.Attachment
	for _, at := range f.bridges() {
		a := ring.Attachment{Network: at.Network, Priority: at.Priority}
		if r.Internal {
			a.Aliases = sortedSet(append(f.aliases(at), f.s.Name))
		}
		out = append(out, a)
	}
	return out
}

// aliases are those of an attachment that are no name of one container.
func (f *fronting) aliases(at ring.Attachment) []string {
	return slices.DeleteFunc(slices.Clone(at.Aliases), func(name string) bool { return name == f.s.Spec.ContainerName })
}

// strip takes from the service what its front has, so that a change of it rolls no instance.
func (f *fronting) strip(r *ring.Route) {
	s := f.s
	s.Route = r
	spec := &s.Spec
	spec.Ports, spec.Expose = nil, nil
	spec.Labels = pick(spec.Labels, func(label string) bool { return !f.traffic.moves(label) || isOptOut(label, spec.Labels[label]) })
	spec.Environment = pick(spec.Environment, func(name string) bool { return !f.traffic.movesEnv(name) })
	if r.Internal {
		spec.Networks = slices.Clone(spec.Networks)
		fronts := f.bridges()
		for i, at := range spec.Networks {
			if slices.ContainsFunc(fronts, func(n ring.Attachment) bool { return n.Network == at.Network }) {
				kept := slices.DeleteFunc(slices.Clone(at.Aliases), func(name string) bool { return name != spec.ContainerName })
				spec.Networks[i].Aliases, spec.Networks[i].Unnamed = filled(kept), true
			}
		}
	}
	s.Written = ring.WrittenHash(*spec)
	s.Composed = &ring.Composed{Volumes: s.Composed.Volumes, Not: composeNoFront}
}
