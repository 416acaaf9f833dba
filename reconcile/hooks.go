package reconcile

import (
	"github.com/gitring/gitring/ring"
)

// runsHooks reports whether an instance runs commands after each start by us. Such a
// start is written down before it happens: a daemon that ended between the
// start and the last command cannot know how far they came. A version that is not
// remembered may be such a one: its container knows.
func (v *service) runsHooks(in *instance) bool {
	s := v.specOf(in)
	return s == nil || len(s.Spec.PostStart) > 0
}

// meanHooks writes down that in is about to be started with its hooks.
func (t *decider) meanHooks(v *service, in *instance) {
	if !v.runsHooks(in) || in.intent == intentHooks {
		return
	}
	if row, _ := t.slotRow(v, in); in.Ended() && !row.Finished.Equal(in.Finished) { // that end was ours: it counts no more
		if row.Instance != in.ID {
			row = ring.SlotRow{ID: v.id, Slot: in.Slot, Version: in.Version, Instance: in.ID, Restarts: in.Restarts}
		}
		row.Finished = in.Finished
		t.setFact(row)
	}
	t.setFact(ring.Intent{Instance: in.ID, Kind: intentHooks, Reason: "its post_start hooks have not ended", At: t.now})
}
