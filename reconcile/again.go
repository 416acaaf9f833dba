package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// excuse keeps instances that ended with the engine, or the host, from counting
// against the version that they run: they are started again, as a restart policy
// would have done that is set only once a rollout is complete. It says that
// nothing can be told yet: a step is under way that began before.
func (t *turn) excuse(v *service) bool {
	was := v.row.Engine
	if t.Seen.Engine == "" || was == t.Seen.Engine {
		return false
	}
	if t.busy(string(v.id)) {
		return was != ""
	}
	v.row.Engine = t.Seen.Engine
	t.set(v.row)
	if was == "" {
		return false
	}
	for _, in := range v.all {
		if in.Version != v.want.Version || !in.holds() || !in.Ended() || in.intent != "" || in.rests || slices.Contains(v.row.Counted, in.ID) {
			continue
		}
		t.set(ring.Intent{Instance: in.ID, Kind: intentAgain, Reason: "it ended with the engine", At: t.now})
		in.intent = intentAgain
	}
	return false
}
