package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// watched says that the wanted version serves whole and is not good yet: the old
// set is kept warm, or it bakes. A failure ends the rollout at once then, because
// what failed is no start but a version that people use.
func (v *service) watched() bool {
	return !v.row.Done && v.row.Version == v.want.Version && !v.watchedSince().IsZero()
}

func (v *service) watchedSince() time.Time {
	if v.row.Switched.IsZero() {
		return v.row.Baking
	}
	return v.row.Switched
}

// unproven takes back that v is watched where nothing of it ever served: it was
// complete with a count of none, and a person's count ended meanwhile. What starts now
// is judged as the start that it is. It says whether that is so.
func (t *decider) unproven(v *service) bool {
	if v.row.Ready > 0 || t.settled(v) {
		return false
	}
	row := v.row
	row.Switched, row.Baking, row.Progress = time.Time{}, time.Time{}, t.now
	t.set(row)
	return true
}

// watch takes the place of account once the wanted version served whole.
func (t *decider) watch(v *service) {
	if v.failed != nil {
		return
	}
	for _, in := range v.all {
		if in.Version != v.want.Version || !in.holds() {
			continue
		}
		if why := t.lapse(v, in); why != "" {
			t.fail(v, ring.Reason{Code: failureCode(in), Says: say("slot %d %s, while it was %s", in.Slot, why, v.watchSays())})
			return
		}
	}
}

func (v *service) watchSays() string {
	if v.row.Baking.IsZero() {
		return "watched beside the old set"
	}
	return "baking"
}

// lapse is why an instance that served does not serve any more. One that was made
// or started since has the time that any has.
func (t *Pass) lapse(v *service, in *inst) string {
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
	return t.failure(v, in)
}

// backByItself says that the engine restarted an instance since this was last
// looked at: it may serve again already.
func (t *Pass) backByItself(v *service, in *inst) bool {
	row, _ := t.slot(v, in)
	return in.Restarts > 0 && (row.Instance != in.ID || in.Restarts > row.Restarts)
}

// baking watches what is complete for a while yet before it is good. Without anything to
// go back to there is nothing to watch for. It reports whether that is over.
func (t *Pass) baking(v *service) (o outcome, over bool) {
	d := v.bakeTime()
	if v.target != v.want || v.row.Done || v.failed != nil || d == 0 {
		return o, true
	}
	since := v.row.Baking
	if since.IsZero() {
		since, o.then = t.now, note
		for _, m := range v.tied() {
			if m != v && !m.moves() {
				continue
			}
			row := m.row
			row.Baking = t.now
			o.facts = append(o.facts, row)
			o.events = append(o.events, ring.Event{
				Kind: ring.RolloutBaking, Source: m.app.Source, App: m.app.Name, Service: m.want.Name,
				Version: m.want.Version, Commit: m.app.Commit, Reason: say("serves, and is watched for %s", d),
			})
		}
	}
	if v.promoted() {
		return o, true
	}
	t.wake(since.Add(d))
	return o, !t.now.Before(since.Add(d))
}

// bakeTime is how long v is watched; what moves together is watched together, for
// the longest that one of it asks for.
func (v *service) bakeTime() time.Duration {
	var longest time.Duration
	for _, m := range v.tied() {
		if m.moves() && m.good != nil && m.good.Service.Version != m.want.Version {
			longest = max(longest, m.want.Rollout.Bake)
		}
	}
	return longest
}

// tied are v and all that is replaced together with it.
func (v *service) tied() []*service {
	if v.fate == nil {
		return []*service{v}
	}
	return v.fate.of
}

// bakeSays is how long a version that serves is watched yet, for people; "" when
// it is not.
func (v *service) bakeSays() string {
	if v.row.Baking.IsZero() || !v.watched() {
		return ""
	}
	return say("; baking until %s UTC", v.row.Baking.Add(v.bakeTime()).UTC().Format("15:04:05"))
}
