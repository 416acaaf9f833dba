package enginetest

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
)

func (m *Client) addNetwork(name string, o network.CreateOptions) *network.Inspect {
	n := &network.Inspect{ID: m.id("network"), Name: name, Created: m.now(), Driver: o.Driver, Internal: o.Internal, Attachable: o.Attachable, Labels: o.Labels}
	if o.IPAM != nil {
		n.IPAM = *o.IPAM
	}
	if n.Scope = "local"; n.Driver == "overlay" {
		n.Scope = "swarm"
	}
	n.EnableIPv6 = o.EnableIPv6 != nil && *o.EnableIPv6
	m.networks[n.ID] = n
	return n
}

// network is one by name or ID; nil when there is none.
func (m *Client) network(ref string) *network.Inspect {
	if n := m.networks[ref]; n != nil {
		return n
	}
	for _, n := range m.networks {
		if n.Name == ref {
			return n
		}
	}
	return nil
}

func (m *Client) mustNetwork(ref string) (*network.Inspect, error) {
	if n := m.network(ref); n != nil {
		return n, nil
	}
	return nil, Refuse(cerrdefs.ErrNotFound, "network %s not found", ref)
}

func (m *Client) NetworkList(ctx context.Context, o network.ListOptions) ([]network.Summary, error) {
	return call(ctx, m, "NetworkList", func() ([]network.Summary, error) {
		list := []network.Summary{}
		for _, n := range m.networks {
			if o.Filters.Len() == 0 || o.Filters.Match("name", n.Name) {
				list = append(list, *n)
			}
		}
		slices.SortFunc(list, func(a, b network.Summary) int { return cmp.Compare(a.Name, b.Name) })
		return list, nil
	})
}

func (m *Client) NetworkCreate(ctx context.Context, name string, o network.CreateOptions) (network.CreateResponse, error) {
	return call(ctx, m, "NetworkCreate", func() (network.CreateResponse, error) {
		if m.network(name) != nil {
			return network.CreateResponse{}, Refuse(cerrdefs.ErrConflict, "network with name %s already exists", name)
		}
		if err := m.room(o); err != nil {
			return network.CreateResponse{}, err
		}
		return network.CreateResponse{ID: m.addNetwork(name, o).ID}, nil
	})
}

// room says whether the engine has addresses for one more network.
func (m *Client) room(o network.CreateOptions) error {
	fromPool := 0
	for _, n := range m.networks {
		if len(n.IPAM.Config) == 0 && n.Driver == network.NetworkBridge && n.Name != network.NetworkBridge {
			fromPool++
		}
	}
	if o.IPAM == nil || len(o.IPAM.Config) == 0 {
		if fromPool >= m.pools {
			return Refuse(cerrdefs.ErrInternal, "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network")
		}
		return nil
	}
	for _, n := range m.networks {
		for _, a := range n.IPAM.Config {
			for _, b := range o.IPAM.Config {
				if overlap(a.Subnet, b.Subnet) {
					return Refuse(cerrdefs.ErrPermissionDenied, "Pool overlaps with other one on this address space")
				}
			}
		}
	}
	return nil
}

func overlap(a, b string) bool {
	x, err1 := netip.ParsePrefix(a)
	y, err2 := netip.ParsePrefix(b)
	return err1 == nil && err2 == nil && x.Overlaps(y)
}

func (m *Client) NetworkConnect(ctx context.Context, ref, id string, e *network.EndpointSettings) error {
	return m.do(ctx, "NetworkConnect", func() error {
		c, err := m.must(id)
		if err != nil {
			return err
		}
		n, err := m.mustNetwork(ref)
		if err != nil {
			return err
		}
		if c.c.NetworkSettings.Networks[n.Name] != nil {
			return Refuse(cerrdefs.ErrPermissionDenied, "endpoint with name %s already exists in network %s", c.name(), n.Name)
		}
		if c.c.HostConfig.NetworkMode.IsNone() {
			return Refuse(cerrdefs.ErrInvalidArgument, "container cannot be connected to multiple networks with one of the networks in private (none) mode")
		}
		if e == nil {
			e = &network.EndpointSettings{}
		}
		e = e.Copy()
		e.NetworkID = n.ID
		if c.c.State.Running {
			e.EndpointID, e.IPAddress = m.id("endpoint"), m.address(e)
		}
		c.c.NetworkSettings.Networks[n.Name] = e
		return nil
	})
}

func (m *Client) NetworkDisconnect(ctx context.Context, ref, id string, _ bool) error {
	return m.do(ctx, "NetworkDisconnect", func() error {
		c, err := m.must(id)
		if err != nil {
			return err
		}
		if c.c.NetworkSettings.Networks[ref] == nil {
			return Refuse(cerrdefs.ErrPermissionDenied, "container %s is not connected to network %s", c.c.ID, ref)
		}
		delete(c.c.NetworkSettings.Networks, ref)
		m.tell(events.Message{
			Type: events.NetworkEventType, Action: events.ActionDisconnect, TimeNano: m.now().UnixNano(),
			Actor: events.Actor{Attributes: map[string]string{"container": c.c.ID, "name": ref, "type": "bridge"}},
		})
		return nil
	})
}

func (m *Client) NetworkRemove(ctx context.Context, id string) error {
	return m.do(ctx, "NetworkRemove", func() error {
		n, err := m.mustNetwork(id)
		if err != nil {
			return err
		}
		var users []string
		for _, c := range m.sorted() {
			for _, e := range c.c.NetworkSettings.Networks {
				if e.NetworkID == n.ID && e.EndpointID != "" {
					users = append(users, c.name())
				}
			}
		}
		if len(users) > 0 {
			return Refuse(cerrdefs.ErrPermissionDenied, "error while removing network: network %s id %s has active endpoints", n.Name, n.ID)
		}
		delete(m.networks, n.ID)
		return nil
	})
}

func (m *Client) VolumeInspect(ctx context.Context, name string) (volume.Volume, error) {
	return call(ctx, m, "VolumeInspect", func() (volume.Volume, error) {
		if m.volumes[name] == nil {
			return volume.Volume{}, Refuse(cerrdefs.ErrNotFound, "get %s: no such volume", name)
		}
		return volume.Volume{Name: name, Labels: m.volumes[name]}, nil
	})
}

func (m *Client) VolumeCreate(ctx context.Context, o volume.CreateOptions) (volume.Volume, error) {
	return call(ctx, m, "VolumeCreate", func() (volume.Volume, error) {
		if strings.ContainsAny(o.Name, "/ ") || len(o.Name) < 2 {
			return volume.Volume{}, Refuse(cerrdefs.ErrInvalidArgument, "%q includes invalid characters for a local volume name", o.Name)
		}
		if m.volumes[o.Name] == nil {
			m.volumes[o.Name] = o.Labels
			if o.Labels == nil {
				m.volumes[o.Name] = map[string]string{}
			}
		}
		return volume.Volume{Name: o.Name, Labels: m.volumes[o.Name], Mountpoint: fmt.Sprintf("/var/lib/docker/volumes/%s/_data", o.Name)}, nil
	})
}
