package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"

	"github.com/gitring/gitring/ring"
)

// makeNetwork creates a network of an app unless one of that name is there.
// One without labels is used as it is; one of another host's gitring is not.
// Whether there is one is not asked before: the look that decided the step saw
// none, and the engine makes no second one of a name.
func (d *Docker) makeNetwork(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	if a.Network.External != "" {
		done, err := d.useNetwork(ctx, e, a)
		if err != nil || done.Note != "" {
			return done, err
		}
		return ring.Done{}, refused(a, ring.CauseNetwork, ring.BadValue,
			fmt.Sprintf("network %s is external and not on this host", a.NetworkName),
			"docker network create "+a.NetworkName+", or take external out, and gitring makes it")
	}
	err := d.allow(a, networkRequest(d.opts.Host, a.App, *a.Network, a.NetworkName))
	if err == nil {
		err = d.takesNothing(ctx, e, a)
	}
	if err == nil {
		_, err = e.NetworkCreate(ctx, a.NetworkName, networkPayload(d.opts.Host, a.App, *a.Network))
		if err == nil {
			return ring.Done{}, nil
		}
		err = notMade(a, err)
	}
	// It may be there: made meanwhile, or by a step whose answer was lost.
	n, there, cannotList := d.network(ctx, e, a.NetworkName)
	if cannotList != nil || !there {
		return ring.Done{}, err
	}
	return d.usable(a, n)
}

// takesNothing refuses a network that would take of the host's own: the host's network
// may have changed since the app was admitted. Name servers are asked about there alone,
// because the host may ask what runs on the app's own network.
func (d *Docker) takesNothing(ctx context.Context, e engine, a ring.Action) error {
	if len(a.Network.Pools) == 0 || d.ownerHost() {
		return nil
	}
	nets, err := d.nets(ctx, e)
	if err != nil {
		return err
	}
	nets.servers = nil
	if !nets.clashes(newSubnets(a.App, *a.Network, a.NetworkName, nil)) {
		return nil // so nobody has to be asked which bridges are the engine's
	}
	here, err := e.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return fault("cannot list networks", ring.CauseNetwork, err)
	}
	nets = nets.withoutBridges(here)
	for _, subnet := range newSubnets(a.App, *a.Network, a.NetworkName, here) {
		if takes, _ := nets.clash(subnet); takes != "" {
			f := refused(a, ring.CauseNetwork, ring.PolicyDenied, fmt.Sprintf("networks.%s.ipam.config %s: takes %s", a.Network.Key, subnet, takes), insteadOfSubnet)
			f.Permanent = false // the host may let go of it
			return f
		}
	}
	return nil
}

// notMade is what the engine says when it makes no network. Where the commit wrote no
// subnet the pool that overlaps is the engine's own choice: two that choose at once
// meet there, and the next choice is another one.
func notMade(a ring.Action, err error) error {
	f := fault("cannot create network "+a.NetworkName, ring.CauseNetwork, err)
	if text := strings.ToLower(err.Error()); !strings.Contains(text, "pool overlaps") && !strings.Contains(text, "is already used on the host or by another config") {
		return f
	}
	if !slices.ContainsFunc(a.Network.Pools, func(p ring.Pool) bool { return p.Subnet != "" }) {
		return f
	}
	f.Refusal = refused(a, "", ring.Conflict,
		fmt.Sprintf("the subnet of network %s overlaps with another network of this host", a.Network.Key),
		"choose another subnet, or leave ipam out").Refusal
	return f
}

// useNetwork says, by a note, that a network of the action's name can be used.
func (d *Docker) useNetwork(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	n, ok, err := d.network(ctx, e, a.NetworkName)
	if err != nil || !ok {
		return ring.Done{}, err
	}
	return d.usable(a, n)
}

// usable says the same of a network that is there.
func (d *Docker) usable(a ring.Action, n network.Summary) (ring.Done, error) {
	owner, ours := n.Labels[labelHost]
	switch {
	case a.Network.External != "":
		return ring.Done{Note: "an external network"}, nil
	case !ours:
		return ring.Done{Note: "a network of that name was there, it is used and never changed"}, nil
	case owner != d.opts.Host || n.Labels[labelApp] != a.App:
		return ring.Done{}, refused(a, ring.CauseNetwork, ring.Conflict,
			fmt.Sprintf("network %s belongs to app %s of host %s", a.NetworkName, n.Labels[labelApp], owner), "rename the app or the network")
	case n.Labels[labelDefinition] != a.Network.Definition():
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseNetwork, Err: fmt.Errorf(
			"cannot create network %s: one with another definition is there", a.NetworkName)}
	}
	return ring.Done{Note: "already present"}, nil
}

// network finds a network by its exact name.
func (d *Docker) network(ctx context.Context, e engine, name string) (network.Summary, bool, error) {
	// The engine's filter takes any part of a name.
	list, err := e.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("name", name))})
	if err != nil {
		return network.Summary{}, false, fault("cannot list networks", ring.CauseNetwork, err)
	}
	for _, n := range list {
		if n.Name == name {
			return n, true, nil
		}
	}
	return network.Summary{}, false, nil
}

// removeNetwork removes a network of ours by its ID. Gone already is fine, in
// use is for later.
func (d *Docker) removeNetwork(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	cannot := "cannot remove network " + a.NetworkName
	n, ok, err := d.network(ctx, e, a.NetworkName)
	if err != nil {
		return ring.Done{}, err
	}
	if !ok {
		return ring.Done{Note: "already gone"}, nil
	}
	if n.Labels[labelHost] != d.opts.Host || n.Labels[labelApp] != a.App {
		return ring.Done{}, &ring.EngineError{Permanent: true, Err: fmt.Errorf("%s: it is not ours", cannot)}
	}
	err = e.NetworkRemove(ctx, n.ID)
	if err != nil && !cerrdefs.IsNotFound(err) {
		f := fault(cannot, ring.CauseNetwork, err)
		f.Permanent = false
		return ring.Done{}, f
	}
	return ring.Done{}, nil
}

// ownerHost reports whether the policy says that the signers own the host.
func (d *Docker) ownerHost() bool { return d.opts.OwnerHost != nil && d.opts.OwnerHost() }
