package reconcile

import (
	"cmp"
	"time"

	"github.com/gitring/gitring/ring"
)

// conditionsOf are what goes on with a service for a while: what is wrong, for as long as
// it is, and that a rollout moves it. One that is well and at rest has none.
func (t *Pass) conditionsOf(v *service, st *ring.ServiceStatus) []ring.Condition {
	out := t.lackingConditions(v, st)
	if r := st.Rollout; r != nil && isWorking(st) && (r.Phase == ring.RolloutProgressing || r.Phase == ring.RolloutRestoring) {
		out = append(out, ring.Condition{Type: ring.ConditionProgressing, Reason: r.Reason, Since: t.movesSince(v), Commit: r.Commit})
	}
	for _, in := range v.instances {
		row, ok := t.slotRow(v, in)
		if ok && row.Instance == in.ID && row.Crashes >= loopCrashes {
			out = append(out, ring.Condition{Type: ring.ConditionCrashLooping, Reason: say("slot %d crashed %d times, last exit code %d", in.Slot, row.Crashes, row.ExitCode), Since: row.Last.UTC(), Commit: in.Commit, ExitCode: row.ExitCode})
		}
	}
	if c, ok := t.contestedCondition(v.id); ok {
		out = append(out, c)
	}
	if c, ok := t.flapCondition(v); ok {
		out = append(out, c)
	}
	if c, ok := t.driftCondition(v.id); ok {
		out = append(out, c)
	}
	out = append(out, t.frontConditions(v)...)
	if v.filesFailed != nil {
		out = append(out, ring.Condition{Type: ring.ConditionQuarantined, Reason: v.filesFailed.Reason, Since: v.filesFailed.At.UTC(), Commit: v.filesFailed.Commit})
	}
	if v.failed != nil {
		out = append(out, ring.Condition{Type: ring.ConditionQuarantined, Reason: v.failed.Reason, Since: v.failed.At.UTC(), Commit: v.failed.Commit})
	}
	for i := range out {
		out[i].Status = cmp.Or(out[i].Status, ring.ConditionTrue)
		out[i].Commit = cmp.Or(out[i].Commit, v.want.Changed)
	}
	return out
}

// lackingConditions are the conditions that a service should have and does not.
func (t *Pass) lackingConditions(v *service, st *ring.ServiceStatus) (out []ring.Condition) {
	if why := t.unavailableReason(v, st); why != "" {
		out = append(out, ring.Condition{Type: ring.ConditionAvailable, Reason: why, Since: t.lacksSince(v, ring.ConditionAvailable), Commit: v.target.Changed})
	}
	if next, ok := t.imageless[v.id]; ok {
		out = append(out, ring.Condition{Type: ring.ConditionImageResolved, Reason: next.says, Since: t.lacksSince(v, ring.ConditionImageResolved), Commit: next.commit})
	}
	if why := t.memoryShort(v); why != "" {
		out = append(out, ring.Condition{Type: ring.ConditionAdmitted, Reason: why, Since: v.rollout.Began.UTC(), Commit: v.rollout.Commit})
	}
	for i := range out {
		out[i].Status = ring.ConditionFalse
	}
	return out
}

// imageless is why the next plan of a service has no image yet, and which commit asks.
type imageless struct {
	says   string
	commit ring.SHA
}

// unavailableReason is why a service does not serve as its rollouts have to leave it; "" when
// it does, and when it ended as it may.
func (t *Pass) unavailableReason(v *service, st *ring.ServiceStatus) string {
	d := v.target.Replicas
	_, down := roomOf(v.target.Rollout, d)
	if st.Ready >= d-down || t.isSettled(v) {
		return ""
	}
	return say("%d of %d ready, at least %d should be", st.Ready, d, d-down)
}

// remembersSince reports whether it is written down since when a service lacks something. One that
// never served lacks it since it was first asked for.
func (v *service) remembersSince(condition string) bool {
	return condition == ring.ConditionImageResolved || condition == ring.ConditionAvailable && v.good != nil
}

func (t *Pass) lacksSince(v *service, condition string) time.Time {
	if !v.remembersSince(condition) {
		return v.rollout.Began.UTC()
	}
	if row, ok := t.Facts.Troubles[ring.TroubleKey(condition, string(v.id))]; ok {
		return row.Since.UTC()
	}
	return t.now.UTC()
}

// movesSince is when what moves a service began: its rollout, or the way back; zero for
// files that are reloaded, which are a moment's work.
func (t *Pass) movesSince(v *service) time.Time {
	switch rolloutState(v) {
	case Restoring, Restored:
		return v.failed.At.UTC()
	case Starting, Watching, Stopped:
		return v.rollout.Began.UTC()
	}
	return time.Time{}
}

// rememberLacking remembers since when a service lacks something; recovered forgets it.
func (t *decider) rememberLacking(tr ring.Trouble, v *service, s *ring.ServiceStatus) {
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if v == nil || c.Status != ring.ConditionFalse || !v.remembersSince(c.Type) {
			continue
		}
		tr.What, tr.Commit, tr.Reason, tr.Told = c.Type, c.Commit, c.Reason, true
		put(&t.lacked, ring.TroubleKey(tr.What, tr.Subject), true)
		t.beginTrouble(tr)
	}
}
