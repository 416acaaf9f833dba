package manifest

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// attachments are the networks that an instance of c joins, by key.
func (b *builderOf) attachments(c types.ServiceConfig) []ring.Attachment {
	var out []ring.Attachment
	for _, key := range sortedKeys(c.Networks) {
		if _, declared := b.project.Networks[key]; !declared {
			continue // told
		}
		b.networks[key] = true
		at := ring.Attachment{Network: key}
		n := c.Networks[key]
		if n == nil {
			n = &types.ServiceNetworkConfig{}
		}
		aliases := append(slices.Clone(n.Aliases), b.linkAliases(c.Name, key)...)
		if c.ContainerName != "" { // others reach it by that name before it is given
			aliases = append(aliases, c.ContainerName)
		}
		at.Aliases, at.IPv4, at.IPv6 = sortedSet(aliases), n.Ipv4Address, n.Ipv6Address
		at.LinkLocal, at.MacAddress, at.Priority = sortedSet(n.LinkLocalIPs), n.MacAddress, n.Priority
		at.DriverOpts = options(n.DriverOpts)
		out = append(out, at)
	}
	return out
}

// options are nil when there are none: equal values are equal hashes.
func options(o map[string]string) map[string]string {
	if len(o) == 0 {
		return nil
	}
	return o
}

// checkAddresses refuses static addresses that the engine would refuse.
func (b *builderOf) checkAddresses(app ring.App) {
	c := addressCheck{builderOf: b, taken: map[string]string{}}
	for _, s := range app.Services {
		for _, at := range s.Spec.Networks {
			n, _ := app.Network(at.Network)
			c.static(n, s, "ipv4_address", at.IPv4)
			c.static(n, s, "ipv6_address", at.IPv6)
			for _, a := range at.LinkLocal {
				if ip, err := netip.ParseAddr(a); err != nil || !ip.IsLinkLocalUnicast() {
					c.bad(s, n, "link_local_ips", "write addresses such as 169.254.8.8", "%q is no link-local address", head(a))
				}
			}
			if at.MacAddress != "" && !macAddresses.MatchString(at.MacAddress) {
				c.bad(s, n, "mac_address", "write six pairs of hex digits, such as 02:42:ac:11:65:43", "%q is no MAC address", head(at.MacAddress))
			}
			if at.MacAddress != "" && s.Replicas > 1 {
				c.bad(s, n, "mac_address", "remove it, or run one replica", "%s cannot be shared by %d replicas", at.MacAddress, s.Replicas)
			}
		}
	}
}

// addressCheck holds the addresses of each network that are taken, by whom.
type addressCheck struct {
	*builderOf
	taken map[string]string
}

func (c addressCheck) bad(s ring.Service, n ring.Network, key, hint, says string, args ...any) {
	c.faults.add(ring.BadValue, c.place("services", s.Name, "networks", n.Key, key), hint, "services.%s %s %s", s.Name, key, fmt.Sprintf(says, args...))
}

func (c addressCheck) static(n ring.Network, s ring.Service, key, address string) {
	if address == "" {
		return
	}
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Is4() != (key == "ipv4_address") {
		c.bad(s, n, key, "write one address", "%q is no address", head(address))
		return
	}
	if s.Replicas > 1 {
		c.bad(s, n, key, "remove the address, or run one replica", "%s cannot be shared by %d replicas", address, s.Replicas)
	}
	if first, twice := c.taken[n.Key+" "+ip.String()]; twice {
		c.bad(s, n, key, "give each service its own address", "%s is that of %s too", address, first)
	}
	c.taken[n.Key+" "+ip.String()] = s.Name
	if n.External != "" {
		return // its subnets are the engine's to know
	}
	if slices.ContainsFunc(n.Pools, func(p ring.Pool) bool { return p.Subnet == "" }) {
		return // one that is none, which is told
	}
	if !c.lost("networks", n.Key, "ipam") && !slices.ContainsFunc(n.Pools, func(p ring.Pool) bool {
		subnet, err := netip.ParsePrefix(p.Subnet)
		return err == nil && subnet.Contains(ip)
	}) {
		c.bad(s, n, key, "declare ipam: {config: [{subnet: …}]} of the network, with this address in it", "%s lies in no subnet of network %s", address, n.Key)
	}
}

func serviceAlias(k *keyCheck) {
	if k.key.val.asksNothing() {
		k.refuse("false is not carried out by this release", "remove it")
	}
}
