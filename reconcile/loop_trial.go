package reconcile

import (
	"errors"
	"time"

	"github.com/gitring/gitring/ring"
)

// ErrOnTrial refuses the acts of persons while nothing may change.
var ErrOnTrial = errors.New("gitring is on trial after an upgrade, and changes nothing until that is over")

// onTrial is the trial during which nothing may change; nil is none.
func (l *Loop) onTrial() *ring.Trial {
	if l.Trial == nil {
		return nil
	}
	return l.Trial()
}

// trialPass watches what a decision wants watched and shows the rest of it. Facts are left
// out as well: the store of before comes back where the trial fails.
func (l *Loop) trialPass(trial *ring.Trial, d *Decision) {
	l.Health.Watch(d.Probes)
	if l.Fronts != nil {
		l.Fronts.Watch(d.Fronts)
	}
	l.showTrial(trial, d)
}

func (l *Loop) showTrial(trial *ring.Trial, d *Decision) {
	st := d.Status
	st.Trial = &ring.Trial{From: trial.From, Looks: l.looks, Would: WouldDo(d.Actions, l.seen)}
	l.showStatus(st)
}

// WouldDo names the steps that change something. What only asks is left out.
func WouldDo(actions []ring.Action, seen ring.Seen) (out []ring.TrialStep) {
	runs := map[string]bool{}
	for i := range seen.Instances {
		if in := &seen.Instances[i]; in.State == ring.StateRunning {
			runs[in.ID] = true
		}
	}
	for i := range actions {
		a := &actions[i]
		on := a.Target()
		switch a.Kind {
		case ring.DoResolve, ring.DoVerify, ring.DoAdmit, ring.DoLog, ring.DoWhose, ring.DoWords:
			continue
		case ring.DoPull, ring.DoNetwork, ring.DoNetworkOff, ring.DoImageOff:
		default:
			on = string(ring.ID(a.App, a.Service))
		}
		out = append(out, ring.TrialStep{Does: string(a.Kind), On: on, Slot: a.Slot, Ends: endsSomething(a.Kind) && runs[a.Instance], Reason: a.Reason})
	}
	return out
}

// endsSomething reports whether what runs does not run on as it is after a step.
func endsSomething(k ring.ActionKind) bool {
	switch k {
	case ring.DoStop, ring.DoRemove, ring.DoRestart, ring.DoReload, ring.DoUpdate, ring.DoRename, ring.DoServe, ring.DoServeOff:
		return true
	}
	return false
}

// Rehearse looks once and decides once, in place of Run. Nothing is recorded or carried out.
func (l *Loop) Rehearse(now time.Time, facts ring.Facts, seen ring.Seen) (World, Decision) {
	l.start = now
	l.pulse.begin(now)
	l.facts = calmFacts(facts, now)
	l.dates.begin(now)
	l.dates.dateInstances(seen.Instances, now)
	l.known = l.dates.dateHealth(l.Health.Health(), seen.Instances, now)
	l.seen = seen
	w := l.makeWorld()
	w.Facts = copyFacts(l.facts)
	return w, Diff(w, now)
}
