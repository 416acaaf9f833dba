package reconcile

import (
	"cmp"
	"hash/fnv"
	"time"

	"github.com/gitring/gitring/ring"
)

// The pace of restarts (docs/design/rollout.md#restarts).
const (
	firstBackoff  = 10 * time.Second // before the second restart; doubles
	maxBackoff    = 5 * time.Minute
	stableWindow  = 10 * time.Minute // a run this long forgives earlier crashes
	permanentWait = 10 * time.Minute // between tries of what cannot start
	loopCrashes   = 5                // from here it is told as CrashLooping
)

// slotRow is the crash record of an instance's slot and version; most have none.
func (t *Pass) slotRow(v *service, in *instance) (ring.SlotRow, bool) {
	if len(t.Facts.Slots) == 0 {
		return ring.SlotRow{}, false
	}
	row, ok := t.Facts.Slots[in.inSlot(v.id)]
	return row, ok
}

// inSlot is the key of what is remembered of the slot of an instance of a service.
func (in *instance) inSlot(id ring.ServiceID) string {
	if in.slotKey == "" {
		in.slotKey = ring.SlotKey(id, in.Slot, in.Version)
	}
	return in.slotKey
}

// isResting reports whether an instance ended as it may, and stays so until its version
// changes.
func (t *Pass) isResting(v *service, in *instance) bool {
	if !in.Ended() || in.intent != "" {
		return false
	}
	p := t.ownerPolicy(v, in)
	return p == ring.OnFail && in.ExitCode == 0 || p == ring.NeverStop && v.rollout.Done
}

// doneIn reports whether the instance of a slot ended as it may, as on_failure lets one
// that exits with 0, and that somebody removed it since, such as by docker container
// prune: the slot stays empty until its version changes.
func (t *Pass) doneIn(v *service, slot int) bool {
	if len(t.Facts.Slots) == 0 || !v.rollout.Done || v.target != v.want || v.want.Restart.Policy != ring.OnFail || v.inSlot(slot) != nil {
		return false
	}
	row, ok := t.Facts.Slots[ring.SlotKey(v.id, slot, v.want.Version)]
	return ok && row.Stopped && row.ExitCode == 0 && !row.OOM
}

// slotRests reports whether a slot whose container somebody removed stays empty.
func (t *Pass) slotRests(row ring.SlotRow) bool {
	v := t.views[row.ID]
	return v != nil && row.Version == v.want.Version && row.Slot <= v.want.Replicas && t.doneIn(v, row.Slot)
}

// awaitsRestart is why a slot that is empty waits: it was given up by a crash; "" where it
// does not.
func (t *Pass) awaitsRestart(v *service, slot int) string {
	row, ok := t.Facts.Slots[ring.SlotKey(v.id, slot, v.target.Version)]
	if !ok || v.isRestoring() || !t.now.Before(row.Next) {
		return ""
	}
	t.wakeBy(row.Next)
	return say("slot %d crashed %d times; next try %s", slot, row.Crashes, row.Next.UTC().Format("15:04:05"))
}

// cannotRun reports whether an exit code means there is nothing that could run:
// trying again as it is cannot help.
func cannotRun(code int) bool { return code == 126 || code == 127 }

// ownerPolicy is the restart policy of the version that in runs.
func (t *Pass) ownerPolicy(v *service, in *instance) string { return v.restartOf(in).Policy }

// restartOf is what follows an exit of an instance, by its own version.
func (v *service) restartOf(in *instance) ring.Restart {
	if v.good != nil && in.Version == v.good.Service.Version && in.Version != v.want.Version {
		return v.good.Service.Restart
	}
	return v.want.Restart
}

// stableWindowOf is how long a run forgives the crashes before it.
func (v *service) stableWindowOf(in *instance) time.Duration {
	return cmp.Or(v.restartOf(in).Window, stableWindow)
}

func (v *service) firstPause(in *instance) time.Duration {
	return cmp.Or(v.restartOf(in).Delay, firstBackoff)
}

// restartPause is the wait before restart n of an instance.
func (v *service) restartPause(in *instance, key string, n int) time.Duration {
	return backoffFrom(v.firstPause(in), key, n)
}

// backoffOf is the wait before restart n of a slot that says nothing of its own.
func backoffOf(key string, n int) time.Duration { return backoffFrom(firstBackoff, key, n) }

// backoffFrom is the wait before restart n of a slot: none, then the first one
// doubling to 5 min, with 10 % either way that depends on the slot alone.
func backoffFrom(first time.Duration, key string, n int) time.Duration {
	if n <= 1 {
		return 0
	}
	d := max(maxBackoff, first)
	if n < 20 { // beyond, it has doubled to more than any first one
		d = min(d, first<<(n-2))
	}
	h := fnv.New32a()
	h.Write([]byte(say("%s#%d", key, n)))
	return d + time.Duration(float64(d)*(float64(h.Sum32()%2001)/10000-0.1))
}
