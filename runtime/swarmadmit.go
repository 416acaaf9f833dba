package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"github.com/gitring/gitring/ring"
)

// admit says what is on the swarm, and not ours, in the way of an app. It changes nothing.
func (s *Swarm) admit(ctx context.Context, m manager, a ring.Action) (ring.Done, error) {
	if a.Of == nil {
		return ring.Done{}, errors.New("cannot admit an app: the action names none")
	}
	services, err := m.ServiceList(ctx, swarm.ServiceListOptions{})
	if err != nil {
		return ring.Done{}, swarmFault("cannot list services of the swarm", err)
	}
	networks, err := m.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return ring.Done{}, swarmFault("cannot list networks of the swarm", err)
	}
	nodes, err := m.NodeList(ctx, swarm.NodeListOptions{})
	if err != nil {
		return ring.Done{}, swarmFault("cannot list nodes of the swarm", err)
	}
	all := append(admitOnSwarm(s.docker.opts.Host, a, services, networks), pinsOnSwarm(a, nodes)...)
	if len(all) == 0 {
		return ring.Done{}, nil
	}
	r := joined(all)
	return ring.Done{}, &ring.EngineError{Cause: ring.CauseConfig, Refusal: r, Err: r, Wait: askAgain}
}

// admitOnSwarm is why an app cannot be carried out beside what is on a swarm.
func admitOnSwarm(cluster string, a ring.Action, services []swarm.Service, networks []network.Summary) (all []*ring.Refusal) {
	for i := range a.Of.Services {
		name := swarmServiceName(a.App, a.Of.Services[i].Name)
		foreign := func(s swarm.Service) bool { return s.Spec.Name == name && !ownService(cluster, a.App, &s) }
		if slices.ContainsFunc(services, foreign) {
			at := a.Of.Services[i].Place("image")
			all = append(all, no(a, ring.ForeignProject, &at, notOurs(name), notOursHint(name)))
		}
		global := a.Of.Services[i].Spec.OnEachNode()
		other := func(s swarm.Service) bool {
			return s.Spec.Name == name && ownService(cluster, a.App, &s) && (s.Spec.Mode.Global != nil) != global
		}
		if slices.ContainsFunc(services, other) {
			at := a.Of.Services[i].Place("deploy.mode")
			all = append(all, no(a, ring.Conflict, &at, fmt.Sprintf("Swarm cannot change the mode of service %s, which is on the swarm", name),
				"give it another name; or take it out with one commit, and add it anew with the next"))
		}
	}
	for _, n := range joinedNetworks(a.Of) {
		all = append(all, networkOnSwarm(cluster, a, n, networks)...)
	}
	return all
}

// ownService reports whether a service of a swarm is one that gitring made for an app.
func ownService(cluster, app string, s *swarm.Service) bool {
	l := s.Spec.Labels
	return l[labelHost] == cluster && l[labelApp] == app && swarmServiceName(app, l[labelService]) == s.Spec.Name
}

func notOurs(service string) string {
	return fmt.Sprintf("a service %s is on the swarm, and gitring did not make it", service)
}

func notOursHint(service string) string {
	return "docker service rm " + service + ", or give the app another name"
}

// networkOnSwarm is why an app cannot join a network as it is.
func networkOnSwarm(cluster string, a ring.Action, n networkUse, networks []network.Summary) []*ring.Refusal {
	name := n.EngineName(a.App)
	spanning := slices.DeleteFunc(slices.Clone(networks), func(x network.Summary) bool { return x.Scope != swarmScope })
	onNode := func(x network.Summary) bool { return x.Name == name && x.Scope != swarmScope }
	there := slices.ContainsFunc(spanning, func(x network.Summary) bool { return x.Name == name })
	switch {
	case !there && slices.ContainsFunc(networks, onNode):
		return one(no(a, ring.BadValue, n.at, fmt.Sprintf("network %s is of one node and not of the swarm", name),
			"give the network another name, or docker network rm "+name))
	case !there && n.External != "" && !slices.Contains(a.Coming, name) && a.Makers[name] == "":
		return one(no(a, ring.BadValue, n.at, fmt.Sprintf("network %s is external and not on this swarm", name),
			"docker network create --driver overlay "+name+", or take external out, and gitring makes it"))
	}
	for i := range spanning {
		spanning[i].Attachable = true // which only containers need
	}
	return beside{host: cluster, networks: spanning}.network(a, n)
}

// pinsOnSwarm refuses services that write and are pinned to no node that there is, or by a name
// that two nodes have: on each of them is another volume.
func pinsOnSwarm(a ring.Action, nodes []swarm.Node) (all []*ring.Refusal) {
	for i := range a.Of.Services {
		s := &a.Of.Services[i]
		by, want, _ := strings.Cut(s.Spec.PinnedTo(), "==")
		want = strings.TrimSpace(want)
		if want == "" || !slices.ContainsFunc(a.Of.Mounts(s), ring.Mount.Outlives) {
			continue
		}
		var fit, there []string
		for _, n := range nodes {
			name := n.Description.Hostname
			there = append(there, n.ID+" ("+name+")")
			if byID := strings.EqualFold(strings.TrimSpace(by), "node.id"); byID && strings.EqualFold(n.ID, want) || !byID && strings.EqualFold(name, want) {
				fit = append(fit, n.ID)
			}
		}
		slices.Sort(fit)
		slices.Sort(there)
		at := s.Place("deploy.placement.constraints")
		switch says := fmt.Sprintf("services.%s writes a volume and is pinned to %s", s.Name, s.Spec.PinnedTo()); {
		case len(fit) == 0:
			all = append(all, no(a, ring.VolumeNotPinned, &at, says+", which no node of the swarm is", "name one of "+strings.Join(there, ", ")))
		case len(fit) > 1:
			all = append(all, no(a, ring.VolumeNotPinned, &at, fmt.Sprintf("%s, a name of %d nodes", says, len(fit)), "pin it by node.id, to one of "+strings.Join(fit, ", ")))
		}
	}
	return all
}
