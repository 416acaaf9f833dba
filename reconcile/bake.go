package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// unwatchUnproven takes back that v is watched where nothing of it ever served: it was
// complete with a count of none, and a person's count ended meanwhile. What starts now
// is judged as the start that it is. It reports whether that is so.
func (t *decider) unwatchUnproven(v *service) bool {
	if v.rollout.Ready > 0 || t.isSettled(v) {
		return false
	}
	row := v.rollout
	row.Progress = t.now
	for i := range watches {
		*watches[i].begun(&row) = time.Time{}
	}
	t.setFact(row)
	return true
}

// watchServing takes the place of account once the wanted version served whole.
func (t *decider) watchServing(v *service) {
	if v.failed != nil {
		return
	}
	for _, in := range v.instances {
		if in.Version != v.want.Version || !in.holdsSlot() {
			continue
		}
		if why := t.lapseReason(v, in); why != "" {
			w, _ := v.watchNow()
			t.failRollout(v, ring.Reason{Code: failureCode(in), Says: say("slot %d %s, while it was %s", in.Slot, why, w.doing)})
			return
		}
	}
}

// lapseReason is why an instance that served does not serve any more. One that was made
// or started since has the time that any has.
func (t *Pass) lapseReason(v *service, in *instance) string {
	switch {
	case in.unlive != "" && in.act != "" && in.Live():
		return in.unlive
	case in.Live() && t.backByItself(v, in):
		return "was restarted by the engine: " + exitSays(in.Instance)
	case in.ready || in.intent != "":
		return ""
	case in.down && in.State == ring.StateRunning && in.Since.Before(v.watchedSince()):
		return "is not ready any more: " + in.reason
	}
	return t.failureReason(v, in)
}

// backByItself reports whether the engine restarted an instance since this was last
// looked at: it may serve again already.
func (t *Pass) backByItself(v *service, in *instance) bool {
	row, _ := t.slotRow(v, in)
	return in.Restarts > 0 && (row.Instance != in.ID || in.Restarts > row.Restarts)
}

// bakeOutcome watches what is complete for a while yet before it is good. Without anything to
// go back to there is nothing to watch for. It reports whether that is over.
func (t *Pass) bakeOutcome(v *service) (o outcome, over bool) {
	d := v.bakeTime()
	if v.target != v.want || v.rollout.Done || v.failed != nil || d == 0 {
		return o, true
	}
	since := v.rollout.Baking
	if since.IsZero() {
		since, o.then = t.now, note
		for _, m := range v.members() {
			if m != v && !m.isRolling() {
				continue
			}
			row := m.rollout
			row.Baking = t.now
			o.facts = append(o.facts, row)
			o.events = append(o.events, ring.Event{
				Kind: ring.RolloutBaking, Source: m.app.Source, App: m.app.Name, Service: m.want.Name,
				Version: m.want.Version, Commit: m.app.Commit, Reason: say("serves, and is watched for %s", d),
			})
		}
	}
	if v.isPromoted(since) {
		return o, true
	}
	t.wakeBy(since.Add(d))
	return o, !t.now.Before(since.Add(d))
}
