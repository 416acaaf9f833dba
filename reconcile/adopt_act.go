package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// Adopt is a person's wish that gitring takes over what Compose runs of an app.
const Adopt Verb = "adopt"

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
