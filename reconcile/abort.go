package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// abort gives the verdict that a failure would: what follows a failure follows. A
// rollout that waits for nothing but a job's run is under way too, and ends with it.
func (p *person) abort(v *service) error {
	if v.want.Kind.Ends() {
		return p.abortJob(v)
	}
	i := slices.IndexFunc(v.members(), func(m *service) bool { return m.isRolling() || len(p.jobsBefore(m)) > 0 })
	if i < 0 {
		return unfitAct(say("gitring undo %s --reason '…' brings back the plan before", p.App), "no rollout of %s is under way", v.id)
	}
	v = v.members()[i]
	jobs := p.jobsBefore(v)
	for _, m := range v.members() {
		if o := p.overrideOn(ring.OverridePause, m.id); o != nil {
			p.endOverride(*o, p.Actor, "aborted: "+p.Reason)
		}
	}
	p.tellAct(ring.RolloutAborted, v, p.Reason)
	c := v.rollout.Commit
	if !v.isRolling() {
		c = v.app.Commit // it has not begun
	}
	reason := ring.Reason{Code: ring.WhyAbortedByPerson, Says: say("aborted by %s: %s", p.Actor, p.Reason)}
	p.giveVerdict(v, c, reason)
	p.failTied(v, reason)
	p.makeFinal(v)
	p.chooseTarget(v)
	p.done.Says = say("%s is aborted and stays as it is: there is no earlier version to go back to", v.id)
	if v.wouldRestore() {
		p.done.Says = say("%s is aborted and goes back to %s", v.id, v.good.Commit.Short())
	}
	if stopped := p.stopRuns(jobs, v); len(stopped) > 0 {
		p.done.Says += say("; the run of %s is stopped", strings.Join(stopped, ", "))
	}
	return nil
}

// jobsBefore are the jobs whose runs a rollout that has not begun waits for: the one
// that runs before it, if nothing else keeps that, and those under way that it
// depends on.
func (p *person) jobsBefore(v *service) (out []*service) {
	if v.waits.None() || v.failed != nil || v.want.Kind.Ends() {
		return nil
	}
	for _, name := range dependenciesOf(v.want) {
		j := p.views[ring.ID(v.app.Name, name)]
		switch {
		case j == nil || j.want.Kind != ring.JobK:
		case name == v.want.Before:
			run, begun := p.beforeRow(v)
			if p.gateBut(v).None() && !p.letThrough(v) && (!begun || run.State == jobStarted || run.State == "") {
				out = append(out, j)
			}
		case len(p.underWay(j.id)) > 0:
			if why, dead := p.jobReached(j.id, j.want, ring.Completed); why != "" && !dead {
				out = append(out, j)
			}
		}
	}
	return out
}

// abortJob ends what is under way of a job. What waits for it fails with it.
func (p *person) abortJob(v *service) error {
	if len(p.stopRuns([]*service{v}, nil)) == 0 {
		return unfitAct(say("gitring jobs %s lists its runs; gitring hold %s --reason '…' keeps it from starting", v.id, v.id), "no run of %s is under way", v.id)
	}
	p.tellAct(ring.RolloutAborted, v, p.Reason)
	p.done.Says = say("the run of %s is stopped, and not tried again", v.id)
	return nil
}

// stopRuns ends the runs of jobs that are under way, as a timeout would, and has no
// try follow. Of a job that runs before others, that is the run for s, whose verdict
// is given already; of a nil s all. It returns the names of those that had one.
func (p *person) stopRuns(jobs []*service, s *service) (stopped []string) {
	for _, j := range jobs {
		for _, run := range p.underWay(j.id) {
			if s != nil && run.Trigger == ring.Asked || s != nil && run.Trigger == ring.Before && run.For != ring.ForVersion(s.want.Name, s.want.Version) {
				continue
			}
			run.Aborted = s != nil && run.Trigger == ring.Before
			p.stopRun(j, run)
			if !slices.Contains(stopped, j.want.Name) {
				stopped = append(stopped, j.want.Name)
			}
		}
	}
	return stopped
}

func (p *person) stopRun(j *service, run ring.JobRun) {
	why := say("an abort by %s: %s", p.Actor, p.Reason)
	if run.State == "" { // between two tries
		p.noMore(j, run, why)
		if run.Trigger == ring.Before {
			run.State, run.Reason = jobFailed, why
			p.beforeEnded(j, run)
		}
		return
	}
	run.Stopped, run.Final = why, true
	p.setFact(run)
}
