package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// networkNames is the engine's name of each network of an app. A definition that
// changed gets a network of its own; the old one goes with its last instance.
// All that ask share the answer, and change nothing in it.
func (t *Pass) networkNames(app *ring.App) map[string]string {
	if len(app.Networks) == 0 {
		return map[string]string{}
	}
	first := &app.Networks[0] // copies of a plan have one list
	if out, ok := t.by.names[first]; ok {
		return out
	}
	out := make(map[string]string, len(app.Networks))
	for i := range app.Networks {
		n := &app.Networks[i]
		out[n.Key] = t.networkName(app.Name, n)
	}
	if t.by.names == nil {
		t.by.names = map[*ring.Network]map[string]string{}
	}
	t.by.names[first] = out
	return out
}

func (t *Pass) networkName(app string, n *ring.Network) string {
	if n.External != "" {
		return n.External
	}
	plain, definition := n.EngineName(app), t.networkDefinition(n)
	name := ""
	by := t.networksBy()
	for _, s := range by.of[app] {
		if s.Key == n.Key && s.Definition == definition && (name == "" || s.Name < name) {
			name = s.Name
		}
	}
	for _, a := range by.making[app] {
		if name == "" && a.Network.Key == n.Key && a.Network.Definition() == definition {
			return a.NetworkName // being made, whatever went meanwhile
		}
	}
	switch {
	case name != "":
		return name
	case by.there[plain]:
		return plain + "_" + definition
	}
	return plain
}

// networksMissing creates the networks that s joins and that are not there; it
// says whether s has to wait for one.
func (t *decider) networksMissing(app *ring.App, s *ring.Service) bool {
	missing := false
	for _, at := range s.Spec.Networks {
		n, ok := app.Network(at.Network)
		if !ok {
			continue
		}
		if n.External != "" {
			missing = missing || t.makerAwaited(n.External) != ""
			continue
		}
		name := t.networkNames(app)[n.Key]
		if t.isBusy("network " + name) {
			missing = true // it is being made, or removed
			continue
		}
		if _, there := t.networksBy().there[name]; there {
			continue
		}
		missing = true
		made := n // one that is there is not copied
		t.addStep(ring.Action{
			Kind: ring.DoNetwork, App: app.Name, Service: s.Name, Commit: app.Commit, Network: &made, NetworkName: name,
			Reason: say("network %s is not there", name),
		})
	}
	return missing
}

// unmadeReason is why a network that s joins is not there; "" where none was refused.
func (t *Pass) unmadeReason(app *ring.App, s *ring.Service) string {
	for _, at := range s.Spec.Networks {
		name := t.networkNames(app)[at.Network]
		if maker := t.makerAwaited(name); maker != "" && maker != app.Name {
			return say("waits for network %s, which app %s makes", name, maker)
		}
		if _, there := t.networksBy().there[name]; there {
			continue
		}
		if try, ok := t.Tries["network "+name]; ok && try.Kind == ring.DoNetwork && try.Err != "" {
			return withHint(try)
		}
	}
	return ""
}

// makerAwaited is the app in force that makes a network which is not there yet; "" for none.
func (t *Pass) makerAwaited(name string) string {
	if _, there := t.networksBy().there[name]; there {
		return ""
	}
	if t.by.makers == nil {
		t.by.makers = map[string]string{}
		for _, app := range sortedKeys(t.Facts.Apps) {
			f := t.Facts.Apps[app]
			for _, made := range NetworksMadeBy(&f.App) {
				t.by.makers[made] = app
			}
		}
	}
	return t.by.makers[name]
}

// NetworksMadeBy are the networks, by the engine's names, that the services of an app join
// and that it makes.
func NetworksMadeBy(app *ring.App) (names []string) {
	for i := range app.Networks {
		n := &app.Networks[i]
		joins := func(s ring.Service) bool {
			return s.Replicas > 0 && slices.ContainsFunc(s.Spec.Networks, func(at ring.Attachment) bool { return at.Network == n.Key })
		}
		if n.External == "" && slices.ContainsFunc(app.Services, joins) {
			names = append(names, n.EngineName(app.Name))
		}
	}
	return names
}

// definesNetwork reports whether an app has the network, with the definition that it was made from.
func (t *Pass) definesNetwork(app *ring.App, n ring.SeenNetwork) bool {
	i := slices.IndexFunc(app.Networks, func(def ring.Network) bool { return def.Key == n.Key })
	return i >= 0 && t.networkDefinition(&app.Networks[i]) == n.Definition
}
