package reconcile

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// anotherSpec sends the cluster the spec of the target where it has another one, whatever state
// its update is in.
func (t *Pass) anotherSpec(v *service) outcome {
	if why := t.sendReason(v); why != "" {
		return outcome{then: stop, clears: true, move: move{kind: moveServe, why: why}}
	}
	return outcome{}
}

// sendReason is why the cluster has to be sent the spec of the target; "" where it has it.
func (t *Pass) sendReason(v *service) string {
	s, hand := v.sent, handOnSpec(v)
	asked := t.settingsSay(v)
	switch {
	case hand != "" && onlyReports(v.app) && asked == "":
		return ""
	case hand != "" && t.now.Before(v.putBackAt()):
		t.wakeBy(v.putBackAt())
		return ""
	case hand != "":
		return hand
	case s == nil, s.Version != v.target.Version && !v.cutsShort():
		return t.specSays(v)
	case v.isAskedAgain():
		return "a person has it tried again"
	case s.Version == v.target.Version && s.Changed() && !t.isUpdating(v):
		return "its spec was changed by hand"
	}
	return asked
}

// cutsShort reports whether an instance of the target from an earlier spec is on its way in a slot
// where another version serves: sent now, the cluster would keep that one and end what serves.
func (v *service) cutsShort() bool {
	return slices.ContainsFunc(v.instances, func(in *instance) bool {
		return in.Version == v.target.Version && in.State == ring.StateCreated && slices.ContainsFunc(v.instances, func(x *instance) bool {
			return x.Slot == in.Slot && x.Version != in.Version && x.State == ring.StateRunning
		})
	})
}

// settingsSay is what of the target the cluster has to be told though it has its version; "" for
// nothing. It waits for the end of an update: a spec of the same version has the cluster end, in
// each slot that it is at, what served until the new instance does.
func (t *Pass) settingsSay(v *service) string {
	s := v.sent
	switch {
	case s == nil, s.Version != v.target.Version, s.Settings == v.settingsWanted(), t.isUpdating(v):
		return ""
	case v.target.Replicas < s.Replicas && !t.mayLower(v):
		return ""
	case s.Replicas != v.target.Replicas:
		return say("replicas %d", v.target.Replicas)
	}
	return "its settings changed"
}

// isUpdating reports whether the cluster still replaces instances of a service, or would.
func (t *Pass) isUpdating(v *service) bool {
	return v.sent.Update == ring.UpdateRunning || slices.ContainsFunc(v.instances, func(in *instance) bool {
		return in.Version != v.sent.Version && in.State != ring.StateRemoving && !t.isAway(in)
	})
}

// specSays is why a version is sent, by where the rollout is.
func (t *Pass) specSays(v *service) string {
	switch {
	case v.isRestoring():
		return say("restore %s: %s", v.good.Commit.Short(), v.failed.Reason)
	case !v.waits.None():
		return "keep the last good version: " + v.waits.Says
	}
	return t.changeReason(v)
}

// handOnSpec is what somebody else did to the spec of a service at rest; "" for nothing.
func handOnSpec(v *service) string {
	s := v.sent
	switch {
	case !v.rollout.Done || v.rollout.Version != v.want.Version:
		return ""
	case s == nil:
		return "the service was removed by hand"
	case s.Version != v.target.Version && s.Update.RolledBack():
		return say("the service was rolled back to version %s by hand", s.Version.Short())
	case s.Version != v.target.Version:
		return say("the service was given version %s by hand", s.Version.Short())
	case s.Changed():
		return "its spec was changed by hand"
	}
	return ""
}

// changedSpec counts what a hand did to a service at rest, once for each change: who does so again
// and again has it put back more rarely.
func (t *Pass) changedSpec(v *service) outcome {
	if handOnSpec(v) == "" || onlyReports(v.app) {
		return outcome{}
	}
	index := uint64(0)
	if v.sent != nil {
		index = v.sent.Index
	}
	row, key := v.rollout, handMark+strconv.FormatUint(index, 10)
	if slices.Contains(row.Counted, key) {
		return outcome{}
	}
	if t.now.Sub(row.LastFailure) >= stableWindow {
		row.Failures = 0
	}
	row.Counted = append(slices.DeleteFunc(slices.Clone(row.Counted), func(c string) bool { return strings.HasPrefix(c, handMark) }), key)
	row.Failures, row.LastFailure = row.Failures+1, t.now
	return noting(row)
}

// handMark is of a change by hand, among what was counted.
const handMark = "hand "

// putBackAt is when what a hand changed may be put back.
func (v *service) putBackAt() time.Time {
	return v.rollout.LastFailure.Add(backoffOf(string(v.id), v.rollout.Failures))
}

