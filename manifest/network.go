package manifest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

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

func ipv4Off(k *keyCheck) {
	if k.key.val.asksNothing() {
		k.refuse("false is not carried out by this release", "remove it")
	}
}

func networkDriver(k *keyCheck) {
	switch d := k.text(); d {
	case "", "bridge":
	case "overlay":
		k.refuse("overlay is Swarm's", "remove it")
	default:
		k.deny("%s reaches the host's own network", head(d))
	}
}

func ipamDriver(k *keyCheck) {
	if d := k.text(); d != "" && d != "default" {
		k.deny("%s is another program of the host", head(d))
	}
}

// ownName lets a network or volume carry the name it has anyway.
func ownName(k *keyCheck) {
	name := k.app + "_" + k.chain[1]
	if n := k.text(); n != "" && n != name {
		k.refuse("%s is not carried out by this release", "remove it; the name will be "+name, head(n))
	}
}
