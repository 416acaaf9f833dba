package reconcile

import (
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// imagesOff removes an image that nothing names any more, one at a time and at
// rest alone. Only what a registry gave for a plan of ours is ever removed: it can
// be had again, and one that somebody built here cannot.
func (t *decider) imagesOff() {
	if t.KeepImages <= 0 || len(t.Busy) > 0 || len(t.steps) > 0 || !t.settledSources() {
		return
	}
	named := t.namedImages()
	gone := map[string][]ring.Fact{}
	for _, key := range sortedKeys(t.Facts.Pins) {
		row := *t.Facts.Pins[key]
		switch {
		case named[row.Pin.Image]:
			if !row.Off.IsZero() { // it is wanted again
				row.Off = time.Time{}
				t.setFact(row)
			}
		case row.Off.IsZero() && ofRegistry(row.Pin.Image):
			row.Off = t.now
			gone[row.Pin.Image] = append(gone[row.Pin.Image], row)
		}
	}
	for _, image := range sortedKeys(gone) {
		rows := gone[image]
		app, service := rows[0].(ring.PinRow).ID.Split()
		a := ring.Action{
			Kind: ring.DoImageOff, App: app, Service: service, Image: image, Then: rows,
			Reason: say("%s, which no plan in force, next, or of the last %d good ones names", image, t.KeepImages),
		}
		if t.addStep(a) {
			return
		}
	}
}

// settledSources reports whether every source has a plan, so that what a newer commit
// names is known.
func (t *Pass) settledSources() bool {
	for i := range t.Sources {
		if t.Sources[i].Next == nil {
			return false
		}
	}
	return len(t.Sources) > 0
}

// ofRegistry reports whether a pin is of a registry's image.
func ofRegistry(image string) bool {
	return strings.Contains(image, "@sha256:")
}

// namedImages are those of what runs or stopped, of the plans in force and next,
// of what a failure brings back, and of the newest good plans of each app.
func (t *Pass) namedImages() map[string]bool {
	named := map[string]bool{}
	add := func(services []ring.Service) {
		for i := range services {
			named[services[i].Pin.Image] = true
		}
	}
	for i := range t.Seen.Instances {
		named[t.Seen.Instances[i].Image] = true
	}
	for _, f := range t.Facts.Apps {
		add(f.App.Services)
	}
	for _, g := range t.Facts.Good {
		named[g.Service.Pin.Image] = true
	}
	for name := range t.Facts.Apps {
		keys := t.pastOf(name)
		for _, key := range keys[:min(len(keys), t.KeepImages)] {
			add(t.Facts.Past[key].App.Services)
		}
	}
	for i := range t.Sources {
		for j := range t.Sources[i].Next.Apps {
			a := &t.Sources[i].Next.Apps[j]
			for k := range a.Services {
				s := &a.Services[k]
				if row := t.Facts.Pin(ring.ID(a.Name, s.Name), pinWritten(a, s)); row != nil {
					named[row.Pin.Image] = true
				}
			}
		}
	}
	return named
}