// stoppedSpec sends the last good spec once more, on the way back, and what was put back at rest,
// where its update stopped: no verdict is to come of that. It waits longer each time. A version
// that failed is never sent so: the cluster would end what serves beside it.
func (t *Pass) stoppedSpec(v *service) outcome {
	if !v.isRestoring() && !v.rollout.Done || !t.isUpdateStopped(v) {
		return outcome{}
	}
	row, key := v.rollout, "stop "+strconv.FormatUint(v.sent.Index, 10)
	if !slices.Contains(row.Counted, key) {
		row.Counted, row.Failures, row.LastFailure = append(slices.Clone(row.Counted), key), row.Failures+1, t.now
		t.wakeBy(t.now.Add(backoffOf(string(v.id), row.Failures+1)))
		return noting(row)
	}
	// Swarm takes no notice of a spec that comes within moments of the pause: it has that one.
	next := row.LastFailure.Add(backoffOf(string(v.id), row.Failures+1))
	if t.now.Before(next) {
		t.wakeBy(next)
		return outcome{}
	}
	return outcome{then: stop, move: move{kind: moveServe, why: "its update stopped: " + cmp.Or(v.sent.Says, "nobody knows why")}}
}

// isUpdateStopped reports whether the cluster has the spec of the target and does not go on with
// it: it paused, it went back to it, or it never began.
func (t *Pass) isUpdateStopped(v *service) bool {
	s := v.sent
	switch {
	case s == nil || s.Version != v.target.Version:
		return false
	case s.Update == "", s.Update == ring.UpdateCompleted:
		return t.isUpdating(v)
	}
	return s.Update == ring.UpdatePaused || s.Update.RolledBack()
}

// sendSpec sends the cluster the spec of the target, once its networks are there and its image
// was looked at. It reports whether that was decided.
func (t *decider) sendSpec(v *service, why string) bool {
	if t.networksMissing(v.of, v.target) {
		v.missing = t.unmadeReason(v.of, v.target)
		return false
	}
	if v.missing = cmp.Or(t.stopsStill(v), t.dataHeld(v)); v.missing != "" {
		return false
	}
	if v.missing = t.unverifiedReason(v.of, v.target); v.missing != "" {
		return false
	}
	if !v.target.Image.Known { // how long its check may take is not known
		t.addStep(t.pullStep(v.of, v.target, "has to be looked at"))
		return false
	}
	a := ring.Action{
		Kind: ring.DoServe, App: v.app.Name, Service: v.want.Name, Version: v.target.Version, Commit: v.target.Changed,
		Of: v.of, Want: v.target, Networks: t.networkNames(v.of), Reason: why,
	}
	if v.sent != nil {
		a.Index = v.sent.Index
	}
	a.Anew = v.isAskedAgain() // an equal spec would leave the broken instances, and end what serves beside them
	if v.isRestoring() {
		a.Condemned = v.want.Version
	}
	if v.good != nil && v.good.Service.Version != v.target.Version {
		a.Good = v.good.Service.Version
	}
	return t.addStep(a)
}

// stopsStill is why the target, which writes what outlives it, may not be sent yet: an instance
// still stops, and may write until it ended. Swarm waits only for the one that it ends now.
func (t *Pass) stopsStill(v *service) string {
	if firstData(v.of, v.target) == "" {
		return ""
	}
	for _, in := range v.instances {
		if in.State == ring.StateRemoving {
			return say("waits for %s on node %s to end: it may write %s", in.Name, in.Node, firstData(v.of, v.target))
		}
	}
	return ""
}

// dataHeld is why the target may not be sent yet: another service writes what it writes, or one
// that is gone and whose tasks still stop. A service of which nothing runs now may start a task at
// any time. Of ports the engines take care.
func (t *decider) dataHeld(v *service) string {
	mine := slices.DeleteFunc(slices.Clone(writesOf(v.of, v.target)), isPort)
	if len(mine) == 0 {
		return ""
	}
	for _, s := range t.clusterServices() {
		if id := ring.ID(s.App, s.Service); id != v.id {
			if what := t.firstClash(v, v.target, mine, s.App, s.Service, s.Version, s.Writes); what != "" {
				return say("waits for %s to let go of %s", t.calledName(v, id), what)
			}
		}
	}
	return t.occupiedByOthers(v, v.target, mine)
}

// firstData is the first of what a service alone may write, ports left out; "" for a service of
// which several may run at once.
func firstData(app *ring.App, s *ring.Service) string {
	all := exclusiveWrites(s.Share, writesOf(app, s))
	if i := slices.IndexFunc(all, func(what string) bool { return !isPort(what) }); i >= 0 {
		return all[i]
	}
	return ""
}
