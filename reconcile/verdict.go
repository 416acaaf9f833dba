package reconcile

import (
	"cmp"

	"github.com/gitring/gitring/ring"
)

// failRollout gives the verdict on the wanted version; the target follows from it.
func (t *decider) failRollout(v *service, reason ring.Reason) {
	if of := v.hostsValuesAlone(); of != "" {
		reason.Says = say("%s; nothing of it changed but %s, seen %s", reason.Says, of, clock(v.rollout.Began))
	}
	t.giveVerdict(v, v.rollout.Commit, reason)
	t.failTied(v, reason)
	t.chooseTarget(v)
}

func (t *decider) giveVerdict(v *service, c ring.SHA, reason ring.Reason) {
	t.setFact(ring.Verdict{ID: v.id, Version: v.want.Version, Commit: c, Reason: reason.Says, Code: reason.Code, At: t.now, Memory: t.starvedMemory(v), Live: v.liveVersion()})
	t.addEvent(ring.Event{
		Kind: ring.RolloutFailed, Source: v.app.Source, App: v.app.Name, Service: v.want.Name,
		Version: v.want.Version, Commit: c, Reason: reason.Says, Code: cmp.Or(reason.Code, ring.WhyRolloutFailed), On: reason.On,
	})
}

// failTied gives the verdict on v to all that is replaced together with it.
func (t *decider) failTied(v *service, reason ring.Reason) {
	if v.group == nil {
		return
	}
	for _, m := range v.group.members {
		begun := m.rollout.Version == m.want.Version
		if m == v || m.want.Kind.Ends() || m.failed != nil || begun && m.rollout.Done {
			continue
		}
		if m.good != nil && m.good.Service.Version == m.want.Version {
			continue // it is not replaced
		}
		commit := m.app.Commit
		if begun {
			commit = m.rollout.Commit
		}
		t.giveVerdict(m, commit, ring.Reason{Code: ring.WhyGroupNotReady, On: v.id, Says: say("%s: %s", v.want.Name, reason.Says)})
	}
	for _, m := range v.group.members {
		t.chooseTarget(m)
	}
}

// takeBack forgets that the wanted version of s failed. A run before it that failed
// is over with that: it condemns the version no more, and the next try has its own.
func (t *decider) takeBack(s *service) {
	t.setFact(ring.Forget{Table: "verdict", Key: s.wantedKey()})
	t.pardonRun(s.app, s.want)
}

// pardonRun ends what a failed run before a version says of it.
func (t *decider) pardonRun(app *ring.App, s *ring.Service) {
	if s.Before == "" {
		return
	}
	run, ok := t.Facts.Jobs[ring.RunKey(ring.ID(app.Name, s.Before), ring.BeforeMark(ring.ForVersion(s.Name, s.Version)))]
	if ok && run.State == jobFailed && !run.Over {
		run.Over = true
		t.setFact(run)
	}
}
