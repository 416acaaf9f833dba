package reconcile

import (
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// Whatever rule decides it, nothing that is held is changed, and of what is only
// observed nothing is even asked.
func TestNoStepPassesAHold(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	facts := ring.NewFacts()
	facts.Apps["web"] = ring.InForce{App: ring.App{Name: "web", Source: "s", Services: []ring.Service{{Name: "web"}}}}
	held := ring.OverrideRow{Kind: ring.OverrideHold, Target: "web", Actor: "alice", Reason: "r", At: now, Until: now.Add(time.Hour)}
	changing := []ring.ActionKind{
		ring.DoNetwork, ring.DoNetworkOff, ring.DoCreate, ring.DoStart, ring.DoStop, ring.DoRemove, ring.DoRestart, ring.DoPolicy,
		ring.DoRename, ring.DoReload, ring.DoConnect, ring.DoUpdate,
	}
	asking := []ring.ActionKind{ring.DoResolve, ring.DoPull, ring.DoAdmit, ring.DoLog, ring.DoImageOff}
	passes := func(apply string, hold bool, k ring.ActionKind, at time.Time) bool {
		w := World{Facts: facts, Sources: []Source{{Name: "s", Apply: apply}}}
		if hold {
			w.Facts.Overrides = map[string]ring.OverrideRow{ring.OverrideKey(held.Kind, held.Target): held}
		}
		return newDecider(w, at).addStep(ring.Action{Kind: k, App: "web", Service: "web", Instance: "c1", Name: "web-web-1", Image: "web:1", NetworkName: "n"})
	}
	for _, k := range changing {
		if passes(ApplyAuto, true, k, now) {
			t.Errorf("%s passes a hold", k)
		}
		if !passes(ApplyAuto, true, k, now.Add(2*time.Hour)) {
			t.Errorf("%s does not pass a hold that is over", k)
		}
	}
	for _, k := range asking {
		if !passes(ApplyAuto, true, k, now) {
			t.Errorf("%s changes nothing, and does not pass a hold", k)
		}
	}
	for _, k := range append(asking, changing...) {
		if passes(ApplyObserve, false, k, now) {
			t.Errorf("%s passes where all is only observed", k)
		}
		if !passes(ApplyAuto, false, k, now) {
			t.Errorf("%s does not pass where nobody holds anything", k)
		}
	}
}

// What somebody built on this host nobody could give again: it is never removed.
func TestOnlyWhatARegistryGaveIsRemoved(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for image, goes := range map[string]bool{"registry.example.org/web:1@sha256:aa": true, "sha256:aa": false} {
		facts := ring.NewFacts()
		facts.Set(ring.PinRow{ID: "web/web", Written: "w", Pin: ring.Pin{Image: image}, At: now.Add(-time.Hour)})
		d := Diff(World{Facts: facts, KeepImages: 1, Sources: []Source{{Name: "s", Next: &ring.Plan{Source: "s", Commit: "c"}}}}, now)
		if got := len(d.Actions) == 1 && d.Actions[0].Kind == ring.DoImageOff && d.Actions[0].Image == image; got != goes {
			t.Errorf("%s: %v, decided %v", image, got, d.Actions)
		}
		d = Diff(World{Facts: facts, KeepImages: 1, Sources: []Source{{Name: "s"}}}, now)
		if len(d.Actions) > 0 {
			t.Errorf("%s: before the plan of the source is known, %v", image, d.Actions)
		}
	}
}
