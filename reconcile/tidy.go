package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// tidyHost removes what has our labels and no place in the plan in force:
// instances, then networks, then the row of an app that left. Volumes and data
// folders are never removed.
func (t *decider) tidyHost() {
	t.readUnreadLogs()
	for _, id := range t.strays {
		t.removeOrphans(id, t.seen[id])
	}
	t.looseNetworks()
	t.looseFiles()
	t.forgetGone()
	for _, name := range t.names {
		if f := t.Facts.Apps[name]; f.Leaving && !t.hasAnything(name) {
			t.setFact(ring.Forget{Table: "app", Key: name})
			t.addEvent(ring.Event{Kind: ring.AppRemoved, Source: f.App.Source, App: name, Commit: f.App.Commit, Reason: "nothing of it is left; volumes and data folders stay"})
		}
	}
}

// forgetGone drops what was remembered of containers and slots that are gone.
func (t *decider) forgetGone() {
	left := func(container string) bool { return !t.isSeen(container) }
	for _, id := range keysThat(t.Facts.Intents, left) {
		if !t.toFill(t.Facts.Intents[id]) {
			t.setFact(ring.Forget{Table: "intent", Key: id})
		}
	}
	for _, id := range keysThat(t.Facts.Loads, left) {
		t.setFact(ring.Forget{Table: "loaded", Key: id})
	}
	gone := func(id ring.ServiceID) bool { // not while a create may be in flight
		return t.views[id] == nil && len(t.seen[id]) == 0 && t.clusterService(id) == nil && !t.isBusy(string(id))
	}
	for _, id := range keysThat(t.Facts.Rollouts, gone) {
		t.setFact(ring.Forget{Table: "rollout", Key: string(id)}) // a service that comes back begins anew
	}
	for _, id := range keysThat(t.Facts.Fronts, gone) {
		t.setFact(ring.Forget{Table: "front", Key: string(id)})
	}
	for _, id := range keysThat(t.Facts.Good, gone) {
		t.setFact(ring.Forget{Table: "good", Key: string(id)}) // and has nothing to go back to
	}
	for _, id := range sortedKeys(t.Facts.Refreshes) {
		if t.views[id] == nil && !t.isComing(id) {
			t.setFact(ring.Forget{Table: "refresh", Key: string(id)})
		}
	}
	t.forgetLeft()
	t.forgetRuns()
	for _, key := range keysThat(t.Facts.Slots, func(key string) bool { return left(t.Facts.Slots[key].Instance) }) {
		if row := t.Facts.Slots[key]; !t.waitsAfterCrash(row) && !t.slotRests(row) {
			t.setFact(ring.Forget{Table: "slot", Key: key})
		}
	}
	t.forgetHands()
	t.forgetAdopted()
}

// removeOrphans drains and removes the instances of a service that the app's plan in
// force does not have, dependents first.
func (t *decider) removeOrphans(id ring.ServiceID, ins []*instance) {
	app, service := id.Split()
	f, ok := t.Facts.Apps[app]
	if !ok || f.App.NoPrune || !t.isFresh(&f.App) || t.neededBy(app, service) || t.handsOff(id) {
		return
	}
	if t.isOutrun(app) {
		return
	}
	if t.leaningService(id) != nil {
		t.keepUp(id, ins)
		return
	}
	if t.onCluster() {
		t.removeServed(id, &f.App)
		ins = slices.DeleteFunc(slices.Clone(ins), func(in *instance) bool { return in.Run == nil || in.State == ring.StateRemoving })
	}
	if front := frontID(id); len(t.seen[front]) > 0 && t.views[front] == nil && t.isFrontOf(id) {
		return // what sends requests to it goes first
	}
	for _, in := range ins {
		a := ring.Action{
			Kind: ring.DoRemove, App: app, Service: service, Slot: in.Slot, Version: in.Version, Commit: f.App.Commit,
			Instance: in.ID, Name: in.Name, Reason: say("not in plan %s", f.App.Commit.Short()), Grace: in.ownGrace(),
		}
		if g, ok := t.Facts.Good[id]; ok {
			a.Grace, a.Delay = max(in.Grace, g.Service.Grace()), g.Service.Rollout.DrainDelay
		}
		if t.isBusy(a.Target()) || t.readsLog(in) { // its last words go with it
			return
		}
		if t.inUse(id, in) && !t.isAwaitedAway(id, in) {
			t.keepUp(id, ins)
			continue
		}
		if t.stopTied(in, a.Reason) {
			return
		}
		meant := t.Facts.Intents[in.ID].At
		if in.intent != intentRemove {
			meant = t.now
			t.setFact(ring.Intent{Instance: in.ID, Kind: intentRemove, Reason: a.Reason, At: meant})
		}
		a.Delay = max(0, a.Delay-max(0, t.now.Sub(meant))) // it drains from the moment that it was meant to go
		if run, ran := t.runOf(id, in); ran && run.State == jobStarted {
			t.runLeft(&f.App, in, run, a.Reason)
		}
		t.addStep(a)
		return
	}
}

