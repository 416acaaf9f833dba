package reconcile

import "github.com/gitring/gitring/ring"

// handBack sets the last restart policies of apps that were left: a host without
// gitring brings back what the Compose file says.
func (t *decider) handBack() {
	for _, key := range sortedKeys(t.Facts.Overrides) {
		o := t.Facts.Overrides[key]
		if o.Kind != ring.OverrideLeft || len(o.Policies) == 0 {
			continue
		}
		open := map[string]ring.EnginePolicy{}
		for _, in := range t.instancesOf(o.Target) {
			want, ok := o.Policies[in.ID]
			if !ok || in.Policy == want.Name && in.MaxRetries == want.MaxRetries {
				continue
			}
			open[in.ID] = want
			t.addStep(ring.Action{
				Kind: ring.DoPolicy, Source: in.Source, App: in.App, Service: in.Service, Slot: in.Slot, Version: in.Version, Commit: in.Commit,
				Instance: in.ID, Name: in.Name, Policy: want.Name, MaxRetries: want.MaxRetries, Reason: "handed back to Compose: restart " + want.Name,
			})
		}
		if len(open) == len(o.Policies) {
			continue
		}
		o.Policies = open
		t.setFact(o)
	}
}

// instancesOf are the instances of an app.
func (t *Pass) instancesOf(app string) []*instance {
	var out []*instance
	for _, id := range t.seenIDs() {
		if a, _ := id.Split(); a == app {
			out = append(out, t.seen[id]...)
		}
	}
	return out
}
