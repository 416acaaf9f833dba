package manifest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// claims refuses every app whose name another one claims too: which of them
// runs is not for a sort order to decide. names are, by app, the folders that have their
// names already: the app there keeps it. One that the host denies anyway takes no name
// from the others.
func claims(outcomes []outcome, names map[string]string, denies deniesFunc) {
	by := map[string][]int{}
	for i, o := range outcomes {
		if o.faults.none() {
			by[o.name] = append(by[o.name], i)
		}
	}
	for name, of := range by {
		if len(of) < 2 {
			continue
		}
		first, second := outcomes[of[0]], outcomes[of[1]]
		holder, held := names[name]
		held = held && slices.ContainsFunc(of, func(i int) bool { return path.Clean(outcomes[i].path) == holder })
		left := of
		if !held {
			left = slices.DeleteFunc(slices.Clone(of), denies)
		}
		for _, i := range of {
			if held && path.Clean(outcomes[i].path) == holder || len(left) == 1 && left[0] == i {
				continue
			}
			at := second.at
			if held || len(left) == 1 {
				at = outcomes[i].at // the one that has the name did nothing
			}
			outcomes[i].faults.add(ring.AppTaken, at, "give one of them another name, with name: in its Compose file or in gitring.yaml",
				"two apps are called %s: %s and %s", name, first.path, second.path)
		}
	}
}

// collisions refuses apps of which two things would have one name on the
// engine: app a with service b-c, and app a-b with service c; or two that make a
// volume of one name:. One that is external in all but one of them is shared, as its
// authors say. held are the apps in force by the names that they have: such an app
// keeps its name, or whoever may write one folder could stop all others by their names.
// A name that holds no data and that both authors chose is left to oneOwner. An app that
// the host denies anyway has only the names that it has in force.
func collisions(outcomes []outcome, held map[string]string, denies deniesFunc) {
	type owner struct {
		i int
		engineName
	}
	names := map[string]owner{}
	found := make([]faults, len(outcomes))
	for i := range outcomes {
		if !outcomes[i].faults.none() {
			continue
		}
		for _, n := range namesOf(&outcomes[i].app) {
			first, twice := names[n.name]
			if !twice {
				names[n.name] = owner{i, n}
				continue
			}
			if first.dataless && n.dataless {
				continue
			}
			keeps := held[n.name]
			if keeps != outcomes[first.i].name && denies(first.i) {
				names[n.name] = owner{i, n}
				continue
			}
			if keeps == "" && denies(i) {
				keeps = outcomes[first.i].name
			}
			says := first.bothCalled(outcomes[first.i].name, n, outcomes[i].name)
			for at, n := range map[int]engineName{first.i: first.engineName, i: n} {
				if keeps == "" || outcomes[at].name != keeps {
					found[at].put(n.clash(outcomes[at], says))
				}
			}
			if outcomes[i].name == keeps {
				names[n.name] = owner{i, n}
			}
		}
	}
	for i := range outcomes {
		outcomes[i].faults.list = append(outcomes[i].faults.list, found[i].list...)
	}
}

// oneOwner refuses each app with a container_name, or a name of a network, that another
// one has: the app in force keeps it, else the first in the order of gitring.yaml or of
// the folders. Repositories hold alternatives, such as one stack with and one without a
// proxy, and Compose runs the one that is started first. One that the host denies anyway
// has none but those that it has in force.
func oneOwner(outcomes []outcome, held map[string]string, denies deniesFunc) {
	type owner struct {
		i int
		engineName
	}
	owners := map[string]owner{}
	for i := range outcomes {
		for _, n := range namesOf(&outcomes[i].app) {
			if n.dataless && held[n.name] != "" && held[n.name] == outcomes[i].name {
				owners[n.name] = owner{i, n}
			}
		}
	}
	for i := range outcomes {
		o := &outcomes[i]
		if !o.faults.none() {
			continue
		}
		var found faults
		mine := namesOf(&o.app)
		for _, n := range mine {
			first, has := owners[n.name]
			if has && n.dataless && held[n.name] != outcomes[first.i].name && denies(first.i) {
				delete(owners, n.name)
				continue
			}
			if n.dataless && has && first.i != i {
				name, why := outcomes[first.i].name, "comes first"
				if held[n.name] == name {
					why = "has it"
				}
				f := n.clash(*o, first.bothCalled(name, n, o.name)+", and app "+name+" "+why)
				f.beside = name
				found.put(f)
			}
		}
		o.faults.list = append(o.faults.list, found.list...)
		for _, n := range mine {
			if _, has := owners[n.name]; n.dataless && !has && o.faults.none() {
				owners[n.name] = owner{i, n}
			}
		}
	}
}

// deniesFunc reports whether the host denies an app by itself, whatever the others are.
type deniesFunc func(i int) bool

// deniesOf asks the host once about an app, and only about those in another's way.
func deniesOf(outcomes []outcome, denied func(*ring.App) bool) deniesFunc {
	known := map[int]bool{}
	return func(i int) bool {
		if denied == nil {
			return false
		}
		if _, asked := known[i]; !asked {
			app := outcomes[i].app
			known[i] = denied(&app)
		}
		return known[i]
	}
}

// bothCalled says that two apps take one name.
func (n engineName) bothCalled(app string, second engineName, other string) string {
	return fmt.Sprintf("%s of app %s and %s of app %s would both be called %s on the engine", n.what, app, second.what, other, n.name)
}

func (n engineName) clash(o outcome, says string) *fault {
	if n.hint == "" {
		return &fault{code: ring.AppTaken, place: o.at, says: says, hint: "rename one of the apps"}
	}
	if strings.HasPrefix(n.name, networkWord) {
		says += "; Compose warns and joins it, where it has the same key"
	}
	return &fault{code: ring.Conflict, place: place{file: n.at.File, line: n.at.Line}, says: says, hint: n.hint}
}

// engineName is a name that an app takes on the engine. One that its author chose
// has its place and what to do about it.
type engineName struct {
	name, what string
	at         ring.Place
	hint       string
	dataless   bool // its author chose it, and nothing is kept under it
}

// networkWord begins the name of a network.
const networkWord = "network "

// EngineNames are the names that an app takes on the engine, as Settings.Held has them.
func EngineNames(a *ring.App) []string {
	var out []string
	for _, n := range namesOf(a) {
		out = append(out, n.name)
	}
	return out
}

// namesOf are without slot and version, which both owners could have alike.
func namesOf(a *ring.App) []engineName {
	var out []engineName
	for _, s := range a.Services {
		out = append(out, engineName{name: "container " + a.Name + "-" + s.Name, what: "service " + s.Name})
		if n := s.Spec.ContainerName; n != "" {
			out = append(out, engineName{"container_name " + n, "service " + s.Name, s.Place("container_name"), "choose another container_name, or leave one of the apps out", true})
		}
	}
	const hint = "choose another name, or say external: true in all apps but the one that makes it"
	for _, n := range a.Networks {
		switch what := "network " + n.Key; {
		case n.Name != "":
			out = append(out, engineName{networkWord + n.Name, what, a.Place("networks." + n.Key + ".name"), hint, true})
		case n.External == "":
			out = append(out, engineName{name: networkWord + ring.NetworkName(a.Name, n.Key), what: what})
		}
	}
	for _, v := range a.Volumes {
		switch what := "volume " + v.Key; {
		case v.Name != "":
			out = append(out, engineName{"volume " + v.Name, what, a.Place("volumes." + v.Key + ".name"), hint, false})
		case v.External == "":
			out = append(out, engineName{name: "volume " + v.EngineName(a.Name), what: what})
		}
	}
	return out
}
