package reconcile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// beginRollout starts a rollout when another version is wanted than the row speaks of.
func (t *decider) beginRollout(v *service) {
	if v.rollout.Version == v.want.Version || !v.waits.None() {
		return
	}
	if old := v.rollout; old.Version != "" && !old.Done {
		t.addEvent(ring.Event{
			Kind: ring.RolloutSuperseded, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: old.Version,
			Commit: old.Commit, Reason: say("superseded by %s", v.app.Commit.Short()),
		})
	}
	also := t.expectedVersions(v)
	row := ring.RolloutRow{
		ID: v.id, Version: v.want.Version, Commit: v.app.Commit, Began: t.now, Progress: t.now, Engine: t.Seen.Engine,
		Again: v.rollout.Again, Checks: t.checksByVersion(v, also), Writes: t.versionWrites(v, also), Shared: t.sharingVersions(v, also),
	}
	if v.failed != nil { // quarantined: a newer commit wants what already failed
		row.Cause, row.Code = v.failed.Reason, v.failed.Code
		t.setFact(row)
		return
	}
	t.setFact(row)
	if len(v.instances) > 0 && !slices.ContainsFunc(v.instances, func(in *instance) bool { return in.Version != v.want.Version }) && v.good == nil {
		return // the store is new, what runs is not: nothing moves
	}
	t.addEvent(ring.Event{
		Kind: ring.RolloutBegan, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.want.Version,
		Commit: v.app.Commit, Reason: t.changeReason(v),
	})
}

// checksByVersion are those of the wanted version and of what else still runs.
func (t *Pass) checksByVersion(v *service, expected []ring.Version) map[ring.Version][]ring.Check {
	out := map[ring.Version][]ring.Check{v.want.Version: v.want.Checks}
	for _, in := range v.instances {
		if c, ok := v.rollout.Checks[in.Version]; ok && in.Version != v.want.Version {
			out[in.Version] = c
		}
	}
	for _, version := range expected {
		if c, ok := v.rollout.Checks[version]; ok && version != v.want.Version {
			out[version] = c
		}
	}
	return out
}

// changeReason is what differs from the last good version, as people read it.
func (t *Pass) changeReason(v *service) string {
	if v.good == nil {
		return "first deploy"
	}
	if v.good.Service.Version == v.want.Version {
		return "back to the last good version"
	}
	if v.differsSays == "" {
		v.differsSays = cmp.Or(Differs(&v.good.App, &v.good.Service, v.app, v.want), "version "+v.want.Version.Short())
		if isMove(&v.good.Service, v.want) {
			v.differsSays = movedSays(v.want) + ": " + v.differsSays
		}
	}
	return v.differsSays
}

