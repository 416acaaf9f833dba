package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// Policy is who has a service stopped because the policy of the host denies it.
const Policy = ring.ByPolicy

// stopDenied begins and ends the stops of the policy, so that they are of these services.
func (t *decider) stopDenied(denied map[ring.ServiceID]string) {
	for _, key := range sortedKeys(t.Facts.Overrides) {
		o := t.Facts.Overrides[key]
		if _, still := denied[ring.ServiceID(o.Target)]; o.Kind == ring.OverrideStop && !still {
			t.endOverride(o, "", "the policy lets it pass again")
		}
	}
	for _, id := range sortedKeys(denied) {
		app, name := id.Split()
		f := t.Facts.Apps[app]
		s, has := f.App.Service(name)
		_, stopped := t.Facts.Overrides[ring.OverrideKey(ring.OverrideStop, string(id))]
		if !has || stopped || s.Kind != ring.Worker {
			continue
		}
		o := ring.OverrideRow{Kind: ring.OverrideStop, Target: string(id), Actor: Policy, Reason: denied[id], At: t.now.Truncate(time.Second)}
		t.setFact(o)
		t.tellOverride(ring.OverrideBegan, o, Policy, o.Reason)
	}
}
