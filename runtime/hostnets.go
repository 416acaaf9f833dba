package runtime

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/network"

	"github.com/gitring/gitring/ring"
)

// hostNets is the host's own network, as gitring sees it. The zero value is of a
// host that is not seen: nothing is judged by it.
type hostNets struct {
	attached []attachedNet
	routes   []hostRoute
	servers  []netip.Addr // where the host asks for names
}

// attachedNet is a network that the host reaches without a gateway.
type attachedNet struct {
	prefix  netip.Prefix
	address netip.Addr // the host's own in it; zero where it has none
	device  string
	idle    bool // nobody is on it: the device has no carrier
}

// hostRoute is a route of the host through a gateway, or onto a device that has no
// address in it, such as a tunnel's.
type hostRoute struct {
	prefix netip.Prefix
	device string
}

// leftBridge is how Docker names a bridge. One that no network of the engine has and
// nobody is on is left over from an engine that lost its own files.
var leftBridge = regexp.MustCompile(`^br-[0-9a-f]{12}$`)

// withoutBridges leaves out what belongs to networks of the engine: it refuses by itself
// what overlaps with those.
func (h hostNets) withoutBridges(all []network.Summary) hostNets {
	ours := map[string]bool{"docker0": true, "docker_gwbridge": true}
	for _, n := range all {
		ours["br-"+n.ID[:min(12, len(n.ID))]] = true
		if name := n.Options["com.docker.network.bridge.name"]; name != "" {
			ours[name] = true
		}
	}
	engines := func(device string) bool {
		return ours[device] || strings.HasPrefix(device, "podman") || strings.HasPrefix(device, "cni-podman")
	}
	h.attached = slices.DeleteFunc(slices.Clone(h.attached), func(n attachedNet) bool {
		return engines(n.device) || n.idle && leftBridge.MatchString(n.device)
	})
	h.routes = slices.DeleteFunc(slices.Clone(h.routes), func(r hostRoute) bool { return engines(r.device) })
	return h
}

// clash is what of the host's own a new subnet would take, and what is only worth
// telling; "" is nothing.
func (h hostNets) clash(subnet netip.Prefix) (takes, told string) {
	subnet = subnet.Masked()
	for _, n := range h.attached {
		switch {
		case n.address.IsValid() && subnet.Contains(n.address):
			return fmt.Sprintf("the host's own address %s (%s)", n.address, n.device), ""
		case subnet.Overlaps(n.prefix):
			return fmt.Sprintf("a part of %s, to which the host is attached (%s)", n.prefix, n.device), ""
		}
	}
	for _, s := range h.servers {
		if subnet.Contains(s) {
			return fmt.Sprintf("the host's name server %s", s), ""
		}
	}
	for _, r := range h.routes {
		if r.prefix.Bits() == 0 || !subnet.Overlaps(r.prefix) {
			continue
		}
		return "", fmt.Sprintf("the host's route to %s (%s)", r.prefix, r.device)
	}
	return "", ""
}

// clashes reports whether any of the subnets would take something of the host's own.
func (h hostNets) clashes(subnets []netip.Prefix) bool {
	return slices.ContainsFunc(subnets, func(s netip.Prefix) bool {
		takes, _ := h.clash(s)
		return takes != ""
	})
}

// newSubnets are those of an app's network that the engine does not have yet for the app.
func newSubnets(app string, n ring.Network, name string, here []network.Summary) []netip.Prefix {
	var out []netip.Prefix
	for _, pool := range n.Pools {
		p, err := netip.ParsePrefix(pool.Subnet)
		known := slices.ContainsFunc(here, func(x network.Summary) bool {
			return (x.Name == name || x.Labels[labelApp] == app) && slices.ContainsFunc(x.IPAM.Config, func(c network.IPAMConfig) bool { return c.Subnet == pool.Subnet })
		})
		if err == nil && !known {
			out = append(out, p)
		}
	}
	return out
}

// hostsOwn judges the subnets of one network of an app by the host's own network.
func (b beside) hostsOwn(a ring.Action, n networkUse) (told []string, all []*ring.Refusal) {
	if n.External != "" {
		return nil, nil
	}
	nets := b.nets.withoutBridges(b.networks)
	for _, subnet := range newSubnets(a.App, n.Network, n.EngineName(a.App), b.networks) {
		of := nets
		if hadSubnet(a.Was, subnet) {
			of.servers = nil // it was the app's before: the host asks what runs there
		}
		takes, wider := of.clash(subnet)
		switch {
		case takes != "" && b.ownerHost:
			told = append(told, fmt.Sprintf("network %s takes %s: its subnet is %s", n.Key, takes, subnet))
		case takes != "":
			all = append(all, subnetRefused(a, n.Network, subnet, takes))
		case wider != "":
			told = append(told, fmt.Sprintf("network %s takes a part of %s: its subnet is %s", n.Key, wider, subnet))
		}
	}
	return told, all
}

// hadSubnet reports whether the app in force has a network of that subnet.
func hadSubnet(was *ring.App, subnet netip.Prefix) bool {
	return was != nil && slices.ContainsFunc(was.Networks, func(n ring.Network) bool {
		return slices.ContainsFunc(n.Pools, func(p ring.Pool) bool { return p.Subnet == subnet.String() })
	})
}

func subnetRefused(a ring.Action, n ring.Network, subnet netip.Prefix, takes string) *ring.Refusal {
	at := a.Of.Place("networks." + n.Key + ".ipam.config")
	return no(a, ring.PolicyDenied, &at, fmt.Sprintf("networks.%s.ipam.config %s: takes %s", n.Key, subnet, takes),
		insteadOfSubnet)
}

const insteadOfSubnet = "choose another private subnet, or leave ipam out and the engine chooses; where the signers own the host, policy: {profile: owner} in the daemon's configuration carries it out"
