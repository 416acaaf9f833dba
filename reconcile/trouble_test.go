package reconcile

import (
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// A daemon that was just started has heard of no remote yet, which proves nothing.
func TestASourceThatWasNotHeardYetEndsNoTrouble(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	told := func(src Source, what, subject string) (kinds []string, open bool) {
		facts := ring.NewFacts()
		facts.Set(ring.Trouble{What: what, Subject: subject, Source: "s", Commit: "c1", Reason: "no", Since: now.Add(-time.Hour), Told: true})
		src.Name, src.FreshFor = "s", 5*time.Minute
		d := Diff(World{Host: "h", Awake: now.Add(-time.Second), Facts: facts, Sources: []Source{src}}, now)
		for _, e := range d.Events {
			kinds = append(kinds, e.Kind)
		}
		gone := false
		for _, f := range d.Facts {
			if x, ok := f.(ring.Forget); ok && x.Table == "trouble" {
				gone = true
			}
		}
		return kinds, !gone
	}
	for _, subject := range []struct{ what, of string }{{ring.TroubleSource, "s"}, {ring.TroubleApp, "web"}, {ring.TroubleStale, "s"}} {
		kinds, open := told(Source{}, subject.what, subject.of)
		if len(kinds) != 0 || !open {
			t.Errorf("%s: %v, open %v", subject.what, kinds, open)
		}
	}
	// The last trusted commit is no word on the tip that was refused.
	older := Source{Tip: "c2", Commit: &ring.Commit{SHA: "c1"}, Next: &ring.Plan{Source: "s", Commit: "c1"}, Reached: now}
	if kinds, open := told(older, ring.TroubleSource, "s"); len(kinds) != 0 || !open {
		t.Errorf("behind its tip: %v, open %v", kinds, open)
	}
	older.Tip = "c1"
	if kinds, open := told(older, ring.TroubleSource, "s"); len(kinds) != 1 || kinds[0] != ring.SourceRecovered || open {
		t.Errorf("at its tip: %v, open %v", kinds, open)
	}
	if kinds, open := told(Source{Reached: now}, ring.TroubleStale, "s"); len(kinds) != 1 || open {
		t.Errorf("reached: %v, open %v", kinds, open)
	}
}