// keepUp keeps alive what left the plan and is needed still, as it last was good.
func (t *decider) keepUp(id ring.ServiceID, ins []*instance) {
	g, ok := t.Facts.Good[id]
	if !ok || t.isBusy(string(id)) || t.onCluster() {
		return
	}
	v := &service{id: id, app: &g.App, want: &g.Service, of: &g.App, target: &g.Service, good: g, instances: ins, rollout: t.Facts.Rollouts[id]}
	for _, in := range ins {
		t.judgeInstance(v, in)
	}
	for _, in := range ins {
		if !in.startUnseen() {
			continue
		}
		if o := t.startMeant(v, in); t.apply(v, &o) {
			return
		}
	}
	if !t.decideBy(v, keptRules) { // what was created before it left is started, too
		t.decideBy(v, policyRules)
	}
}

// inUse reports whether an instance of a service of the plan is tied to in, or that
// such a service may come back to it: it goes once the new version serves.
func (t *Pass) inUse(id ring.ServiceID, in *instance) bool {
	app, service := id.Split()
	all := t.apps[app]
	for i := range all {
		v := &all[i]
		if v.good == nil || v.target == v.want && v.rollout.Done && v.rollout.Version == v.want.Version {
			continue
		}
		if in.Slot <= max(1, v.good.Service.Replicas) && slices.Contains(v.good.Service.Spec.Owners(), service) {
			return true
		}
	}
	return slices.ContainsFunc(t.tied[in.ID], func(x *instance) bool { return t.views[ring.ID(x.App, x.Service)] != nil && x.holdsSlot() })
}

// tiedTo reports whether an instance is tied to one of a service.
func (t *Pass) tiedTo(in *instance, app, service string) bool {
	return slices.ContainsFunc(in.Joined, func(id string) bool {
		y := t.instanceByID(id)
		return y != nil && y.App == app && y.Service == service
	})
}

// hasAnything reports whether the engine still has something of an app.
func (t *Pass) hasAnything(app string) bool {
	if t.by.apps == nil {
		t.by.apps = map[string]bool{}
		for id := range t.seen {
			a, _ := id.Split()
			t.by.apps[a] = true
		}
	}
	return t.by.apps[app] || len(t.networksBy().of[app]) > 0 || t.clusterHas(app)
}

// looseNetworks removes our networks that no plan in force names and no
// instance joins.
func (t *decider) looseNetworks() {
	for _, n := range t.Seen.Networks {
		f, ok := t.Facts.Apps[n.App]
		if n.App == "" || !ok || f.App.NoPrune || t.networkWanted(&f.App, n) || t.isJoined(n.Name) || !t.isFresh(&f.App) || t.isJoining(n.App) {
			continue
		}
		t.addStep(ring.Action{
			Kind: ring.DoNetworkOff, App: n.App, Commit: f.App.Commit, NetworkName: n.Name, Instance: n.ID,
			Reason: "no plan in force names it",
		})
	}
}

// isJoining reports whether an instance of the app is being created or started.
func (t *Pass) isJoining(app string) bool {
	for _, a := range t.Busy {
		if a.App == app && joinsNetworks(a.Kind) {
			return true
		}
	}
	return slices.ContainsFunc(t.steps, func(a ring.Action) bool { return a.App == app && joinsNetworks(a.Kind) })
}

// joinsNetworks reports whether a step has something join networks, or name files of a cluster.
func joinsNetworks(k ring.ActionKind) bool {
	return k == ring.DoCreate || k == ring.DoStart || k == ring.DoServe
}

// networkWanted reports whether an app in force, or a good service of it, joins the network.
func (t *Pass) networkWanted(app *ring.App, n ring.SeenNetwork) bool {
	if t.definesNetwork(app, n) {
		return true
	}
	for i := range app.Services {
		if g, ok := t.Facts.Good[ring.ID(app.Name, app.Services[i].Name)]; ok && t.definesNetwork(&g.App, n) {
			return true
		}
	}
	return false
}
