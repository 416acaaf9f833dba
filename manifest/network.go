package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

func (b *builderOf) appNetworks() []ring.Network {
	var out []ring.Network
	taken := map[netip.Prefix]string{} // the engine takes no address twice
	names := map[string]string{}
	for _, key := range sortedKeys(b.networks) {
		n := b.project.Networks[key]
		to := b.network(key, n)
		for i, pool := range n.Ipam.Config {
			if pool != nil && !bool(n.External) {
				to.Pools = append(to.Pools, b.pool(key, i, pool))
				b.overlap(key, i, pool.Subnet, taken)
			}
		}
		b.sameName("networks", key, n.Name, names)
		out = append(out, to)
	}
	return out
}

// joinOnce has one key for an external network that several keys name, as Compose has one
// attachment for it: files say `default` and `proxy` for one network, and mean it.
func (b *builderOf) joinOnce() {
	first := map[string]string{}
	for _, key := range sortedKeys(b.project.Networks) {
		n := b.project.Networks[key]
		if !n.External {
			continue
		}
		kept, twice := first[n.Name]
		if !twice {
			first[n.Name] = key
			continue
		}
		delete(b.project.Networks, key)
		b.note("networks %s and %s are both %s, which is joined once", kept, key, n.Name)
		for _, name := range sortedKeys(b.project.Services) {
			s := b.project.Services[name]
			at, joins := s.Networks[key]
			if !joins {
				continue
			}
			s.Networks[kept] = joined(s.Networks[kept], at)
			delete(s.Networks, key)
		}
	}
}

// joined is one attachment that says what two say; what only one may say, the first says.
func joined(a, b *types.ServiceNetworkConfig) *types.ServiceNetworkConfig {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	out := *a
	out.Aliases = append(slices.Clone(a.Aliases), b.Aliases...)
	out.LinkLocalIPs = append(slices.Clone(a.LinkLocalIPs), b.LinkLocalIPs...)
	out.Ipv4Address, out.Ipv6Address = cmp.Or(a.Ipv4Address, b.Ipv4Address), cmp.Or(a.Ipv6Address, b.Ipv6Address)
	out.MacAddress, out.Priority = cmp.Or(a.MacAddress, b.MacAddress), cmp.Or(a.Priority, b.Priority)
	if len(a.DriverOpts) == 0 {
		out.DriverOpts = b.DriverOpts
	}
	return &out
}

// network is all but the addresses. What says the default is left out: equal
// definitions are equal values.
func (b *builderOf) network(key string, n types.NetworkConfig) ring.Network {
	b.engineName("networks", key, n.Name)
	if contains(predefined, n.Name) {
		b.bad(b.place("networks", key, "name"), "remove the network, and say network_mode: "+n.Name+" in the service",
			"networks.%s is the engine's own %s, which no service can join by name", key, n.Name)
	}
	if n.External {
		if b.saysMore("networks", key) {
			b.note("network %s: it is external, so nothing else that is said of it is used", key)
		}
		return ring.Network{Key: key, External: n.Name}
	}
	to := ring.Network{
		Key: key, Driver: unless("bridge", n.Driver), Internal: n.Internal, Labels: labels(n.Labels),
		Name: unless(ring.NetworkName(b.name, key), n.Name), DriverOpts: options(n.DriverOpts),
		IPAMDriver: unless("default", n.Ipam.Driver), IPAMOptions: options(n.Ipam.Options),
	}
	if b.settings.Swarm {
		to.Driver = unless("overlay", to.Driver)
		if _, encrypted := to.DriverOpts["encrypted"]; to.Driver == "" && !encrypted {
			b.note("network %s: what goes from node to node is not encrypted; driver_opts: {encrypted: \"\"} encrypts it", key)
		}
	}
	if n.EnableIPv6 != nil {
		to.IPv6 = *n.EnableIPv6
	}
	if n.Attachable {
		b.note("network %s: attachable lets every app of this host join it", key)
	}
	return to
}

// saysMore of an external network than its name, which Compose reads past.
func (b *builderOf) saysMore(kind, key string) bool {
	for _, f := range b.files {
		n, _, _ := f.root.at([]string{kind, key})
		for _, p := range n.pairs {
			if p.key != "external" && p.key != "name" && !strings.HasPrefix(p.key, "x-") {
				return true
			}
		}
	}
	return false
}

// predefined are the networks that the engine has before anybody makes one.
var predefined = []string{"bridge", "host", "none"}

// unless is s, or "" for the default.
func unless(otherwise, s string) string {
	if s == otherwise {
		return ""
	}
	return s
}

// nameForm are what the engine takes for the name of a volume or network.
var nameForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,254}$`)

func (b *builderOf) engineName(kind, key, name string) {
	if !nameForm.MatchString(name) {
		b.faults.add(ring.BadName, b.place(kind, key, "name"), "use letters, digits, dots, underscores and dashes", "%s.%s: %q cannot be a name", kind, key, head(name))
	}
}

// sameName refuses two keys of one app for one thing of the engine.
func (b *builderOf) sameName(kind, key, name string, taken map[string]string) {
	if first, twice := taken[name]; twice {
		b.bad(b.place(kind, key, "name"), "use the one key in all services", "%s.%s and %s.%s are both %s", kind, first, kind, key, name)
	}
	taken[name] = key
}

func (b *builderOf) pool(network string, i int, p *types.IPAMPool) ring.Pool {
	at := func(key ...string) place {
		return b.place(append([]string{"networks", network, "ipam", "config", fmt.Sprint(i)}, key...)...)
	}
	subnet, err := netip.ParsePrefix(p.Subnet)
	if err != nil {
		b.faults.add(ring.BadValue, at("subnet"), "write a subnet such as 10.90.0.0/24", "networks.%s subnet %q is no subnet", network, head(p.Subnet))
		return ring.Pool{}
	}
	if g, err := netip.ParseAddr(p.Gateway); p.Gateway != "" && (err != nil || !subnet.Contains(g)) {
		b.faults.add(ring.BadValue, at("gateway"), "write an address of the subnet", "networks.%s gateway %q is no address of %s", network, head(p.Gateway), subnet)
	}
	if r, err := netip.ParsePrefix(p.IPRange); p.IPRange != "" && (err != nil || !subnet.Overlaps(r) || r.Bits() < subnet.Bits()) {
		b.faults.add(ring.BadValue, at("ip_range"), "write a range inside the subnet", "networks.%s ip_range %q is no range of %s", network, head(p.IPRange), subnet)
	}
	for _, host := range sortedKeys(p.AuxiliaryAddresses) {
		if a, err := netip.ParseAddr(p.AuxiliaryAddresses[host]); err != nil || !subnet.Contains(a) {
			b.faults.add(ring.BadValue, at("aux_addresses", host), "write an address of the subnet", "networks.%s aux_addresses %s: %q is no address of %s", network, head(host), head(p.AuxiliaryAddresses[host]), subnet)
		}
	}
	return ring.Pool{Subnet: p.Subnet, Gateway: p.Gateway, IPRange: p.IPRange, Aux: options(p.AuxiliaryAddresses)}
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

func ipv4Off(k *keyCheck) {
	if k.key.val.asksNothing() {
		k.refuse("false needs a newer engine's API (1.47)", "remove it")
	}
}

func networkDriver(k *keyCheck) {
	if k.text() == "overlay" && !k.onSwarm() {
		k.refuse("overlay is Swarm's", "remove it, or join an overlay network that is there with external: true")
	}
}
