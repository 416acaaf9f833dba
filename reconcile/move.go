package reconcile

// move is what a rule asks for: of instances and slots, never of the engine. What it takes
// to be safe against a crash, such as to write the intent down first, is here alone.
type move struct {
	kind  moveKind
	in    *inst   // which one
	all   []*inst // which ones, of a retirement
	slot  int     // which one, of a creation
	start bool    // and start it
	why   string  // for people
}

// moveKind is what happens to an instance.
type moveKind int

const (
	moveCreate moveKind = iota + 1
	moveStart
	moveRemove // at once
	moveClear  // its restart policy first, then stopped, then removed
	moveRetire // all of an old set from one moment on
	movePull   // an image that nobody has asked what it keeps for itself
)

// makeMove makes a move. It reports whether something was decided that ends the pass of a
// rule that only tries.
func (t *decider) makeMove(v *service, m *move) bool {
	switch m.kind {
	case moveCreate:
		return t.create(v, m.slot, m.start, m.why)
	case moveStart:
		return t.start(v, m.in, m.why)
	case moveRemove:
		t.remove(v, m.in, m.why)
	case moveClear:
		t.clear(v, m.in, intentRemove, m.why)
	case moveRetire:
		t.retire(v, m.all)
	case movePull:
		t.do(t.pull(v.of, v.target, m.why))
	}
	return true
}

// removing is to remove one instance, and end the pass.
func removing(in *inst, why string) outcome {
	return outcome{then: stop, moves: []move{{kind: moveRemove, in: in, why: why}}}
}

// clearing is to take one instance out of the way for good, and end the pass.
func clearing(in *inst, why string) outcome {
	return outcome{then: stop, moves: []move{{kind: moveClear, in: in, why: why}}}
}
