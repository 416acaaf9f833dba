package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// excuseEngineEnds keeps instances that ended with the engine, or the host, from counting
// against the version that they run: they are started again, as a restart policy
// would have done that is set only once a rollout is complete. It says that
// nothing can be told yet: a step is under way that began before.
func (t *decider) excuseEngineEnds(v *service) bool {
	was := v.rollout.Engine
	if t.Seen.Engine == "" || was == t.Seen.Engine {
		return false
	}
	if t.isBusy(string(v.id)) {
		return was != ""
	}
	row := v.rollout
	row.Engine = t.Seen.Engine
	t.setFact(row)
	if was == "" {
		return false
	}
	t.startAgain(v)
	return false
}

// startAgain means what ended of the wanted version to be started again, whether it
// was counted as a failure before the engine was gone or not.
func (t *decider) startAgain(v *service) {
	for _, in := range v.instances {
		if in.Version != v.want.Version || !in.holdsSlot() || !in.Ended() || in.intent != "" || in.rests {
			continue
		}
		if i := slices.Index(v.rollout.Counted, in.ID); i >= 0 { // seen before the engine was gone
			row := v.rollout
			row.Counted, row.Failures = slices.Delete(slices.Clone(row.Counted), i, i+1), max(0, row.Failures-1)
			t.setFact(row)
		}
		t.setFact(ring.Intent{Instance: in.ID, Kind: intentAgain, Reason: "it ended with the engine", At: t.now})
	}
}

// makeFinal has the verdict that was just given on v, and on what is tied to it, stand
// whatever becomes of the engine: a job that was cut short would run a second time,
// and a person is not to be overruled.
func (t *decider) makeFinal(v *service) {
	for _, m := range v.members() {
		d, failed := t.failedVerdict(m)
		if !failed || !d.At.Equal(t.now) {
			continue
		}
		d.Final, d.Memory = true, 0
		t.setFact(d)
	}
}

// shutdown is how long an engine, or a host, may take to go: ends are seen in that
// time, from an engine that still answers.
const shutdown = 2 * time.Minute

// acquitEngineEnds takes a verdict back that was given while the engine was on its way out:
// what ended then did so with it. Were it the version's fault, it fails again.
func (t *decider) acquitEngineEnds(v *service) {
	d, ok := t.Facts.Verdict(v.id, v.want.Version)
	row := v.rollout
	if !ok || d.Good || row.Done || row.Version != v.want.Version || row.Engine == "" || t.Seen.Engine == "" || row.Engine == t.Seen.Engine {
		return
	}
	if since := t.now.Sub(d.At); d.Final || d.Memory > 0 || since < 0 || since > shutdown || t.isBusy(string(v.id)) {
		return
	}
	t.takeBack(v)
	row.Version = "" // begun anew
	t.setFact(row)
	t.startAgain(v)
	t.addEvent(ring.Event{
		Kind: ring.RolloutResumed, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.want.Version, Commit: v.app.Commit,
		Reason: "the engine was on its way out when it failed: " + d.Reason,
	})
}
