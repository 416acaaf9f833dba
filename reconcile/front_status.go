package reconcile

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/gitring/gitring/ring"
)

// What is told of a front: with its service, because that is what people asked for.

// frontedPhase is the phase of a service that has a front: it is not Ready before its front
// runs, has the wanted table and reached an instance. A front that does not answer changes
// nothing, because it may serve all the same.
func (t *Pass) frontedPhase(v *service, phase ring.Phase, why ring.Reason) (ring.Phase, ring.Reason) {
	if t.servesUnready(v) {
		why.Says += "; serving unready"
	}
	if phase != ring.PhaseReady || v.target.Replicas == 0 {
		return phase, why
	}
	front := t.views[frontID(v.id)]
	wait := func(phase ring.Phase, format string, args ...any) (ring.Phase, ring.Reason) {
		return phase, ring.Reason{Code: ring.WhyFrontNotReady, On: frontID(v.id), Says: why.Says + "; " + say(format, args...)}
	}
	if n := t.Facts.Fronts[v.id].Restarts; n >= frontTries {
		return wait(ring.PhaseDegraded, "%s", restartedInVain(n))
	}
	all := t.frontsOf(v.id)
	running := slices.ContainsFunc(all, func(f toldFront) bool { return f.in.State == ring.StateRunning })
	switch {
	case !running && front != nil && front.failed != nil:
		return wait(ring.PhaseDegraded, "its front failed: %s", front.failed.Reason)
	case !running && front != nil && !front.waits.None():
		return wait(ring.PhaseProgressing, "its front %s", front.waits.Says)
	case !running:
		return wait(ring.PhaseProgressing, "its front does not run yet")
	}
	for i := range all {
		f := &all[i]
		if f.seen == nil {
			continue
		}
		if !f.has() {
			return wait(ring.PhaseProgressing, "its front has not taken its table yet")
		}
		if says := f.reachesNobody(); says != "" {
			return wait(ring.PhaseDegraded, "%s", says)
		}
	}
	return phase, why
}

// servesUnready reports whether a front sends requests to what is not ready, because nothing
// else is there.
func (t *Pass) servesUnready(v *service) bool {
	serves := false
	for _, f := range t.frontsOf(v.id) {
		for _, in := range v.instances {
			if f.in.State != ring.StateRunning || f.table.State(ring.FrontName(in.ID)).State != ring.FrontActive {
				continue
			}
			if in.fit || in.young || !in.down {
				return false
			}
			serves = true
		}
	}
	return serves
}

// frontStatus is how the front of a service does.
func (t *Pass) frontStatus(v *service) *ring.FrontStatus {
	st := &ring.FrontStatus{Phase: ring.FrontPending, Ports: []string{}}
	for _, p := range v.route().Ports {
		st.Ports = append(st.Ports, strconv.Itoa(p.Port)+"/"+p.Protocol())
	}
	all := t.frontsOf(v.id)
	for i := range all { // the newest is the last
		f := &all[i]
		if f.in.State != ring.StateRunning {
			continue
		}
		st.Phase = ring.FrontBehind
		if f.table != nil {
			st.Generation = f.table.Generation
		}
		switch {
		case f.seen == nil:
			st.Phase = ring.FrontUnseen
			continue
		case f.has():
			st.Phase = ring.FrontServes
		}
		st.Build, st.Connections, st.Queued, st.QueuedSince = f.seen.Build, f.seen.Connections, f.seen.Queued, utc(f.seen.QueuedSince)
	}
	return st
}

// inFlightTo is what the fronts of a service have not seen the end of, of one instance.
func (t *Pass) inFlightTo(v *service, in *instance) (n int) {
	if v == nil || !v.hasFront() {
		return 0
	}
	all := t.frontsOf(v.id)
	for i := range all {
		seen, _ := all[i].reached(ring.FrontName(in.ID))
		n += seen.InFlight
	}
	return n
}

// manyCrashes is how many proxies of a front that ended one after the other are told.
const manyCrashes = 3

// frontConditions tell of a front that runs and does not answer, of one that has no room for
// more clients, and of one whose proxy ends again and again.
func (t *Pass) frontConditions(v *service) (out []ring.Condition) {
	if !v.hasFront() {
		return nil
	}
	for _, f := range t.frontsOf(v.id) {
		switch {
		case f.in.State != ring.StateRunning:
		case f.seen == nil:
			row := t.Facts.Fronts[v.id]
			return append(out, ring.Condition{
				Type: ring.ConditionFrontUnseen, Since: laterOf(row.Silent, f.in.Since).UTC(),
				Reason: cmp.Or(f.wrong, say("%s does not answer", f.in.Name)) + ": nothing that it may send requests to is stopped",
			})
		case f.seen.Full:
			out = append(out, ring.Condition{
				Type:   ring.ConditionFrontFull,
				Reason: say("%s has no room for more connections: new clients wait, and idle ones are closed", f.in.Name),
			})
		}
		if f.seen != nil && f.seen.Crashes >= manyCrashes {
			out = append(out, ring.Condition{
				Type:   ring.ConditionFrontCrashing,
				Reason: say("the proxy of %s ended %d times, each within 10 min of the one before: what was in flight was cut; docker logs %[1]s", f.in.Name, f.seen.Crashes),
			})
		}
	}
	return out
}
