package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// watch is a time in which a version serves and is not good yet. A failure ends the
// rollout at once then, because what failed is no start but a version that people use.
type watch struct {
	knob  string                                // the word of the manifest for how long it takes
	doing string                                // what goes on, for the reason of a failure
	begun func(*ring.RolloutRow) *time.Time     // when it began is remembered here; zero for not yet
	asked func(*ring.Rollout) time.Duration     // as the manifest says
	long  func(*service) time.Duration          // with what is replaced together with it
	until func(*Pass, *service) (format string) // how its end is told, with a place for the time; "" for not at all
}

// watches are all that there are, in the order in which they follow each other.
var watches = []watch{
	{
		knob: "warm_for", doing: "watched beside the old set",
		begun: func(row *ring.RolloutRow) *time.Time { return &row.Switched },
		asked: func(r *ring.Rollout) time.Duration { return r.WarmFor },
		long:  func(v *service) time.Duration { return v.want.Rollout.WarmFor },
		until: (*Pass).warmUntil,
	},
	{
		knob: "bake", doing: "baking",
		begun: func(row *ring.RolloutRow) *time.Time { return &row.Baking },
		asked: func(r *ring.Rollout) time.Duration { return r.Bake },
		long:  (*service).bakeTime,
		until: func(*Pass, *service) string { return "; baking until %s UTC" },
	},
}

// isWatched reports whether the wanted version serves whole and is not good yet: the old
// set is kept warm, or it bakes.
func (v *service) isWatched() bool {
	return !v.rollout.Done && v.rollout.Version == v.want.Version && !v.watchedSince().IsZero()
}

// watchedSince is when the first watch began; zero where none did.
func (v *service) watchedSince() time.Time {
	for i := range watches {
		if at := *watches[i].begun(&v.rollout); !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// watchNow is the watch that goes on, and when it began; nil where none does.
func (v *service) watchNow() (*watch, time.Time) {
	for i := len(watches) - 1; i >= 0; i-- {
		if at := *watches[i].begun(&v.rollout); !at.IsZero() {
			return &watches[i], at
		}
	}
	return nil, time.Time{}
}

// bakeTime is how long v is watched; what moves together is watched together, for
// the longest that one of it asks for.
func (v *service) bakeTime() time.Duration {
	var longest time.Duration
	for _, m := range v.members() {
		if m.isRolling() && m.good != nil && m.good.Service.Version != m.want.Version {
			longest = max(longest, m.want.Rollout.Bake)
		}
	}
	return longest
}

// watchSays is until when a version that serves is watched, for people; "" when it is not.
func (t *Pass) watchSays(v *service) string {
	w, since := v.watchNow()
	if w == nil || !v.isWatched() {
		return ""
	}
	format := w.until(t, v)
	if format == "" {
		return ""
	}
	return say(format, since.Add(w.long(v)).UTC().Format("15:04:05"))
}

// warmUntil tells of the old set, as long as something of it is left.
func (t *Pass) warmUntil(v *service) string {
	if !slices.ContainsFunc(v.instances, func(in *instance) bool { return in.Version != v.want.Version && in.Live() }) {
		return ""
	}
	return "; the old set stays until %s UTC"
}
