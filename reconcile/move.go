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
	in     *inst       // which one
	all    []*inst     // which ones, of a retirement
	of     *service    // whose rollout closes
	slot   int         // which one, of a creation
	start  bool        // and start it
	next   *inst       // what an instance gives way to
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
	moveRemove  // at once
	moveClear   // its restart policy first, then stopped, then removed or kept
	moveGiveWay // the same, for one that may start now
	moveFinish  // a removal that was meant before
	moveUntie   // stop what is tied to it, and nothing else
	moveRename  // give it the name that its file asks for
	moveReload  // have it take over files
	movePolicy  // set the engine's restart policy
	moveRecord  // keep the record of a crash
	moveRetire  // all of an old set from one moment on
	movePull    // an image that nobody has asked what it keeps for itself
	moveHeal    // ask the rules that keep alive
	moveClose   // a rollout is over
)

// makeMove makes a move. It reports whether something was decided that ends the pass of a
// rule that only tries.
func (t *decider) makeMove(v *service, m *move) bool {
	switch m.kind {
	case moveCreate:
		return t.create(v, m.slot, m.start, m.why)
	case moveStart:
		return t.start(v, m.in, m.why)
	case moveStartAgain:
		return t.telling(m.in) || t.start(v, m.in, m.why)
	case moveStop:
		return !t.untie(m.in, m.why) && t.do(t.step(v, ring.DoStop, m.in, m.why))
	case moveRestart:
		return t.restart(v, m.in, m.why)
	case moveRemove:
		t.remove(v, m.in, m.why)
	case moveClear:
		t.clear(v, m.in, m.intent, m.why)
	case moveGiveWay:
		if v.lacks = t.occupiedFor(v, m.next); v.lacks == "" {
			t.clear(v, m.in, m.intent, m.why)
		}
	case moveFinish:
		t.finishRemoval(v, m.in)
	case moveUntie:
		return t.untie(m.in, m.why)
	case moveRename:
		return t.named(v, m.in)
	case moveReload:
		return t.load(v, m.in)
	case movePolicy:
		a := t.step(v, ring.DoPolicy, m.in, m.why)
		a.Policy, a.MaxRetries = m.policy, m.tries
		return t.do(a)
	case moveRecord:
		t.crashed(v, m.in, *m.crash, m.since)
		return false
	case moveRetire:
		t.retire(v, m.all)
	case movePull:
		t.do(t.pull(v.of, v.target, m.why))
		return false
	case moveHeal:
		return t.decideBy(v, healRules)
	case moveClose:
		t.close(m.of)
	}
	return true
}

// removing is to remove one instance, and end the pass.
func removing(in *inst, why string) outcome {
	return outcome{then: stop, move: move{kind: moveRemove, in: in, why: why}}
}

// clearing is to take one instance out of the way for good, and end the pass.
func clearing(in *inst, why string) outcome {
	return outcome{then: stop, move: move{kind: moveClear, in: in, intent: intentRemove, why: why}}
}

// trying is a move that ends the pass where it can be made.
func trying(m move) outcome { return outcome{then: try, move: m} }

// noting is to remember something, and go on.
func noting(facts ...ring.Fact) outcome { return outcome{then: note, facts: facts} }

// pulling is to ask what an image keeps for itself, and go on.
func pulling() outcome {
	return outcome{then: note, move: move{kind: movePull, why: "has to be looked at"}}
}
