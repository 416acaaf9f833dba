package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// A container that Compose made and a person gave into our hands has none of our
// labels. Its row says what they would; and because nothing is to be restarted
// for it, it stands for the version that its service wanted when the app came
// into force: settled, healed, and by the first change that its service sees an
// old version like any other. Until the app is in force it is not seen at all.

// Adopt is a person's wish that gitring takes over what Compose runs of an app.
const Adopt Verb = "adopt"

// takeAdopted gives the containers with a row what their labels do not say, and
// leaves those out whose app is not in force yet.
func (t *Pass) takeAdopted() {
	if len(t.Facts.Adopted) == 0 {
		return
	}
	if t.raw == nil {
		t.raw = t.World.Seen.Instances
	}
	t.Seen.Instances = make([]ring.Instance, 0, len(t.raw))
	for _, in := range t.raw {
		row, ok := t.Facts.Adopted[in.ID]
		if ok && row.For == "" {
			continue
		}
		if ok {
			in.App, in.Source, in.Service, in.Slot = row.App, row.Source, row.Service, row.Slot
			in.Version, in.Commit, in.Kind = row.For, row.Commit, row.Kind
		}
		t.Seen.Instances = append(t.Seen.Instances, in)
	}
}

// adoptedRow is the row of an instance that Compose made; nil for one of ours.
func (t *Pass) adoptedRow(in *instance) *ring.Adopted {
	if len(t.Facts.Adopted) == 0 {
		return nil
	}
	if row, ok := t.Facts.Adopted[in.ID]; ok {
		return &row
	}
	return nil
}

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

// adoptedUnplaced are the containers of an app that were adopted and do not stand for
// anything yet.
func (t *Pass) adoptedUnplaced(app string) []ring.Adopted {
	var out []ring.Adopted
	for _, id := range sortedKeys(t.Facts.Adopted) {
		if row := t.Facts.Adopted[id]; row.App == app && row.For == "" {
			out = append(out, row)
		}
	}
	return out
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

// enginePolicy is the restart policy that an instance of the target is to have:
// an adopted one keeps the one that it came with.
func (t *Pass) enginePolicy(v *service, in *instance) ring.EnginePolicy {
	if row := t.adoptedRow(in); row != nil {
		return row.Policy
	}
	return ring.EnginePolicy{Name: v.target.Restart.Engine, MaxRetries: v.target.Restart.MaxRetries}
}

// adoptIt writes down which containers are ours from now on, and takes back an
// app that was left.
func (p *person) adoptIt() error {
	left, wasLeft := p.Facts.Overrides[ring.OverrideKey(ring.OverrideLeft, p.App)]
	src := p.sourceOf(p.App)
	switch {
	case src == nil:
		return unfitAct("gitring status lists the apps", "no source has app %s now", p.App)
	case src.Apply == ApplyObserve:
		return unfitAct("apply: auto or approve in the configuration lets it change what runs", "source %s is only observed", src.Name)
	case !wasLeft && len(p.Take) == 0:
		return unfitAct("gitring status "+p.App+" says how it fares", "nothing of %s is left to adopt: no container of it runs that gitring did not start", p.App)
	}
	var names []string
	for _, row := range p.Take {
		row.Source, row.Actor, row.Reason, row.At = src.Name, p.Actor, p.Reason, p.now
		p.setFact(row)
		names = append(names, say("%s-%d", row.Service, row.Slot))
	}
	for _, k := range p.Keep {
		if _, known := p.Facts.Kept[k.Name]; !known {
			k.At = p.now
			p.setFact(k)
		}
	}
	if wasLeft {
		_, key := left.Row()
		p.setFact(ring.Forget{Table: "override", Key: key})
	}
	p.done.Again = append(p.done.Again, "admit "+p.App)
	slices.Sort(names)
	p.done.Says = say("%s is gitring's again", p.App)
	if len(names) > 0 {
		p.done.Says = say("adopted %s of %s; none was restarted, each is replaced when its service first changes", listSays(names), p.App)
	}
	p.addEvent(ring.Event{Kind: ring.AppAdopted, Source: src.Name, App: p.App, Actor: p.Actor, Reason: say("%s: %s", p.done.Says, p.Reason)})
	return nil
}

// sourceOf is the source of an app in force or next; nil when there is none.
func (t *Pass) sourceOf(app string) *Source {
	if f, ok := t.Facts.Apps[app]; ok && !f.Leaving {
		return t.sourceNamed(f.App.Source)
	}
	for i := range t.Sources {
		if next := t.Sources[i].Next; next != nil {
			if _, ok := next.App(app); ok {
				return &t.Sources[i]
			}
		}
	}
	return nil
}
