package runtime

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/gitring/gitring/ring"
)

// attach puts the instance on its networks, or on none: without a mode the
// engine would put it on its own bridge, where every app meets every other.
func (p *payload) attach(at site, a ring.Action) error {
	s := a.Want.Spec
	if s.NetworkOf != "" || s.NetworkMode != "" {
		return nil // join said where
	}
	p.Host.NetworkMode = network.NetworkNone
	joins, err := attachments(a)
	if err != nil {
		return err
	}
	if len(joins) == 0 {
		return nil
	}
	p.Host.NetworkMode = container.NetworkMode(joins[0].Network)
	if s.MacAddress != "" {
		joins[0].Settings.MacAddress = s.MacAddress
	}
	if !at.can(FurtherAddresses) {
		p.oldAddresses(joins)
	}
	p.Networks = joins
	return nil
}

// oldAddresses says the first network's hardware address where an older engine
// looks for it; it has no place for those of further ones.
func (p *payload) oldAddresses(joins []join) {
	for i, j := range joins {
		switch {
		case j.Settings.MacAddress == "":
		case i == 0:
			p.Config.MacAddress = j.Settings.MacAddress //nolint:staticcheck // an older engine knows no other place
		default:
			p.tell("mac_address on network "+j.Network, FurtherAddresses)
		}
		j.Settings.MacAddress = ""
	}
}

// attachments are the networks of the action's service under the engine's
// names, in the order in which they are joined; none for a service without.
func attachments(a ring.Action) ([]join, error) {
	s := a.Want.Spec
	if s.NoNetwork || s.NetworkOf != "" || s.NetworkMode != "" {
		return nil, nil
	}
	// Stable: among equals the order is manifest's.
	order := slices.SortedStableFunc(slices.Values(s.Networks), func(x, y ring.Attachment) int {
		return cmp.Compare(y.Priority, x.Priority)
	})
	var js []join
	for _, at := range order {
		name := a.Networks[at.Network]
		if name == "" {
			return nil, fmt.Errorf("network %q of service %s has no name on the engine", at.Network, a.Service)
		}
		names := namesOf(a)
		if at.Unnamed {
			names = names[1:]
		}
		js = append(js, join{name, endpoint(names, name, at)})
	}
	return js, nil
}

// namesOf are the names by which every instance of the action's service is reached: first
// the service's, and the one that Compose gives its container. The container itself is called
// after its version too. A container_name is among the aliases of the plan.
func namesOf(a ring.Action) []string {
	if a.Want.Spec.ContainerName != "" || a.Slot == 0 {
		return []string{a.Service}
	}
	return []string{a.Service, ring.ComposeName(a.App, a.Service, a.Slot)}
}

func endpoint(names []string, name string, at ring.Attachment) *network.EndpointSettings {
	e := &network.EndpointSettings{DriverOpts: maps.Clone(at.DriverOpts), MacAddress: at.MacAddress}
	switch name {
	case network.NetworkBridge, network.NetworkHost, network.NetworkNone: // the engine's own know no aliases
	default:
		e.Aliases = slices.Concat(names, at.Aliases)
	}
	if at.IPv4 != "" || at.IPv6 != "" || len(at.LinkLocal) > 0 {
		e.IPAMConfig = &network.EndpointIPAMConfig{IPv4Address: at.IPv4, IPv6Address: at.IPv6, LinkLocalIPs: slices.Clone(at.LinkLocal)}
	}
	return e
}

// networkPayload is what creating a network of an app sends.
func networkPayload(host, app string, n ring.Network) network.CreateOptions {
	o := network.CreateOptions{
		Driver:     cmp.Or(n.Driver, network.NetworkBridge),
		Internal:   n.Internal,
		Attachable: true, // as Compose does: people may join with docker run
		Labels:     networkLabels(host, app, n),
		Options:    maps.Clone(n.DriverOpts),
	}
	if n.IPv6 {
		yes := true
		o.EnableIPv6 = &yes
	}
	if len(n.Pools) == 0 && n.IPAMDriver == "" && len(n.IPAMOptions) == 0 {
		return o
	}
	o.IPAM = &network.IPAM{Driver: n.IPAMDriver, Options: maps.Clone(n.IPAMOptions)}
	for _, p := range n.Pools {
		o.IPAM.Config = append(o.IPAM.Config, network.IPAMConfig{
			Subnet: p.Subnet, Gateway: p.Gateway, IPRange: p.IPRange, AuxAddress: maps.Clone(p.Aux),
		})
	}
	return o
}
