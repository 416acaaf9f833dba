package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// Removals go in reverse order: what depends on something goes before it does,
// in one app and from app to app.

// leavers answers what each service that left its plan is asked: who else leaves, and
// who of those that stay is not settled yet. It is made when the first is asked, after
// every service of a plan was decided.
type leavers struct {
	of    map[string][]ring.ServiceID // by app, its services that left
	after map[string][]string         // by app, those with such services that come after it
	// leans are, by what left, service or app, the places in inOrder of those that
	// depended on it as they last were good and may come back to it.
	leans  map[string][]int
	rivals []*service // that want something which no other can have meanwhile
}

func (t *Pass) findLeavers() *leavers {
	if t.by.leavers != nil {
		return t.by.leavers
	}
	l := &leavers{of: map[string][]ring.ServiceID{}, after: map[string][]string{}, leans: map[string][]int{}}
	t.by.leavers = l
	for _, id := range t.strays {
		app, _ := id.Split()
		if l.of[app] == nil {
			for _, other := range t.Facts.Apps[app].App.After {
				l.after[other.App] = append(l.after[other.App], app)
			}
		}
		l.of[app] = append(l.of[app], id)
	}
	for i, v := range t.inOrder() {
		there := v.rollout.Done && v.rollout.Version == v.want.Version
		if !there && wantsExclusive(v.want) {
			l.rivals = append(l.rivals, v)
		}
		if v.good == nil || v.want.Kind != ring.Worker || v.target == v.want && there {
			continue
		}
		if v.failed != nil && v.good.Service.Version == v.want.Version {
			continue // it comes back to nothing but itself, as the plan has it now
		}
		for _, d := range v.good.Service.DependsOn {
			key := string(ring.ID(v.app.Name, d.Service))
			l.leans[key] = append(l.leans[key], i)
		}
		for _, other := range v.good.App.After {
			if other.App != v.app.Name {
				l.leans[other.App] = append(l.leans[other.App], i)
			}
		}
	}
	return l
}

// neededBy reports whether others which leave too depend on a service, and still have
// instances.
func (t *Pass) neededBy(app, service string) bool {
	left := t.findLeavers()
	for _, a := range left.after[app] {
		if a != app && !t.comesAfterApp(app, a, map[string]bool{}) {
			return true
		}
	}
	for _, id := range left.of[app] {
		_, s := id.Split()
		if s == service {
			continue
		}
		if slices.ContainsFunc(t.seen[id], func(in *instance) bool { return t.tiedTo(in, app, service) }) {
			return true
		}
		if g := t.Facts.Good[id]; g != nil && dependsOn(&g.Service, service) && !t.neededInTurn(app, service, s, map[string]bool{}) {
			return true
		}
	}
	return false
}

// neededInTurn reports whether a service, as it last was good, depends on another at
// whatever distance. Plans of different commits can have two services need each
// other so; neither then waits for the other.
func (t *Pass) neededInTurn(app, service, other string, met map[string]bool) bool {
	if met[service] {
		return false
	}
	met[service] = true
	g := t.Facts.Good[ring.ID(app, service)]
	return g != nil && slices.ContainsFunc(g.Service.DependsOn, func(d ring.Dependency) bool {
		return d.Service == other || t.neededInTurn(app, d.Service, other, met)
	})
}

// comesAfterApp reports whether an app comes after another at whatever distance. Two
// repositories can wait for each other; their removals then do not.
func (t *Pass) comesAfterApp(app, other string, met map[string]bool) bool {
	if met[app] {
		return false
	}
	met[app] = true
	return slices.ContainsFunc(t.Facts.Apps[app].App.After, func(a ring.AfterApp) bool {
		return a.App == other || t.comesAfterApp(a.App, other, met)
	})
}

func dependsOn(s *ring.Service, name string) bool {
	return slices.ContainsFunc(s.DependsOn, func(d ring.Dependency) bool { return d.Service == name })
}

// leaningService is the service of the plan that depended on what left it, as it was last
// good, and has not moved on from that yet: it may come back to it. nil is none, or
// that another takes the place of what left: each would wait for the other.
func (t *Pass) leaningService(id ring.ServiceID) *service {
	app, _ := id.Split()
	if t.isFollowed(id) {
		return nil
	}
	left := t.findLeavers()
	mine, theirs := left.leans[string(id)], left.leans[app]
	switch {
	case len(mine) == 0 && len(theirs) == 0:
		return nil
	case len(theirs) == 0 || len(mine) > 0 && mine[0] < theirs[0]:
		return t.inOrder()[mine[0]]
	}
	return t.inOrder()[theirs[0]]
}

// isFollowed reports whether a service of the plan cannot come up, or not whole, before
// what left is gone.
func (t *Pass) isFollowed(id ring.ServiceID) bool {
	left := t.Facts.Good[id]
	if left != nil && slices.ContainsFunc(t.findLeavers().rivals, func(v *service) bool { return cannotCoexist(v.want, &left.Service) }) {
		return true
	}
	return slices.ContainsFunc(t.seen[id], func(in *instance) bool { return t.isAwaitedAway(id, in) })
}

// wantsExclusive reports whether a service wants something that no other can have meanwhile.
func wantsExclusive(s *ring.Service) bool {
	return s.Spec.ContainerName != "" || len(s.Spec.Ports) > 0 ||
		slices.ContainsFunc(s.Spec.Networks, func(n ring.Attachment) bool { return n.IPv4 != "" || n.IPv6 != "" })
}

// cannotCoexist reports whether two services cannot run at once, because both want one port,
// one name of the host or one address.
func cannotCoexist(s, old *ring.Service) bool {
	if s.Spec.ContainerName != "" && s.Spec.ContainerName == old.Spec.ContainerName {
		return true
	}
	if slices.ContainsFunc(s.Spec.Networks, func(n ring.Attachment) bool {
		return slices.ContainsFunc(old.Spec.Networks, func(o ring.Attachment) bool {
			return n.IPv4 != "" && n.IPv4 == o.IPv4 || n.IPv6 != "" && n.IPv6 == o.IPv6
		})
	}) {
		return true
	}
	return slices.ContainsFunc(s.Spec.Ports, func(p ring.Port) bool {
		return slices.ContainsFunc(old.Spec.Ports, p.Clashes)
	})
}

// leanedSays is why what left the plan stays, where nothing is under way that it
// waits for; "" where it does not.
func (t *Pass) leanedSays(id ring.ServiceID) string {
	v := t.leaningService(id)
	if v == nil || v.failed == nil {
		return ""
	}
	return say("not in the plan; stays for %s, which depended on it and failed: %s", v.id, v.failed.Reason)
}
