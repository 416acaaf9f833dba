package reconcile

import (
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// spareMemory is the part of the host's memory, one in so many, that no surge may
// take: the kernel, the engine and what declares nothing live there.
const spareMemory = 16

// memoryShort is why the host's memory does not admit the instances that a rollout
// would run beside the old ones; "" when it does. Only what is declared counts,
// and only for what comes on top: a host without gitring would have replaced the
// old ones in their place. One that drains holds no slot, and its memory until it is gone.
// Where what runs declares more than there is, its authors know better than their figures,
// and nothing follows from those.
func (t *Pass) memoryShort(v *service) string {
	need := memoryNeeded(v.target)
	if need == 0 || t.Seen.Memory == 0 || v.rollout.Done || v.target.Version != v.want.Version || v.failed != nil || v.isExclusive() {
		return ""
	}
	d := v.target.Replicas
	up := t.surgeNow(v, d)
	live, draining, held := 0, 0, 0
	freed := int64(0) // once those that drain are gone
	for _, in := range v.instances {
		switch {
		case !in.Live() && in.State != ring.StateCreated:
		case in.isDraining():
			draining++
			freed += in.Memory
		default:
			live++
		}
		if in.Version == v.target.Version && in.holdsSlot() {
			held++
		}
	}
	more := min(d+up-live, d-held)
	if live+draining < d || live == 0 || more <= 0 { // where nobody else is left, serving comes first
		return ""
	}
	room, used := t.Seen.Memory-t.Seen.Memory/spareMemory, t.declaredMemory()
	if used > room || used+int64(more)*need <= room {
		return ""
	}
	fix := "free some, or set max_surge: 0 and max_unavailable: 1"
	if first, _ := roomNow(v, d); first < up {
		fix = "free some: a new one has to be ready before the port goes to the front"
	}
	if used-freed+int64(more)*need <= room {
		fix = say("it goes on when the %d that drain are gone", draining)
	}
	return say("%s: %d more of %s each beside what runs, and of the host's %s only %s are left by what is declared; %s",
		ring.CauseResources, more, wording.RoundSize(need), wording.RoundSize(t.Seen.Memory), wording.RoundSize(room-used), fix)
}

// spareSays is what the host must have to spare for a rollout of s, for plan to tell.
func (t *Pass) spareSays(s *ring.Service) string {
	up, _ := roomOf(s.Rollout, s.Replicas)
	need := int64(up) * memoryNeeded(s)
	left := t.Seen.Memory - t.Seen.Memory/spareMemory - t.declaredMemory()
	says, second := "", strategyNamed(s.Rollout.Strategy).secondSet
	switch {
	case second && need > 0:
		says = say("a second full set beside the first: %d instances, %s of memory", up, wording.RoundSize(need))
	case second:
		says = say("a second full set beside the first: %d instances, and the memory that the first set takes once more", up)
	case need > 0 && t.Seen.Memory > 0 && left >= 0 && need > left:
		says = say("%d more beside those that run: %s of memory", up, wording.RoundSize(need))
	}
	if says != "" && need > 0 && t.Seen.Memory > 0 && left >= 0 && need > left {
		says += say("; it waits until that is free, now %s are", wording.RoundSize(left))
	}
	return says
}

// retryRoomier tries again what failed for want of memory on a host that has more of
// it now. A reboot alone changes the figure a little.
func (t *decider) retryRoomier(v *service) {
	d, ok := t.Facts.Verdict(v.id, v.want.Version)
	if !ok || d.Good || d.Memory == 0 || t.Seen.Memory <= d.Memory+d.Memory/64 {
		return
	}
	t.takeBack(v)
	if v.rollout.Version == v.want.Version {
		row := v.rollout
		row.Version = "" // begun anew
		t.setFact(row)
	}
	t.addEvent(ring.Event{
		Kind: ring.RolloutResumed, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.want.Version, Commit: v.app.Commit,
		Reason: say("the host has %s of memory now, %s when it failed: %s", wording.RoundSize(t.Seen.Memory), wording.RoundSize(d.Memory), d.Reason),
	})
}

// starvedMemory is the host's memory where it is what v, or what is tied to it, failed
// for; 0 where it is not.
func (t *Pass) starvedMemory(v *service) int64 {
	for _, m := range v.members() {
		for _, in := range m.instances {
			if in.OOM && in.Ended() && in.Version == m.want.Version {
				return t.Seen.Memory
			}
		}
	}
	return 0
}
