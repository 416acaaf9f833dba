package reconcile

import "github.com/gitring/gitring/ring"

// A container that Compose made and a person gave into our hands has none of our
// labels. Its row says what they would; and because nothing is to be restarted
// for it, it stands for the version that its service wanted when the app came
// into force: settled, healed, and by the first change that its service sees an
// old version like any other. Until the app is in force it is not seen at all.

// standIn has adopted containers fill their slots from the moment that their app
// is in force: before any rule finds those empty.
func (t *decider) standIn() {
	found := false
	for _, id := range sortedKeys(t.Facts.Adopted) {
		row := t.Facts.Adopted[id]
		f, ok := t.Facts.Apps[row.App]
		s, has := f.App.Service(row.Service)
		if row.For != "" || !ok || f.Leaving || !has || s.Version == "" {
			continue
		}
		row.Source, row.Kind, row.For, row.Commit = f.App.Source, s.Kind, s.Version, f.App.Commit
		t.setFact(row)
		found = true
	}
	if !found {
		return
	}
	t.indexSeen()
	t.by.seen, t.by.holders, t.by.joined, t.by.summed = nil, nil, nil, false
	for _, id := range t.seenIDs() {
		t.atRest(id)
	}
}

// atRest says of a service whose slots adopted containers fill that no rollout is
// under way, and what a failure of its first change brings back: these containers.
func (t *decider) atRest(id ring.ServiceID) {
	name, service := id.Split()
	f := t.Facts.Apps[name]
	s, ok := f.App.Service(service)
	if !ok || s.Kind.Ends() || t.Facts.Rollouts[id].Version != "" {
		return
	}
	slots := map[int]bool{}
	for _, in := range t.seen[id] {
		if t.adoptedRow(in) != nil && in.Version == s.Version {
			slots[in.Slot] = true
		}
	}
	if len(slots) < s.Replicas {
		return // a rollout fills the others
	}
	t.setFact(ring.RolloutRow{
		ID: id, Version: s.Version, Commit: f.App.Commit, Began: t.now, Progress: t.now, Done: true, At: t.now, Engine: t.Seen.Engine,
		Checks: map[ring.Version][]ring.Check{s.Version: s.Checks}, Writes: map[ring.Version][]string{s.Version: writesOf(&f.App, &s)},
	})
	app := f.App
	app.Services = leadersOf(&f.App, &s.Spec, nil)
	t.setFact(ring.Good{AppName: name, App: app, Service: s, Commit: f.App.Commit, At: t.now})
}

// doubleInstance removes one of two that stand in one slot for one version: ours, which an
// adopted container was about to make room for, or was just replaced by, when the
// database that knew of it was lost. It says whether a step was decided.
func (t *Pass) doubleInstance(v *service) outcome {
	if len(t.Facts.Adopted) == 0 {
		return outcome{}
	}
	for _, in := range v.instances {
		if in.Version != v.target.Version || !in.holdsSlot() || t.adoptedRow(in) == nil {
			continue
		}
		for _, own := range v.instances {
			if own.Version != in.Version || own.Slot != in.Slot || !own.holdsSlot() || t.adoptedRow(own) != nil {
				continue
			}
			stays, goes := own, in
			if !own.ready && in.ready || !own.Live() && in.Live() {
				stays, goes = in, own
			}
			if goes.Live() && !v.canSpare(goes) {
				continue
			}
			return clearing(goes, say("%s stands in slot %d, too", stays.Name, in.Slot))
		}
	}
	return outcome{}
}

// forgetAdopted drops the rows of containers that are gone.
func (t *decider) forgetAdopted() {
	if len(t.Facts.Adopted) == 0 {
		return
	}
	there := map[string]bool{}
	for i := range t.raw {
		there[t.raw[i].ID] = true
	}
	for _, id := range sortedKeys(t.Facts.Adopted) {
		if !there[id] {
			t.setFact(ring.Forget{Table: "adopted", Key: id})
		}
	}
}