// hostsValuesAlone names the values of the host by which alone the wanted version is
// another than the last good one: no commit is to blame for it. "" where more differs.
func (v *service) hostsValuesAlone() string {
	if v.good == nil || v.want == nil || v.good.Service.Version == v.want.Version {
		return ""
	}
	var names []string
	for _, d := range versionDifferences(&v.good.App, &v.good.Service, v.app, v.want) {
		if !strings.HasPrefix(d.says, hostsValue) {
			return ""
		}
		if name := strings.TrimSuffix(d.says, " changed"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// countProgress counts progress and failures of the rollout under way, and ends it
// when they say so. It only remembers; it never moves anything.
func (t *decider) countProgress(v *service) {
	if v.rollout.Done || v.isRestoring() || t.isFrontTried(v) {
		return
	}
	if !v.waits.None() {
		if v.isRolling() && t.now.Sub(v.rollout.Progress) >= v.want.Rollout.ProgressDeadline/10 && t.undoneReason(v) != "" {
			row := v.rollout
			row.Progress = t.now // the time until it is mended is not the version's
			t.setFact(row)
		}
		return
	}
	if t.excuseEngineEnds(v) {
		return
	}
	if t.judgeCanary(v) {
		return
	}
	if v.isWatched() && !t.unwatchUnproven(v) {
		t.watchServing(v)
		return
	}
	row, ready, failing, permanent := v.rollout, 0, false, false
	row.Counted = slices.Clone(row.Counted)
	for _, in := range v.instances {
		if in.Version != v.want.Version || !in.holdsSlot() {
			continue
		}
		if in.ready {
			ready++
			continue
		}
		if t.hasStaleFiles(v, in) {
			continue
		}
		why := t.failureReason(v, in)
		if why == "" || slices.Contains(row.Counted, in.ID) {
			continue
		}
		row.Counted = append(row.Counted, in.ID)
		failing = true
		row.LastFailure, row.Cause, row.Code = t.now, say("slot %d %s", in.Slot, why), failureCode(in)
		t.failedStart(v, in, why, row.Failures+1)
		permanent = permanent || in.Ended() && cannotRun(in.ExitCode)
	}
	if failing {
		row.Failures++ // instances that end together, as when the engine restarts, are one failure
	}
	if ready > row.Ready {
		row.Ready, row.Progress, row.Failures = ready, t.now, 0
	}
	try, tried := t.Tries[string(v.id)]
	tried = tried && try.Version == v.want.Version && try.Cause != "" && (try.Kind == ring.DoCreate || try.Kind == ring.DoStart)
	stuck := t.stuckReason(v) != ""
	tried = tried && !try.At.Before(row.Began) && !stuck
	late := stuck || t.heldUp(v) || t.awaitsFrontWord(v) || v.inSteps() && !row.Stepped.IsZero()
	if late && t.now.Sub(row.Progress) >= v.want.Rollout.ProgressDeadline/10 {
		row.Progress = t.now // the time until it is mended, or has come so far, is not the version's
	}
	if tried && try.At.After(row.LastFailure) && try.Cause != ring.CauseImagePull {
		row.Failures++
		row.LastFailure, row.Cause, row.Code = try.At, say("%s: %s", try.Cause, try.Err), ring.WhyHostNotReady
	}
	if !sameRow(row, v.rollout) {
		t.setFact(row)
	}
	if v.failed != nil {
		return
	}
	k := v.want.Rollout
	deadline := laterOf(row.Progress, t.Awake).Add(k.ProgressDeadline)
	switch {
	case row.Failures >= v.failureThreshold():
		t.failRollout(v, ring.Reason{Code: row.Code, Says: row.Cause})
	case permanent, tried && try.Permanent && row.Failures > 0:
		t.failRollout(v, ring.Reason{Code: row.Code, Says: row.Cause})
	case !t.now.Before(deadline) && !t.isSettled(v) && (v.group == nil || !t.isFilled(v)) && !late:
		t.failRollout(v, ring.Reason{Code: ring.WhyInstanceNotReady, Says: t.deadlineSays(v, ready)})
	default:
		t.wakeBy(deadline)
	}
}

// standStill keeps the deadline of a rollout away for as long as a person's hand
// is on it: that time is not the version's.
func (t *decider) standStill(v *service) {
	if v.rollout.Version != v.want.Version || v.rollout.Done || t.now.Sub(v.rollout.Progress) < v.want.Rollout.ProgressDeadline/10 {
		return
	}
	row := v.rollout
	row.Progress = t.now
	t.setFact(row)
}

// failureThreshold is how many failures in a row end the rollout. Where the old
// instance had to stop first, the first one does: nothing serves meanwhile.
func (v *service) failureThreshold() int {
	parked := slices.ContainsFunc(v.instances, func(in *instance) bool { return in.intent == intentPark })
	if parked && v.wouldRestore() {
		return 1
	}
	return max(1, v.want.Rollout.FailureThreshold)
}

func sameRow(a, b ring.RolloutRow) bool {
	return a.Ready == b.Ready && a.Progress.Equal(b.Progress) && a.Failures == b.Failures &&
		a.LastFailure.Equal(b.LastFailure) && len(a.Counted) == len(b.Counted) && a.Cause == b.Cause
}

// failureReason is why an instance of a version under rollout counts as failed.
func (t *Pass) failureReason(v *service, in *instance) string {
	if in.Ended() {
		if t.isResting(v, in) || in.intent != "" {
			return ""
		}
		return in.reason
	}
	if in.State == ring.StateRestarting {
		return "is restarted by the engine: " + exitSays(in.Instance)
	}
	if !in.Live() {
		return ""
	}
	if in.unlive != "" && in.act != "" {
		return in.unlive
	}
	if !in.down {
		return "" // ready, only not for long enough; or not known, which is no failure
	}
	limit := patienceOf(v.want)
	until := laterOf(t.readSince(v, in), t.Awake).Add(limit)
	if t.now.Before(until) {
		t.wakeBy(until)
		return ""
	}
	return say("not ready within %s: %s", limit, in.reason)
}

// failureCode is the code of what is wrong with an instance of a version under rollout.
func failureCode(in *instance) ring.ReasonCode {
	if in.Ended() && in.ExitCode == 0 && !in.OOM {
		return ring.WhyProgramEnded
	}
	return ring.WhyInstanceNotReady
}

func (t *Pass) deadlineSays(v *service, ready int) string {
	says := say("%s: %d/%d ready, no progress within %s", ring.CauseDeadline, ready, v.want.Replicas, v.want.Rollout.ProgressDeadline)
	if why := t.unmadeReason(v.of, v.target); why != "" {
		return says + "; " + why
	}
	for _, in := range v.instances {
		if in.Version == v.want.Version && !in.ready && in.reason != "" {
			return says + "; slot " + say("%d %s", in.Slot, in.reason)
		}
	}
	return says
}

// isSettled reports whether the target fills every slot, ready, and nothing else is left.
func (t *Pass) isSettled(v *service) bool {
	if t.onCluster() {
		return t.isServed(v)
	}
	n := 0
	for _, in := range v.instances {
		if in.isDraining() {
			continue
		}
		if in.Version != v.target.Version || !in.holdsSlot() || in.Slot > v.target.Replicas {
			return false
		}
		if !in.ready && !t.isResting(v, in) || !t.tookFiles(v, in) {
			return false
		}
		n++
	}
	for slot := 1; slot <= v.target.Replicas; slot++ {
		if n < v.target.Replicas && t.doneIn(v, slot) {
			n++
		}
	}
	return n == v.target.Replicas
}

// completionOutcome closes the rollout when it is settled: the version is good, and what
// a restore would bring back from now on. What is tied together closes in one moment.
func (t *Pass) completionOutcome(v *service) outcome {
	if !t.isSettled(v) || !v.rollout.Done && !t.groupReached(v, t.isSettled) || t.mayGoBack(v) {
		return outcome{}
	}
	o, over := t.bakeOutcome(v)
	if !over {
		return o
	}
	o.then = note
	if v.group != nil && v.target == v.want && !v.rollout.Done {
		for _, m := range v.group.members {
			if m != v && m.isRolling() {
				o.add(move{kind: moveClose, of: m})
			}
		}
	}
	o.add(move{kind: moveClose, of: v})
	return o
}

// completionStopped completes a rollout that stopped, where what is left of it serves whole.
func (t *Pass) completionStopped(v *service) outcome {
	if v.leftByGroup() || v.isWatched() {
		return outcome{}
	}
	return t.completionOutcome(v)
}

// leftByGroup reports whether what v is tied to went back to an older version: v cannot be
// good beside that, however well it runs until it is stopped with it.
func (v *service) leftByGroup() bool {
	return v.group != nil && slices.ContainsFunc(v.group.members, func(m *service) bool { return m != v && m.isRestoring() })
}

// closeRollout says that a service is what its target asks.
func (t *decider) closeRollout(v *service) {
	if v.target == v.want {
		t.tellReloaded(v)
		t.keepGood(v)
	}
	if v.rollout.Done || !v.waits.None() {
		return
	}
	row := v.rollout
	row.Done, row.At = true, t.now
	row.Few = t.fewSlots(v)
	t.setFact(row)
	e := ring.Event{
		Kind: ring.RolloutCompleted, Source: v.app.Source, App: v.app.Name, Service: v.want.Name,
		Version: v.want.Version, Commit: v.app.Commit, Reason: readySays(v.target.Replicas, v.target.Replicas),
	}
	if v.isRestoring() {
		e.Kind, e.Commit = ring.RolloutRestored, v.rollout.Commit
		e.Reason = say("kept %s: %s", v.good.Commit.Short(), v.failed.Reason)
	}
	t.addEvent(e)
}

// keepGood remembers the service as it completed. A change in place (replicas,
// checks, knobs) is part of what a restore brings back.
func (t *decider) keepGood(v *service) {
	if d, ok := t.Facts.Verdict(v.id, v.want.Version); !ok || !d.Good {
		t.setFact(ring.Verdict{ID: v.id, Version: v.want.Version, Good: true, Commit: v.app.Commit, Reason: "completed", At: t.now})
		v.failed = nil
	}
	with := t.alsoWriting(v)
	if v.good != nil && v.rollout.Done && sameService(&v.good.Service, v.want) {
		// An unrelated commit; a rollout that completes is this plan's.
		if len(with)+len(v.good.With) > 0 && !sameJSON(with, v.good.With) {
			g := *v.good
			g.With = with
			v.good = &g
			t.setFact(t.asGit(g))
		}
		return
	}
	app := *v.app
	app.Services = leadersOf(v.app, &v.want.Spec, nil)
	g := ring.Good{AppName: app.Name, App: app, Service: *v.want, Commit: v.app.Commit, At: t.now, With: with}
	v.good = &g
	t.setFact(t.asGit(g))
}

// leadersOf are what a service is tied to or follows, at whatever distance where
// volumes are taken: their versions are part of its own, and what they mount
// decides what it mounts.
func leadersOf(app *ring.App, of *ring.Spec, out []ring.Service) []ring.Service {
	for _, name := range of.Leaders() {
		if slices.ContainsFunc(out, func(s ring.Service) bool { return s.Name == name }) {
			continue
		}
		s, _ := app.Service(name)
		out = append(out, ring.Service{Name: name, Version: s.Version, Image: s.Image, Spec: ring.Spec{Mounts: s.Spec.Mounts, VolumesFrom: s.Spec.VolumesFrom}})
		out = leadersOf(app, &ring.Spec{VolumesFrom: s.Spec.VolumesFrom}, out)
	}
	return out
}

// fewSlots is the first slot above a person's count that is below the plan's: those from
// it on are ours to fill when that ends, until all of the plan's are. 0 is none.
func (t *Pass) fewSlots(v *service) int {
	app, ok := t.planned[v.app.Name]
	planned, has := app.Service(v.want.Name)
	was := v.rollout.Few
	switch few := v.target.Replicas + 1; {
	case ok && has && few <= planned.Replicas && (was == 0 || few < was || t.isSettled(v)):
		return few
	case was > 0 && (!ok || few > planned.Replicas) && t.isSettled(v):
		return 0
	}
	return was
}
