package reconcile

import (
	"github.com/gitring/gitring/ring"
)

// hooked says that an instance runs commands after each start by us. Such a
// start is written down before it happens: a daemon that ended between the
// start and the last command cannot know how far they came.
func (v *service) hooked(in *inst) bool {
	s := v.runs(in)
	return s != nil && len(s.Spec.PostStart) > 0
}

// meanHooks writes down that in is about to be started with its hooks.
func (t *turn) meanHooks(v *service, in *inst, why string) {
	if !v.hooked(in) || in.intent == intentHooks {
		return
	}
	t.set(ring.Intent{Instance: in.ID, Kind: intentHooks, Reason: why, At: t.now})
	in.intent = intentHooks
}

// unhooked restarts an instance that runs and whose hooks nobody saw through.
func (t *turn) unhooked(v *service, in *inst) {
	t.do(t.step(v, ring.DoRestart, in, "nobody saw its post_start hooks through"))
}
