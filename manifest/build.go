package manifest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

func (a *appReader) note(says string, args ...any) {
	a.notes = append(a.notes, fmt.Sprintf(says, args...))
}

// build makes the app of what compose-go understood.
func (a *appReader) build(p *types.Project) ring.App {
	app := ring.App{
		Name: a.name, Source: a.settings.Source, Commit: a.commit.SHA,
		Path: a.from.path, Files: a.from.files, Services: []ring.Service{},
	}
	if e := a.from.entry; e != nil {
		app.NoPrune, app.Hold = e.noPrune, e.hold
		for _, w := range e.after {
			app.After = append(app.After, w.AfterApp)
		}
	}
	b := &builderOf{appReader: a, project: p, extras: map[string]*extras{}, volumes: map[string]bool{}, networks: map[string]bool{}}
	if b.consistent(); !a.faults.none() {
		return ring.App{}
	}
	names := sortedKeys(p.Services)
	for _, name := range names {
		b.extras[name] = a.extrasOf(name)
	}
	for _, name := range names {
		app.Services = append(app.Services, b.service(p.Services[name]))
	}
	app.Networks, app.Volumes = b.appNetworks(), b.appVolumes()
	b.checkAddresses(app)
	b.checkHostPorts(app)
	b.checkWriters(app)
	app.Notes = a.notes
	return app
}

// builderOf builds one app's services.
type builderOf struct {
	*appReader
	project *types.Project
	extras  map[string]*extras
	// volumes and networks that some service uses: others are not made.
	volumes, networks map[string]bool
}

func (b *builderOf) appVolumes() []ring.Volume {
	var out []ring.Volume
	for _, key := range sortedKeys(b.volumes) {
		out = append(out, ring.Volume{Key: key, Labels: labels(b.project.Volumes[key].Labels)})
	}
	return out
}

func (b *builderOf) appNetworks() []ring.Network {
	var out []ring.Network
	taken := map[netip.Prefix]string{} // the engine takes no address twice
	for _, key := range sortedKeys(b.networks) {
		n := b.project.Networks[key]
		to := ring.Network{Key: key, Driver: n.Driver, Internal: n.Internal, Labels: labels(n.Labels)}
		if to.Driver == "bridge" {
			to.Driver = "" // equal definitions are equal values
		}
		if n.EnableIPv6 != nil {
			to.IPv6 = *n.EnableIPv6
		}
		for i, pool := range n.Ipam.Config {
			if pool != nil {
				to.Pools = append(to.Pools, b.pool(key, i, pool))
				b.overlap(key, i, pool.Subnet, taken)
			}
		}
		out = append(out, to)
	}
	return out
}

// linkLocal is where clouds answer with credentials; no app network may claim it.
var linkLocal = netip.MustParsePrefix("169.254.0.0/16")

func (b *builderOf) pool(network string, i int, p *types.IPAMPool) ring.Pool {
	at := func(key string) place {
		return b.place("networks", network, "ipam", "config", fmt.Sprint(i), key)
	}
	subnet, err := netip.ParsePrefix(p.Subnet)
	switch {
	case err != nil:
		b.faults.add(ring.BadValue, at("subnet"), "write a subnet such as 10.90.0.0/24", "networks.%s subnet %q is no subnet", network, head(p.Subnet))
		return ring.Pool{}
	case subnet.Overlaps(linkLocal):
		b.faults.add(ring.PolicyDenied, at("subnet"), "choose another subnet", "networks.%s subnet %s takes addresses at which clouds give out credentials", network, subnet)
	}
	if g, err := netip.ParseAddr(p.Gateway); p.Gateway != "" && (err != nil || !subnet.Contains(g)) {
		b.faults.add(ring.BadValue, at("gateway"), "write an address of the subnet", "networks.%s gateway %q is no address of %s", network, head(p.Gateway), subnet)
	}
	if r, err := netip.ParsePrefix(p.IPRange); p.IPRange != "" && (err != nil || !subnet.Overlaps(r) || r.Bits() < subnet.Bits()) {
		b.faults.add(ring.BadValue, at("ip_range"), "write a range inside the subnet", "networks.%s ip_range %q is no range of %s", network, head(p.IPRange), subnet)
	}
	return ring.Pool{Subnet: p.Subnet, Gateway: p.Gateway, IPRange: p.IPRange}
}

func (b *builderOf) overlap(network string, i int, text string, taken map[netip.Prefix]string) {
	subnet, err := netip.ParsePrefix(text)
	if err != nil {
		return
	}
	if len(taken) >= b.limits.Entries { // each is held against each
		b.faults.add(ring.TooLarge, b.place("networks", network), "declare fewer subnets", "the app has more than %d subnets", b.limits.Entries)
		return
	}
	for _, other := range slices.SortedFunc(maps.Keys(taken), netip.Prefix.Compare) {
		if other.Overlaps(subnet) {
			b.bad(b.place("networks", network, "ipam", "config", fmt.Sprint(i), "subnet"), "choose another subnet",
				"networks.%s subnet %s overlaps %s of network %s", network, subnet, other, taken[other])
		}
	}
	taken[subnet] = network
}

