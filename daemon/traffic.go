package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// traffic is what the fronts of this host do, by app and service.
func (d *Daemon) traffic(ctx context.Context, q api.TrafficQuery) ([]api.FrontNow, error) {
	w, err := d.loop.World(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot tell what fronts do: %w", err)
	}
	st, _ := d.loop.Status()
	out := []api.FrontNow{}
	for _, f := range frontsInForce(&w.Facts) {
		if (q.App == "" || f.app == q.App) && (q.Service == "" || f.service.Name == q.Service) {
			out = append(out, d.frontNow(f, &w, &st))
		}
	}
	switch {
	case len(out) > 0 || q.App == "":
		return out, nil
	case q.Service != "" && len(inForce(&w.Facts, q.App, q.Service)) > 0:
		return nil, api.NotFound("gitring traffic lists those that have one", "%s/%s has no front", q.App, q.Service)
	case q.Service == "" && len(inForce(&w.Facts, q.App, "")) > 0:
		return nil, api.NotFound("gitring traffic lists those that have one", "no service of %s has a front", q.App)
	}
	return nil, d.noSuch(q.App, q.Service)
}

// fronted is a service in force that has a front, and that front.
type fronted struct {
	app            string
	service, front ring.Service
}

func (f fronted) id() ring.ServiceID { return ring.ID(f.app, f.service.Name) }

// frontsInForce are the services that have one, by app and name.
func frontsInForce(facts *ring.Facts) (out []fronted) {
	for name, row := range facts.Apps {
		for _, s := range row.App.Services {
			front, ok := row.App.Service(s.HasFront())
			if ok && s.HasFront() != "" && !row.Leaving {
				out = append(out, fronted{name, s, front})
			}
		}
	}
	slices.SortFunc(out, func(a, b fronted) int {
		return cmp.Or(cmp.Compare(a.app, b.app), cmp.Compare(a.service.Name, b.service.Name))
	})
	return out
}

// frontNow is one front as the facts, the engine and the front itself have it.
func (d *Daemon) frontNow(f fronted, w *reconcile.World, st *ring.Status) api.FrontNow {
	out := api.FrontNow{App: f.app, Service: f.service.Name, Ports: []api.PortNow{}, Instances: []api.InstanceNow{}}
	if sv := serviceOfStatus(st, f.app, f.front.Name); sv != nil {
		out.Phase, out.Reason = sv.Phase, sv.Reason
	}
	row := w.Facts.Fronts[f.id()]
	table, seen := &row.Table, ring.FrontSeen{}
	if in := containerOf(w, f, row.Front); in != nil {
		out.Container = in.Name
		seen = w.Fronts[in.ID]
	}
	if seen.Table != nil {
		table = seen.Table
	}
	out.At, out.Generation, out.Told = seen.At, seen.Generation, row.Table.Generation
	out.Build, out.Newest, out.Old = seen.Build, seen.Build != "" && seen.Build == d.upgrades.build(), seen.Old
	out.Connections, out.Queued, out.QueuedSince, out.Cut, out.Full = seen.Connections, seen.Queued, seen.QueuedSince, seen.Cut, seen.Full
	out.Ports = portsNow(f, seen)
	out.Instances = instancesNow(table, seen, w)
	out.Canary = canaryNow(table, out.Instances)
	if sv := serviceOfStatus(st, f.app, f.service.Name); sv != nil && sv.Rollout != nil && out.Canary != nil {
		out.Canary.Says = canarySays(sv.Rollout)
	}
	return out
}

// canarySays is the step under way and what the judge has of it; where a person has to go on,
// how. The reason of a rollout tells of its instances.
func canarySays(r *ring.RolloutStatus) string {
	c := r.Canary
	switch {
	case c == nil || r.Code == ring.WhyAwaitingPromote:
		return r.Reason
	case c.Since.IsZero():
		return fmt.Sprintf("step %d begins when all its instances serve", c.Step)
	case c.Judged == 0:
		return fmt.Sprintf("step %d, not judged yet: %s counted since it began", c.Step, wording.Counted(int(c.Answers), "answer"))
	}
	return fmt.Sprintf("step %d, judged in %s: %.1f %% errors, p99 %d ms", c.Step, wording.Counted(c.Judged, "window"), c.Errors, c.P99)
}

