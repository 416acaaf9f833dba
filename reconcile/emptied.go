package reconcile

import "github.com/gitring/gitring/ring"

// onlyReports reports whether what others change of an app is told and stays.
func onlyReports(app *ring.App) bool { return app.Drift == ring.DriftReport }

// slotTaken reports whether a slot that was filled when the service was last in order is
// empty, and none of ours emptied it.
func (t *Pass) slotTaken(v *service, slot int) bool {
	good, ok := t.Facts.Good[v.id] // by the count of Git: slots that a person adds were never filled
	if !ok || !v.rollout.Done || good.Service.Version != v.target.Version || slot > good.Service.Replicas || v.rollout.Few > 0 && slot >= v.rollout.Few {
		return false
	}
	return !t.isBusy(string(v.id)) && !t.emptiedByUs(v, slot)
}

// emptiedByUs reports whether a slot is empty because we removed what was in it, to fill it
// again. That outlasts a daemon that ends between the two.
func (t *Pass) emptiedByUs(v *service, slot int) bool {
	for _, it := range t.Facts.Intents {
		if (it.Kind == intentRemove || it.Kind == intentDrain || it.Kind == intentLeft) && it.ID == v.id && it.Slot == slot {
			return true
		}
	}
	return false
}

// toFill reports whether what a removal emptied is to be filled and is not yet.
func (t *Pass) toFill(it ring.Intent) bool {
	v := t.views[it.ID]
	return v != nil && it.Slot > 0 && it.Slot <= v.target.Replicas && v.rollout.Done && v.inSlot(it.Slot) == nil && !t.doneIn(v, it.Slot)
}

func removedSays(slot int) string { return say("the container of slot %d was removed by hand", slot) }

// leftAlone is why a slot stays empty that somebody emptied: its app only wants to be told;
// "" where it is filled again.
func (t *Pass) leftAlone(v *service, slot int) string {
	if !onlyReports(v.app) || !t.slotTaken(v, slot) {
		return ""
	}
	return removedSays(slot) + ", and the app has drift: report"
}
