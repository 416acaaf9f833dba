package reconcile

import "github.com/gitring/gitring/ring"

// Where several managers of a cluster run gitring, one acts. The others fetch and verify, and
// decide nothing: what they remember of apps may be old once they act, so they forget it, and find
// what runs as a daemon does that lost its database.

// follow is a whole look of a manager that does not act.
func (t *decider) follow() {
	t.indexSeen()
	forget(t, "app", t.Facts.Apps)
	forget(t, "verdict", t.Facts.Verdicts)
	forget(t, "rollout", t.Facts.Rollouts)
	forget(t, "pin", t.Facts.Pins)
	forget(t, "refresh", t.Facts.Refreshes)
	forget(t, "hands", t.Facts.Hands)
	forget(t, "drift", t.Facts.Drift)
	forget(t, "trouble", t.Facts.Troubles)
	for _, id := range sortedKeys(t.Facts.Good) { // the way back to what runs is known still
		if s := t.clusterService(id); s == nil || s.Version != t.Facts.Good[id].Service.Version {
			t.setFact(ring.Forget{Table: "good", Key: string(id)})
		}
	}
	t.makeViews()
	t.deriveStatus()
}

// forget removes all rows of a table.
func forget[K ~string, V any](t *decider, table string, rows map[K]V) {
	for _, key := range sortedKeys(rows) {
		t.setFact(ring.Forget{Table: table, Key: string(key)})
	}
}