// containerOf is the front's container: the one that acknowledged its table, else one that runs.
func containerOf(w *reconcile.World, f fronted, acknowledged string) *ring.Instance {
	var best *ring.Instance
	for i := range w.Seen.Instances {
		in := &w.Seen.Instances[i]
		switch {
		case in.App != f.app || in.Service != f.front.Name:
		case in.ID == acknowledged:
			return in
		case best == nil || in.State == ring.StateRunning && best.State != ring.StateRunning:
			best = in
		}
	}
	return best
}

func serviceOfStatus(st *ring.Status, app, service string) *ring.ServiceStatus {
	for i := range st.Sources {
		for j := range st.Sources[i].Apps {
			a := &st.Sources[i].Apps[j]
			for k := range a.Services {
				if a.Name == app && a.Services[k].Name == service {
					return &a.Services[k]
				}
			}
		}
	}
	return nil
}

// portsNow are the ports of a front, with where the host has them.
func portsNow(f fronted, seen ring.FrontSeen) []api.PortNow {
	out := []api.PortNow{}
	for _, p := range f.service.Route.Ports {
		now := api.PortNow{Port: p.Port, Protocol: p.Protocol(), Carry: p.Carry}
		for _, at := range seen.Ports {
			if at.Port == p.Port && (at.Carry == ring.CarryUDP) == (p.Carry == ring.CarryUDP) {
				now.Carry, now.Unheard = at.Carry, at.Unheard
			}
		}
		for _, at := range f.front.Spec.Ports {
			if at.Container == p.Port && at.Protocol == p.Protocol() && at.HostPort != "" {
				now.Published = append(now.Published, at.Published())
			}
		}
		out = append(out, now)
	}
	return out
}

// instancesNow are those that a table names.
func instancesNow(table *ring.FrontTable, seen ring.FrontSeen, w *reconcile.World) []api.InstanceNow {
	out := []api.InstanceNow{}
	active := map[string]int{}
	for _, in := range table.Instances {
		if in.State == ring.FrontActive {
			active[setOf(in)]++
		}
	}
	for _, in := range table.Instances {
		now := api.InstanceNow{Name: in.Name, Version: in.Version, State: in.State, Set: setOf(in)}
		if in.State == ring.FrontActive {
			now.Weight = shareOf(now.Set, active, table.CanaryWeight)
		}
		for i := range w.Seen.Instances {
			if x := &w.Seen.Instances[i]; strings.HasPrefix(x.ID, in.Name) || x.Name == in.Name {
				now.Instance = x.Name
			}
		}
		for _, said := range seen.Instances {
			if said.Name == in.Name {
				now.Reached, now.Why, now.InFlight, now.Counts = said.Reached, said.Why, said.InFlight, said.Counts
			}
		}
		now.Errors = api.Failures(&now.Counts)
		now.P50, now.P99 = api.Quantile(now.Counts.Heads, 0.5), api.Quantile(now.Counts.Heads, 0.99)
		out = append(out, now)
	}
	return out
}

func setOf(in ring.FrontInstance) string { return cmp.Or(in.Set, ring.SetStable) }

// shareOf is what one active instance of a set gets of new requests, in percent.
func shareOf(set string, active map[string]int, canary int) float64 {
	share := 100.0
	if active[ring.SetStable] > 0 && active[ring.SetCanary] > 0 {
		if share = float64(canary); set == ring.SetStable {
			share = 100 - share
		}
	}
	return share / float64(active[set])
}

// canaryNow are the two sets, where both are active.
func canaryNow(table *ring.FrontTable, all []api.InstanceNow) *api.CanaryNow {
	if !slices.ContainsFunc(all, func(in api.InstanceNow) bool { return in.Set == ring.SetCanary && in.State == ring.FrontActive }) {
		return nil
	}
	return &api.CanaryNow{Weight: table.CanaryWeight, Stable: api.SetOf(all, ring.SetStable), Canary: api.SetOf(all, ring.SetCanary)}
}
