package reconcile

import (
	"cmp"

	"github.com/gitring/gitring/ring"
)

// decideJob runs a job once per version: the start is on disk before it happens, so
// a job is never run twice by accident, and one that was interrupted failed.
func (t *decider) decideJob(v *service) {
	t.spendRuns(v)
	t.noMoreTries(v)
	if t.isBusy(string(v.id)) {
		return
	}
	if t.handsOff(v.id) {
		t.hearOut(v)
		return
	}
	if t.decideBy(v, jobRules) {
		return
	}
	// From here no run of the job is under way.
	if t.adoptRun(v) {
		return
	}
	t.repeatVerdict(v)
	if run, ok := t.nextRun(v); ok {
		t.startRun(v, t.slotOfJob(run), run)
		return
	}
	t.keepRuns(v)
}

// formerWorker removes what still runs of a service that was a worker: nothing ends by
// itself there that a run could wait for, and no run begins beside it.
func (t *Pass) formerWorker(v *service) outcome {
	if t.onCluster() && v.sent != nil {
		return outcome{then: stop, move: move{kind: moveServeOff, why: say("replaced by %s, where it is a %s", v.app.Commit.Short(), v.want.Kind)}}
	}
	for _, in := range v.instances {
		if in.Kind == ring.Worker && in.holdsSlot() && !t.onCluster() {
			return clearing(in, say("replaced by %s, where it is a %s", v.app.Commit.Short(), v.want.Kind))
		}
	}
	return outcome{}
}

// formerRuns sees the runs through of a service that is no job any more.
func (t *decider) formerRuns(v *service) bool {
	t.noMoreTries(v)
	t.followRuns(v)
	return false
}

// formerRun removes the container of a run of a service that is no job any more. Nothing
// takes its place before it has ended.
func (t *Pass) formerRun(v *service, in *instance) outcome {
	switch {
	case !in.Kind.Ends():
		return outcome{}
	case in.Live() || in.holdsSlot() && t.readsLog(in):
		return outcome{then: stop}
	case t.stopsOnCluster(in):
		return outcome{then: stop, reason: ring.Reason{Code: ring.WhyRunUnderWay, On: v.id, Says: stopsSays(in)}}
	case in.holdsSlot():
		return removing(in, say("%s is no job any more", v.want.Name))
	}
	return outcome{}
}

// oldRun waits for an instance of an earlier version of which no run is known,
// and removes what ended.
func (t *Pass) oldRun(v *service, in *instance) outcome {
	switch {
	case in.Version == v.want.Version || !in.holdsSlot():
		return outcome{}
	case in.Live():
		why := t.earlierRunSays(v, in, ring.JobRun{Started: in.Since})
		return outcome{then: stop, reason: ring.Reason{Code: ring.WhyRunUnderWay, On: v.id, Says: why}}
	case t.stopsOnCluster(in):
		return outcome{then: stop, reason: ring.Reason{Code: ring.WhyRunUnderWay, On: v.id, Says: stopsSays(in)}}
	case t.readsLog(in):
		return outcome{then: stop}
	}
	return removing(in, "a newer version of the job is wanted")
}

// nextRun is the run that is to begin now, if any: what a person asked for,
// what a rollout waits for, or that of the job's own version.
func (t *decider) nextRun(v *service) (ring.JobRun, bool) {
	if run, ok := t.askedRun(v); ok {
		return run, true
	}
	if waiting := v.runsBefore(); len(waiting) > 0 {
		for _, name := range waiting {
			if run, ok := t.runBefore(v, t.views[ring.ID(v.app.Name, name)]); ok {
				return run, true
			}
		}
		return ring.JobRun{}, false
	}
	run, ran := t.jobRun(v.id, v.want)
	if ran && run.State != "" {
		return ring.JobRun{}, false
	}
	return ring.JobRun{ID: v.id, Trigger: ring.OnChange, Instance: run.Instance, Tries: run.Tries, Cut: run.Cut, Ended: run.Ended}, true
}

// askedRun is the run that a person asked for and that has not begun, or is to
// be tried again. A wish that nothing came of for long ends.
func (t *decider) askedRun(v *service) (ring.JobRun, bool) {
	ask, ok := t.Facts.Asks[v.id]
	if !ok {
		run := t.Facts.Jobs[ring.RunKey(v.id, ring.AskedMark)]
		return run, run.ID != "" && run.State == ""
	}
	run := ring.JobRun{ID: v.id, Trigger: ring.Asked, Actor: ask.Actor, Due: ask.At}
	if until := ask.At.Add(askedWithin); t.now.Before(until) {
		t.wakeBy(until)
		return run, true
	}
	t.setFact(ring.Forget{Table: "ask", Key: string(v.id)})
	t.skipRun(v, run, say("could not begin within %s: %s", askedWithin, cmp.Or(t.runObstacle(v), "something else was under way")))
	return ring.JobRun{}, false
}

// unknownRun is an instance of the wanted version that ran and of which no run is
// known: the database and the marks are lost. Its run is not made a second time.
func (t *Pass) unknownRun(v *service) *instance {
	for _, in := range v.instances {
		if in.Version != v.want.Version || !in.holdsSlot() || in.State == ring.StateCreated || v.want.Kind == ring.CronK && in.Ended() && in.Run == nil {
			continue
		}
		if t.onCluster() && !t.isNews(v, in) {
			continue
		}
		if _, ok := t.runIn(v, in); !ok {
			return in
		}
	}
	return nil
}
