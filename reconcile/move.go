package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// move is what a rule asks for: of instances and slots, never of the engine. What it takes
// to be safe against a crash, such as to write the intent down first, is here and in what
// this calls.
type move struct {
	kind   moveKind
	in     *instance   // which one
	all    []*instance // which ones, of a retirement
	of     *service    // whose rollout closes
	slot   int         // which one, of a creation
	start  bool        // and start it
	next   *instance   // what an instance gives way to
	intent string      // why it is cleared: to go, or to be kept
	policy string      // the engine's restart policy
	tries  int         // of that policy
	crash  *ring.Crash // to be recorded
	since  time.Time   // the end of the run before the one that crashed
	why    string      // for people
}

// moveKind is what happens to an instance.
type moveKind int

const (
	moveCreate moveKind = iota + 1
	moveStart
	moveStartAgain // once its last words are read
	moveStop       // what is tied to it first
	moveRestart
	moveRemove   // at once
	moveClear    // its restart policy first, then stopped, then removed or kept
	moveGiveWay  // the same, for one that may start now
	moveFinish   // a removal that was meant before
	moveUntie    // stop what is tied to it, and nothing else
	moveRename   // give it the name that its file asks for
	moveShorten  // give it the name that Compose gives
	moveReload   // have it take over files
	moveSignal   // have the proxy of a front started anew
	movePolicy   // set the engine's restart policy
	moveRecord   // keep the record of a crash
	moveRetire   // all of an old set from one moment on
	movePull     // an image that nobody has asked what it keeps for itself
	moveHeal     // ask the rules that keep alive
	moveClose    // a rollout is over
	moveServe    // send a cluster the spec of the target
	moveServeOff // take its service off a cluster
)

// makeMove makes a move. It reports whether something was decided that ends the pass of a
// rule that only tries.
func (t *decider) makeMove(v *service, m *move) bool {
	switch m.kind {
	case moveCreate:
		return t.createInstance(v, m.slot, m.start, m.why)
	case moveStart:
		return t.startInstance(v, m.in, m.why)
	case moveStartAgain:
		return t.readsLog(m.in) || t.startInstance(v, m.in, m.why)
	case moveStop:
		return !t.stopTied(m.in, m.why) && t.addStep(t.stepOn(v, ring.DoStop, m.in, m.why))
	case moveRestart:
		return t.restartInstance(v, m.in, m.why)
	case moveRemove:
		t.removeInstance(v, m.in, m.why)
	case moveClear:
		t.clearInstance(v, m.in, m.intent, m.why)
	case moveGiveWay:
		if v.missing = t.occupiedReasonOf(v, m.next); v.missing == "" {
			t.clearInstance(v, m.in, m.intent, m.why)
		}
	case moveFinish:
		t.finishRemoval(v, m.in)
	case moveUntie:
		return t.stopTied(m.in, m.why)
	case moveRename:
		return t.giveName(v, m.in)
	case moveShorten:
		t.shortenName(v, m.in)
		return false
	case moveReload:
		return t.loadFiles(v, m.in)
	case moveSignal:
		return t.addStep(t.stepOn(v, ring.DoSignal, m.in, m.why))
	case movePolicy:
		a := t.stepOn(v, ring.DoPolicy, m.in, m.why)
		a.Policy, a.MaxRetries = m.policy, m.tries
		return t.addStep(a)
	case moveRecord:
		t.tellCrash(v, m.in, *m.crash, m.since)
		return false
	case moveRetire:
		t.retireSet(v, m.all)
	case movePull:
		if why := t.unverifiedReason(v.of, v.target); why != "" {
			v.missing = why
			return false
		}
		t.addStep(t.pullStep(v.of, v.target, m.why))
		return false
	case moveHeal:
		return t.decideBy(v, healRules)
	case moveClose:
		t.closeRollout(m.of)
	case moveServe:
		return t.sendSpec(v, m.why)
	case moveServeOff:
		t.addStep(ring.Action{
			Kind: ring.DoServeOff, App: v.app.Name, Service: v.want.Name, Version: v.sent.Version, Commit: v.app.Commit, Index: v.sent.Index, Reason: m.why,
		})
	}
	return true
}
