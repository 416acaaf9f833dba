package manifest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gitring/gitring/ring"
)

// claims refuses every app whose name another one claims too: which of them
// runs is not for a sort order to decide.
func claims(outcomes []outcome) {
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
		for _, i := range of {
			outcomes[i].faults.add(ring.AppTaken, second.at, "give one of them another name, with name: in its Compose file or in gitring.yaml",
				"two apps are called %s: %s and %s", name, first.path, second.path)
		}
	}
}

// collisions refuses apps of which two things would have one name on the
// engine: app a with service b-c, and app a-b with service c.
func collisions(outcomes []outcome) {
	type owner struct {
		i    int
		what string
	}
	names := map[string]owner{}
	taken := map[[2]int]string{}
	for i, o := range outcomes {
		if !o.faults.none() {
			continue
		}
		for _, n := range engineNames(o.app) {
			first, twice := names[n.name]
			if twice && first.i != i {
				taken[[2]int{first.i, i}] = fmt.Sprintf("%s of app %s and %s of app %s would both be called %s on the engine", first.what, outcomes[first.i].name, n.what, o.name, n.name)
			}
			if !twice {
				names[n.name] = owner{i, n.what}
			}
		}
	}
	keys := make([][2]int, 0, len(taken))
	for k := range taken {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, k := range keys {
		for _, i := range k {
			outcomes[i].faults.add(ring.AppTaken, outcomes[i].at, "rename one of the apps", "%s", taken[k])
		}
	}
}

type engineName struct{ name, what string }

// engineNames are the names that an app takes on the engine, without slot and
// version, which both owners could have alike.
func engineNames(a ring.App) []engineName {
	var out []engineName
	for _, s := range a.Services {
		out = append(out, engineName{"container " + a.Name + "-" + s.Name, "service " + s.Name})
	}
	for _, n := range a.Networks {
		out = append(out, engineName{"network " + ring.NetworkName(a.Name, n.Key), "network " + n.Key})
	}
	for _, v := range a.Volumes {
		out = append(out, engineName{"volume " + ring.VolumeName(a.Name, v.Key), "volume " + v.Key})
	}
	return out
}
