package manifest

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

func (b *builderOf) attachments(c types.ServiceConfig) (out []ring.Attachment, none bool) {
	if c.NetworkMode == "none" {
		return nil, true
	}
	for _, key := range sortedKeys(c.Networks) {
		b.networks[key] = true
		at := ring.Attachment{Network: key}
		if n := c.Networks[key]; n != nil {
			at.Aliases, at.IPv4, at.IPv6 = sortedSet(n.Aliases), n.Ipv4Address, n.Ipv6Address
		}
		out = append(out, at)
	}
	return out, false
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

func serviceAlias(k *keyCheck) {
	if k.key.val.asksNothing() {
		k.refuse("false is not carried out by this release", "remove it")
	}
}
