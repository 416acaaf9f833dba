package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// Diff decides one look. Equal arguments give equal decisions, in whatever
// order instances were seen.
func Diff(w World, now time.Time) Decision {
	t := newDecider(w, now)
	if t.Seen.Cluster.Follows() {
		t.follow()
	} else {
		t.decide()
	}
	return t.decision()
}

// decide asks every rule, in order.
func (t *decider) decide() {
	t.indexSeen()
	t.updateOverrides()
	t.handBack()
	t.undoPlans()
	t.carryMarks()
	t.recordNames()
	for i := range t.Sources {
		t.stagePlan(&t.Sources[i])
	}
	t.followTags()
	t.standIn()
	t.scalePlans()
	t.verifyInForce()
	t.makeViews()
	t.judgeGroups()
	for _, v := range t.inOrder() {
		if !t.givenUp(v) {
			t.decideService(v)
			t.noteSilence(v)
			t.tellFronts(v)
		} else if v.group == nil {
			t.judgeService(v)
		}
	}
	t.askTags()
	t.tidyHost()
	t.rememberPlans()
	t.imagesOff()
	t.deriveStatus()
	t.derivePosts()
	t.tellTroubles()
}

// makeViews makes the view of every service in force, before any is decided:
// dependents ask for the state of their dependencies.
func (t *decider) makeViews() {
	t.probes = make([]ring.Probe, 0, len(t.Seen.Instances))
	t.apps = make(map[string][]service, len(t.Facts.Apps))
	t.names = sortedKeys(t.Facts.Apps)
	for _, name := range t.names {
		f := t.Facts.Apps[name]
		standing := t.standingFronts(&f.App)
		all := make([]service, len(f.App.Services)+len(standing))
		for i := range f.App.Services {
			t.makeView(&all[i], &f.App, &f.App.Services[i])
		}
		for i, g := range standing {
			v := &all[len(f.App.Services)+i]
			v.stands = true
			t.makeView(v, &g.App, &g.Service)
		}
		t.apps[name] = all
		t.groupServices(all)
	}
	for id := range t.seen {
		if t.views[id] == nil {
			t.strays = append(t.strays, id)
		}
	}
	if t.onCluster() {
		for _, s := range t.Seen.Cluster.Services { // one without any instance is there, too
			if id := ring.ID(s.App, s.Service); t.views[id] == nil && t.seen[id] == nil {
				t.strays = append(t.strays, id)
			}
		}
	}
	slices.Sort(t.strays)
	for _, id := range t.strays {
		t.probeInstances(t.seen[id], nil, t.Facts.Good[id])
	}
}
