package reconcile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// What hands of others changed of instances that run as the plan has it: told
// once, and put back, or for an app with drift: report left as it is. Only a
// service at rest is looked at, or one on its way back: a rollout replaces what it
// does not find in order, but for what it brings, and a restore has nothing to replace it with.

// drifted is one thing that is not as the plan has it.
type drifted struct {
	in   *instance
	what string
	step ring.ActionKind // what puts it back; "" is another rule, or nothing
	name string          // of a rename
}

// findDrift tells what others changed of a service at rest. It comes before the rules
// that put it in order, some of which do so without a word about why.
func (t *decider) findDrift(v *service) []drifted {
	if v.want.Kind != ring.Worker {
		return nil
	}
	if !v.rollout.Done && !v.isRestoring() || t.isGoingBack(v) {
		return t.hinderedInstances(v)
	}
	found := t.driftsOfSlots(v)
	t.tellDrift(v, found)
	return found
}

// tellHands tells what others did to a service at rest, once.
func (t *decider) tellHands(v *service) {
	if !v.rollout.Done {
		return
	}
	var found []drifted
	if hand := handOnSpec(v); hand != "" {
		found = append(found, drifted{what: hand})
	}
	t.tellDrift(v, found)
}

// hinderedInstances is what hands of others did in a rollout to an instance of the version that
// comes, and that keeps it from ever being ready: it is no word on that version. It is
// put back and not called drift.
func (t *decider) hinderedInstances(v *service) (out []drifted) {
	names := t.networksOf(v)
	for _, in := range v.instances {
		if in.Version != v.target.Version || !in.holdsSlot() || in.intent != "" || t.adoptedRow(in) != nil {
			continue
		}
		for _, d := range t.driftsOf(v, in, names) {
			if d.step == ring.DoUnpause || d.step == ring.DoConnect {
				out = append(out, d)
			}
		}
	}
	return out
}

// putBack takes the next step that undoes what others did and that no other rule takes.
func (t *decider) putBack(v *service, found []drifted) {
	if onlyReports(v.app) || t.isBusy(string(v.id)) {
		return
	}
	for _, d := range found {
		if d.step == "" || d.step == ring.DoConnect && t.networksMissing(v.of, v.target) {
			continue // the network was removed as well: it is made first
		}
		a := t.stepOn(v, d.step, d.in, d.what)
		a.NewName = d.name
		if t.addStep(a) {
			return
		}
	}
}

// driftsOfSlots is all of a service that is not as the plan has it, by slot.
func (t *decider) driftsOfSlots(v *service) []drifted {
	var out []drifted
	names := t.networksOf(v)
	for _, in := range v.instances {
		if in.Version != v.target.Version || !in.holdsSlot() || in.Slot > v.target.Replicas || in.intent != "" {
			continue
		}
		if in.Ended() {
			if says := t.byHand(v, in); says != "" {
				out = append(out, drifted{in: in, what: says}) // heal starts it again
			}
			continue
		}
		out = append(out, t.driftsOf(v, in, names)...)
	}
	for slot := 1; slot <= v.target.Replicas; slot++ {
		if v.inSlot(slot) != nil || t.doneIn(v, slot) {
			continue
		}
		if t.slotTaken(v, slot) {
			out = append(out, drifted{what: removedSays(slot)}) // the slot is filled again
		}
		if says := t.nameHeld(v, slot, nil); says != "" {
			out = append(out, drifted{what: says})
		}
	}
	return out
}

// driftsOf is what is not in order about an instance that runs.
func (t *decider) driftsOf(v *service, in *instance, names map[string]string) (out []drifted) {
	slot := func(format string, args ...any) string { return say("slot %d ", in.Slot) + say(format, args...) }
	if in.State == ring.StatePaused {
		return []drifted{{in: in, what: slot("was paused by hand"), step: ring.DoUnpause}}
	}
	if in.State != ring.StateRunning || t.adoptedRow(in) != nil {
		return nil // an adopted one is not as the plan has it: nobody's hand made it so
	}
	its := v.target.Spec.ContainerName
	named := ring.IsComposeName(in.Name, in.App, in.Service, in.Slot) || ring.IsContainerName(in.Name, in.App, in.Service, in.Slot, in.Version)
	if !named && in.Name != its {
		d := drifted{in: in, what: slot("was renamed to %s by hand", in.Name)} // its own name is taken by named
		if its == "" {
			d.step, d.name = ring.DoRename, ring.ContainerName(in.App, in.Service, in.Slot, in.Version)
		}
		out = append(out, d)
	}
	if !named || its != "" {
		if says := t.nameHeld(v, in.Slot, in); says != "" {
			out = append(out, drifted{in: in, what: says})
		}
	}
	for _, at := range v.target.Spec.Networks {
		network := names[at.Network]
		if network == "" {
			continue
		}
		_, there := t.networksBy().there[network]
		if _, joined := in.Addresses[network]; !joined && !(there && t.isBusy("network "+network)) {
			out = append(out, drifted{in: in, what: slot("was taken off network %s by hand", network), step: ring.DoConnect})
		}
	}
	if want := v.target.Restart.Engine; in.Policy != "" && in.Policy != "no" && want != "" && in.Policy != want {
		out = append(out, drifted{in: in, what: slot("was given restart policy %s by hand", in.Policy)}) // policy sets it
	}
	for _, l := range t.limitsOff(v.target.Spec.Resources, in.Limits) {
		d := drifted{in: in, what: slot("has %s by hand", l.says)}
		if l.can {
			d.step = ring.DoUpdate
		}
		out = append(out, d)
	}
	return out
}

