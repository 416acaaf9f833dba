package reconcile

import (
	"cmp"

	"github.com/gitring/gitring/ring"
)

// RunNow is a person's wish that a job or cron job runs now.
const RunNow Verb = "run"

// runIt writes the wish down. What carries it out is the next look; the wish goes
// when the run begins.
func (p *person) runIt() error {
	v := p.views[ring.ID(p.App, p.Service)]
	switch {
	case v == nil:
		return unfitAct("gitring status lists apps and services", "%s is not in force here", p.target())
	case !v.want.Kind.Ends():
		return unfitAct(say("gitring restart %s --reason '…' starts it anew", v.id), "%s is a %s and runs already: only jobs and cron jobs are run", v.id, v.want.Kind)
	case p.handsOff(v.id):
		return unfitAct("gitring release "+string(v.id)+" --reason '…' ends a hold", "%s does not run: %s", v.id, cmp.Or(p.heldBy(v.id).Says, "its source is only observed"))
	case v.want.Kind == ring.CronK && !p.cronHeld(v).None():
		return unfitAct("the commit ends it", "%s does not run: %s", v.id, p.cronHeld(v).Says)
	case p.isAskedFor(v):
		return unfitAct("gitring jobs "+string(v.id)+" shows what it waits for", "%s was asked to run by %s, and is about to", v.id, p.Facts.Asks[v.id].Actor)
	}
	if active := p.underWay(v.id); len(active) > 0 {
		return unfitAct("gitring jobs "+string(v.id)+" shows it; ask again when it has ended", "a run of %s is under way: %s", v.id, runSays(active[0]))
	}
	if _, ran := p.jobRun(v.id, v.want); !ran && v.want.Kind == ring.JobK && len(v.runsBefore()) == 0 {
		return unfitAct("gitring jobs "+string(v.id)+" shows what it waits for", "%s is about to run by itself: its version has not run yet", v.id)
	}
	p.setFact(ring.Ask{ID: v.id, Actor: p.Actor, Reason: p.Reason, At: p.now})
	p.addEvent(ring.Event{Kind: ring.RunAsked, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.want.Version, Commit: v.app.Commit, Actor: p.Actor, Reason: p.Reason})
	p.done.At = p.now
	p.done.Says = say("%s runs now", v.id)
	return nil
}
