package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// Hands of others on a service's containers (docs/design/rollout.md#restarts).
const (
	handsWindow = 24 * time.Hour
	handsTold   = 3           // so often within the window it is Contested
	sameHands   = time.Minute // the same thing seen again so soon is one act
)

// countOutsideAct counts one act of somebody else on the containers of a service: made
// anew, renamed, removed, changed. what is the sentence that people read. One
// act may be seen by several looks, and is counted once.
func (t *decider) countOutsideAct(id ring.ServiceID, what string) {
	row := t.Facts.Hands[id]
	if n := len(row.Times); n > 0 && row.What == what && t.now.Sub(row.Times[n-1]) < sameHands {
		return
	}
	before := len(t.recentActs(row))
	row = ring.Hands{ID: id, Times: append(t.recentActs(row), t.now), What: what}
	if n := len(row.Times); n > 2*handsTold {
		row.Times = row.Times[n-2*handsTold:]
	}
	t.setFact(row)
	if before >= handsTold || len(row.Times) < handsTold {
		return
	}
	app, service := id.Split()
	t.addEvent(ring.Event{
		Kind: ring.AppContested, Source: t.Facts.Apps[app].App.Source, App: app, Service: service,
		Commit: t.Facts.Apps[app].App.Commit, Reason: contestedSays(row),
	})
}

// recentActs are the acts within the window, the oldest first.
func (t *Pass) recentActs(row ring.Hands) []time.Time {
	return slices.DeleteFunc(slices.Clone(row.Times), func(at time.Time) bool { return t.now.Sub(at) >= handsWindow })
}

// contestedCondition is the condition of a service that others keep changing; false when
// nobody does.
func (t *Pass) contestedCondition(id ring.ServiceID) (ring.Condition, bool) {
	row, ok := t.Facts.Hands[id]
	if !ok {
		return ring.Condition{}, false
	}
	row.Times = t.recentActs(row)
	if len(row.Times) < handsTold {
		return ring.Condition{}, false
	}
	return ring.Condition{Type: ring.ConditionContested, Reason: contestedSays(row), Since: row.Times[len(row.Times)-1].UTC()}, true
}

// forgetHands forgets what lies longer back than anybody asks.
func (t *decider) forgetHands() {
	for _, id := range sortedKeys(t.Facts.Hands) {
		if len(t.recentActs(t.Facts.Hands[id])) == 0 {
			t.setFact(ring.Forget{Table: "hands", Key: string(id)})
		}
	}
}

func contestedSays(row ring.Hands) string {
	return say("others changed its containers %d times within 24h, last: %s; stop the other tool, or gitring hold %s --reason '…'", len(row.Times), row.What, row.ID)
}
