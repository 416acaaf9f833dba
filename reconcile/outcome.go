package reconcile

import "github.com/gitring/gitring/ring"

// then is how a rule ends.
type then int

const (
	skip then = iota // it has nothing to do with the service as it is
	note             // something is remembered or asked for, and the next rule is asked
	try              // the pass is over for the service if the move was made
	stop             // the pass is over for the service
)

// outcome is what comes of a rule. The zero value is that it skips.
type outcome struct {
	then   then
	reason ring.Reason // what the service lacks, where it lacks something
	clears bool        // what it lacked before is over
	// The moves are all made, in order; of a try, those up to the first that is made.
	// Most outcomes have one, or none.
	move   move
	more   []move
	facts  []ring.Fact
	events []ring.Event
}

// add asks for one move more.
func (o *outcome) add(m move) {
	if o.move.kind == 0 {
		o.move = m
		return
	}
	o.more = append(o.more, m)
}

// removing is to remove one instance, and end the pass.
func removing(in *instance, why string) outcome {
	return outcome{then: stop, move: move{kind: moveRemove, in: in, why: why}}
}

// clearing is to take one instance out of the way for good, and end the pass.
func clearing(in *instance, why string) outcome {
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