// networksOf are the engine's names of the networks that instances of a service may
// be on.
func (t *Pass) networksOf(v *service) map[string]string {
	if len(v.target.Spec.Networks) == 0 {
		return nil
	}
	return t.networkNames(v.of)
}

// byHand is how somebody ended an instance of ours; "" when nobody did. The engine
// tells it once: a daemon that was started since knows it from what was journalled.
func (t *Pass) byHand(v *service, in *instance) string {
	if in.intent != "" || !in.Ended() {
		return ""
	}
	if hand := cmp.Or(in.Hand, t.Facts.Drift[v.id].HandOn(in.Instance)); hand != "" {
		return say("slot %d was %s by hand", in.Slot, hand)
	}
	return ""
}

// limitOff is a bound that is not the spec's.
type limitOff struct {
	says string
	can  bool // the engine can put it back in place
}

// limitsOff compares the bounds that can be changed while an instance runs. Zero
// is the engine's default, which an update cannot bring back. Where the engine bounds
// processes unasked, nobody can tell its own bound from a hand's.
func (t *Pass) limitsOff(want, have *ring.Resources) (out []limitOff) {
	if have == nil {
		return nil
	}
	if want == nil {
		want = &ring.Resources{}
	}
	number := func(key string, want, have int64) {
		if want != have {
			out = append(out, limitOff{say("%s %d instead of %d", key, have, want), want != 0})
		}
	}
	number("nano_cpus", want.NanoCPUs, have.NanoCPUs)
	number("cpu_shares", want.CPUShares, have.CPUShares)
	number("cpu_period", want.CPUPeriod, have.CPUPeriod)
	number("cpu_quota", want.CPUQuota, have.CPUQuota)
	number("mem_limit", want.Memory, have.Memory)
	number("mem_reservation", want.MemoryReservation, have.MemoryReservation)
	if want.MemorySwap != 0 || want.Memory == have.Memory && have.MemorySwap != 0 && have.MemorySwap != 2*have.Memory && have.MemorySwap != -1 {
		number("memswap_limit", want.MemorySwap, have.MemorySwap)
	}
	if w, h := processLimit(want), processLimit(have); w != h && (w != 0 || !t.Seen.BoundsProcesses) {
		number("pids_limit", w, h)
	}
	if want.CPUSet != have.CPUSet {
		out = append(out, limitOff{say("cpuset %q instead of %q", have.CPUSet, want.CPUSet), want.CPUSet != ""})
	}
	return out
}

// processLimit is the bound of processes; all that mean "none" are equal.
func processLimit(r *ring.Resources) int64 {
	if r.PidsLimit == nil || *r.PidsLimit <= 0 {
		return 0
	}
	return *r.PidsLimit
}

// tellDrift journals each new sentence once, counts it as an act of others, and
// forgets what is in order again.
func (t *decider) tellDrift(v *service, found []drifted) {
	row, known := t.Facts.Drift[v.id]
	var what []string
	var ended []ring.EndedBy
	for _, d := range found {
		what = append(what, d.what)
		if d.in != nil && d.in.Ended() {
			ended = append(ended, ring.EndedBy{Instance: d.in.ID, At: d.in.Finished, Hand: cmp.Or(d.in.Hand, row.HandOn(d.in.Instance))})
		}
	}
	slices.Sort(what)
	what = slices.Compact(what)
	if slices.Equal(what, row.What) && slices.EqualFunc(ended, row.Ended, ring.EndedBy.Equal) {
		return
	}
	var anew []string
	for _, says := range what {
		if !slices.Contains(row.What, says) {
			anew = append(anew, says)
			t.addEvent(t.driftEvent(v, ring.DriftSeen, says))
		}
	}
	if len(anew) > 0 {
		t.countOutsideAct(v.id, strings.Join(anew, "; ")) // one act, however many slots it met
	}
	if len(what) == 0 {
		t.setFact(ring.Forget{Table: "drift", Key: string(v.id)})
		if known {
			t.addEvent(t.driftEvent(v, ring.DriftHealed, say("in order again: %s", strings.Join(row.What, "; "))))
		}
		return
	}
	since := row.Since
	if !known {
		since = t.now
	}
	t.setFact(ring.Drift{ID: v.id, What: what, Since: since, Ended: ended})
}

func (t *Pass) driftEvent(v *service, kind, says string) ring.Event {
	return ring.Event{
		Kind: kind, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.target.Version, Commit: v.app.Commit, Reason: says,
	}
}

// driftCondition is what stands of it for people.
func (t *Pass) driftCondition(id ring.ServiceID) (ring.Condition, bool) {
	row, ok := t.Facts.Drift[id]
	if !ok {
		return ring.Condition{}, false
	}
	return ring.Condition{Type: "Drifted", Reason: strings.Join(row.What, "; "), Since: row.Since.UTC()}, true
}