// checkAddresses refuses static addresses that the engine would refuse.
func (b *builderOf) checkAddresses(app ring.App) {
	taken := map[string]string{}
	for _, s := range app.Services {
		for _, at := range s.Spec.Networks {
			b.staticAddress(app, s, at, "ipv4_address", at.IPv4, taken)
			b.staticAddress(app, s, at, "ipv6_address", at.IPv6, taken)
		}
	}
}

func (b *builderOf) staticAddress(app ring.App, s ring.Service, at ring.Attachment, key, address string, taken map[string]string) {
	if address == "" {
		return
	}
	where := b.place("services", s.Name, "networks", at.Network, key)
	bad := func(hint, says string, args ...any) {
		b.faults.add(ring.BadValue, where, hint, "services.%s %s", s.Name, fmt.Sprintf(says, args...))
	}
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Is4() != (key == "ipv4_address") {
		bad("write one address", "%s %q is no address", key, head(address))
		return
	}
	if s.Replicas > 1 {
		bad("remove the address, or run one replica", "%s %s cannot be shared by %d replicas", key, address, s.Replicas)
	}
	if first, twice := taken[at.Network+" "+ip.String()]; twice {
		bad("give each service its own address", "%s %s is that of %s too", key, address, first)
	}
	taken[at.Network+" "+ip.String()] = s.Name
	n, _ := app.Network(at.Network)
	if !slices.ContainsFunc(n.Pools, func(p ring.Pool) bool {
		subnet, err := netip.ParsePrefix(p.Subnet)
		return err == nil && subnet.Contains(ip)
	}) {
		bad("declare ipam: {config: [{subnet: …}]} of the network, with this address in it", "%s %s lies in no subnet of network %s", key, address, at.Network)
	}
}

// checkHostPorts refuses one host port for two services, and for two replicas.
func (b *builderOf) checkHostPorts(app ring.App) {
	taken := map[string]string{}
	for _, s := range app.Services {
		for _, p := range s.Spec.Ports {
			if p.HostPort == "" {
				continue
			}
			at := b.portPlace(s.Name, p.HostPort)
			if s.Replicas > 1 {
				b.faults.add(ring.Unsupported, at, "run one replica, or leave the host port out; a route (x-gitring route) comes with a later release",
					"services.%s host port %s cannot be published by %d replicas without a route", s.Name, p.HostPort, s.Replicas)
			}
			key := p.HostIP + " " + p.HostPort + "/" + p.Protocol
			if first, twice := taken[key]; twice {
				b.faults.add(ring.BadValue, at, "publish one of them on another port", "services.%s host port %s is published by %s too", s.Name, p.HostPort, first)
			}
			taken[key] = s.Name
		}
	}
}

// checkWriters refuses replicas that would all write one volume or data folder:
// nothing that holds data is started twice.
func (b *builderOf) checkWriters(app ring.App) {
	for _, s := range app.Services {
		if s.Replicas < 2 || s.Share {
			continue
		}
		for _, m := range s.Spec.Mounts {
			if m.Outlives() && !strings.Contains(m.Source, "{slot}") {
				b.bad(b.place("services", s.Name), "run one replica; or, if the software can share it, say x-gitring: {share: true}",
					"services.%s has %d replicas that would all write %s", s.Name, s.Replicas, m.Target)
				break
			}
		}
	}
}

// portPlace is the entry of ports that names the host port.
func (b *builderOf) portPlace(service, port string) place {
	return b.entryPlace(service, "ports", func(n *node) bool {
		if n.kind == scalar {
			rest, _ := cutLast(n.text)
			_, host := cutLast(rest)
			return host == port
		}
		return textOf(n.get("published")) == port
	})
}

// entryPlace finds an entry of a service's list; the key itself when none fits,
// as for one port of a range.
func (a *appReader) entryPlace(service, key string, fits func(*node) bool) place {
	for _, f := range slices.Backward(a.files) {
		n, _, _ := f.root.at([]string{"services", service, key})
		if n.kind != list {
			continue
		}
		for _, it := range n.items {
			if fits(it) {
				return it.place
			}
		}
	}
	return a.place("services", service, key)
}

func labels(l types.Labels) map[string]string {
	if len(l) == 0 {
		return nil
	}
	return map[string]string(l)
}

func sortedSet(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	out := slices.Clone(words)
	sort.Strings(out)
	return slices.Compact(out)
}
