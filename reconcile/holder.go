package reconcile

import (
	"cmp"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// A container of somebody else under a name that an instance needs is drift: the engine
// tells of it when the name is taken for ours. Of an app with drift: report nobody takes
// it, so the engine is asked whose it is.

// whoseAgain is how long after a name was nobody's it is asked for again: a full look.
const whoseAgain = 10 * time.Second

// nameHeld is the sentence of a name that a slot needs and that somebody else has; ""
// where nobody does. in is what runs under another name, nil for an empty slot.
func (t *decider) nameHeld(v *service, slot int, in *instance) string {
	a := ring.Action{
		Kind: ring.DoCreate, App: v.app.Name, Service: v.want.Name, Slot: slot, Version: v.target.Version,
		Name: ring.ContainerName(v.app.Name, v.want.Name, slot, v.target.Version), Commit: v.app.Commit, Of: v.of, Want: v.target, Reason: "its slot has not got it",
	}
	needs := a.Name
	if in != nil {
		if needs = cmp.Or(v.target.Spec.ContainerName, needs); in.Name == needs {
			return ""
		}
		a.Kind, a.Name = ring.DoRename, in.Name
	}
	if onlyReports(v.app) && (in != nil || t.slotTaken(v, slot)) {
		a.Kind, a.Name = ring.DoWhose, needs
		t.addStep(a)
	}
	says := say("the name %s of slot %d is held by ", needs, slot)
	if try, ok := t.Tries[tryKey(a)]; ok && sameTry(try, a) {
		if try.Holder == "" {
			return ""
		}
		return say("%s%s, which is not gitring's: docker rm or docker rename it", says, try.Holder)
	}
	// A daemon that was started since has not tried yet: what was told stands.
	for _, what := range t.Facts.Drift[v.id].What {
		if strings.HasPrefix(what, says) {
			return what
		}
	}
	return ""
}

// toldWhose keeps what came of asking whose a name is.
func toldWhose(tries map[string]ring.Try, a ring.Action, err error, now time.Time) {
	if err != nil {
		failTry(tries, a, "", err, now)
		return
	}
	tries[tryKey(a)] = ring.Try{Kind: a.Kind, Version: a.Version, Name: a.Name, N: 1, At: now, Next: now.Add(whoseAgain)}
}
