package gitsync

import (
	"container/heap"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/pjbgf/sha1cd"

	"github.com/gitring/gitring/ring"
)

// ErrMissing says that an object is not in the store.
var ErrMissing = errors.New("no such object")

// Objects is the raw object store the verifier reads. Raw returns the object's
// type (commit, tree, blob, tag) and its bytes as stored; they are hashed again
// here, so a store that lies or is damaged is found out. The error wraps
// ErrMissing when the object is absent.
type Objects interface {
	Raw(sha ring.SHA) (kind string, body []byte, err error)
}

// readCommit reads, re-hashes and parses one commit.
func readCommit(o Objects, sha ring.SHA) (*parsed, *ring.Refusal, error) {
	kind, body, err := o.Raw(sha)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read commit %s: %w", sha, err)
	}
	sum, collides := objectHash(kind, body)
	if refusal := named(sha, sum, collides); refusal != nil {
		return nil, refusal, nil
	}
	if kind != "commit" {
		return nil, notACommit(sha, kind), nil
	}
	p, refusal := parseCommit(sha, body)
	return p, refusal, nil
}

// named refuses bytes that are not what their name says, or that were made to
// have the name of others.
func named(want, sum ring.SHA, collides bool) *ring.Refusal {
	switch {
	case collides:
		return sha1Collision(want)
	case sum != want:
		return hashMismatch(want)
	}
	return nil
}

func objectHash(kind string, body []byte) (sum ring.SHA, collides bool) {
	return detectingSum(fmt.Appendf(nil, "%s %d\x00", kind, len(body)), body)
}

// detectingSum is SHA-1 that notices the blocks of the known attacks.
func detectingSum(parts ...[]byte) (sum ring.SHA, collides bool) {
	h := sha1cd.New().(sha1cd.CollisionResistantHash)
	for _, p := range parts {
		h.Write(p)
	}
	b, collides := h.CollisionResistantSum(nil)
	return ring.SHA(hex.EncodeToString(b)), collides
}

// Colours of a commit in a walk: what it can be reached from.
const (
	fromTip     = 1 << iota // reachable from the tip
	fromAnchor              // reachable from the anchor
	sinceAnchor             // has the anchor among its ancestors, as far as seen
)

// maxBehind bounds the look at trusted history that only makes answers more
// exact: which side branch forked long ago, how far a force-push went back.
const maxBehind = 100_000

// visit is what a walk keeps of one commit: never its bytes, so that a range of
// ten thousand costs a few megabytes.
type visit struct {
	sha     ring.SHA
	when    int64
	parents []ring.SHA
	colour  int
	done    bool // its parents are in the walk
}

// walk goes back from the tip and the anchor at once, newest commit first.
// Commits that both reach are trusted already and never parsed strictly.
type walk struct {
	o      Objects
	seen   map[ring.SHA]*visit
	queue  queue
	open   int // queued commits of the tip's colour alone
	fresh  int // popped commits of the tip's colour alone
	behind int // popped commits of the anchor's colour
}

func newWalk(o Objects) *walk {
	return &walk{o: o, seen: map[ring.SHA]*visit{}}
}

// paint adds colour to a commit and, when its parents were already painted
// without it, to them too.
func (w *walk) paint(sha ring.SHA, colour int) (*ring.Refusal, error) {
	todo := []ring.SHA{sha}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		v := w.seen[id]
		if v == nil {
			if refusal, err := w.load(id, colour); refusal != nil || err != nil {
				return refusal, err
			}
			continue
		}
		if v.colour&colour == colour {
			continue
		}
		w.count(v, -1)
		v.colour |= colour
		w.count(v, +1)
		if v.done {
			todo = append(todo, v.parents...)
		}
	}
	return nil, nil
}

// count keeps open and fresh true around a change of colour or place.
func (w *walk) count(v *visit, by int) {
	switch {
	case v.colour&fromAnchor != 0 || v.colour&fromTip == 0:
	case v.done:
		w.fresh += by
	default:
		w.open += by
	}
}

// load reads a commit into the walk.
func (w *walk) load(id ring.SHA, colour int) (*ring.Refusal, error) {
	p, refusal, err := readCommit(w.o, id)
	if err != nil {
		return nil, err
	}
	v := &visit{sha: id, colour: colour}
	switch {
	case refusal == nil:
		v.when, v.parents = p.committer.when.Unix(), p.parents
	case refusal.Code == ring.Grammar && colour&fromAnchor != 0:
		// Behind the anchor: trusted by what came after it. Its parents stay
		// unknown, which can only make more commits count as new.
	default:
		return refusal, nil
	}
	w.seen[id] = v
	heap.Push(&w.queue, v)
	w.count(v, +1)
	return nil, nil
}

// step takes the newest queued commit and paints its parents.
func (w *walk) step() (*ring.Refusal, error) {
	v := heap.Pop(&w.queue).(*visit)
	w.count(v, -1)
	v.done = true
	w.count(v, +1)
	if v.colour&fromAnchor != 0 {
		w.behind++
	}
	for _, id := range v.parents {
		if refusal, err := w.paint(id, v.colour&(fromTip|fromAnchor)); refusal != nil || err != nil {
			return refusal, err
		}
	}
	return nil, nil
}

// between is the range: what tip reaches and anchor does not, parents before
// children; a tip that does not descend from the anchor is refused.
func between(o Objects, anchor, tip ring.SHA, max int) ([]ring.SHA, *ring.Refusal, error) {
	if anchor == tip {
		return nil, nil, nil
	}
	w, refusal, err := meet(o, anchor, tip, max)
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	if !w.descends(anchor) {
		return nil, w.astray(anchor, tip), nil
	}
	return w.missing(anchor, tip, max)
}

// apart is what head reaches and base does not, parents before children, and
// whether head descends from base, which it need not.
func apart(o Objects, base, head ring.SHA, max int) (ids []ring.SHA, descends bool, _ *ring.Refusal, _ error) {
	w, refusal, err := meet(o, base, head, max)
	if refusal != nil || err != nil {
		return nil, false, refusal, err
	}
	if w.seen[head].colour&fromAnchor != 0 {
		return nil, base == head, nil, nil // behind base, or base itself
	}
	descends = w.descends(base)
	ids, refusal, err = w.missing(base, head, max)
	return ids, descends, refusal, err
}

// meet walks back from both until all that is left is behind the anchor.
func meet(o Objects, anchor, tip ring.SHA, max int) (*walk, *ring.Refusal, error) {
	w := newWalk(o)
	if refusal, err := w.paint(anchor, fromAnchor); refusal != nil || err != nil {
		return nil, refusal, err
	}
	if refusal, err := w.paint(tip, fromTip); refusal != nil || err != nil {
		return nil, refusal, err
	}
	for w.open > 0 {
		if refusal, err := w.step(); refusal != nil || err != nil {
			return nil, refusal, err
		}
		if w.fresh > max+maxSkew {
			return nil, rangeUnbounded(tip, max), nil
		}
	}
	// From here every commit of the range was seen and kept the grammar.
	return w, nil, nil
}

// descends reports whether the tip's walk met the anchor.
func (w *walk) descends(anchor ring.SHA) bool { return w.seen[anchor].colour&fromTip != 0 }

// missing lists what the tip reaches alone. It errs to one side only: with clocks
// far off, a commit behind the anchor may be in it, never one left out.
func (w *walk) missing(anchor, tip ring.SHA, max int) ([]ring.SHA, *ring.Refusal, error) {
	list := w.ordered(anchor, tip)
	if err := w.settle(list); err != nil {
		return nil, nil, err
	}
	kept := list[:0]
	for _, v := range list {
		if v.colour&fromAnchor == 0 {
			kept = append(kept, v)
		}
	}
	if len(kept) > max {
		return nil, rangeTooLarge(tip, max), nil
	}
	ids := make([]ring.SHA, len(kept))
	for i, v := range kept {
		ids[i] = v.sha
	}
	return ids, nil, nil
}

// maxSkew is how many commits behind the anchor wrong clocks may bring into a
// walk before it is given up as too large.
const maxSkew = 1_000

// astray says how a tip that does not descend from the anchor lies to it.
func (w *walk) astray(anchor, tip ring.SHA) *ring.Refusal {
	for len(w.queue) > 0 && w.behind < maxBehind && w.seen[tip].colour&fromAnchor == 0 {
		if refusal, err := w.step(); refusal != nil || err != nil {
			break // behind the anchor nothing is refused; the answer is no either way
		}
	}
	if w.seen[tip].colour&fromAnchor != 0 {
		return rollback(anchor, tip)
	}
	return nonFastForward(anchor, tip)
}

// ordered lists the range, parents before children, and marks what is known to
// come after the anchor.
func (w *walk) ordered(anchor, tip ring.SHA) []*visit {
	var list []*visit
	w.seen[anchor].colour |= sinceAnchor
	type frame struct {
		v    *visit
		next int
	}
	listed := map[ring.SHA]bool{tip: true}
	stack := []frame{{v: w.seen[tip]}}
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		if f.next < len(f.v.parents) {
			id := f.v.parents[f.next]
			f.next++
			if p := w.seen[id]; p.colour&fromAnchor == 0 && !listed[id] {
				listed[id] = true
				stack = append(stack, frame{v: p})
			}
			continue
		}
		for _, id := range f.v.parents {
			f.v.colour |= w.seen[id].colour & sinceAnchor
		}
		list = append(list, f.v)
		stack = stack[:len(stack)-1]
	}
	return list
}

// settle goes on behind the anchor for as long as a commit of the list that does
// not come after the anchor might still be found there. Without merges of old
// branches there is none, and nothing is read.
func (w *walk) settle(list []*visit) error {
	oldest := int64(0)
	doubtful := false
	for _, v := range list {
		if v.colour&sinceAnchor == 0 && (!doubtful || v.when < oldest) {
			oldest, doubtful = v.when, true
		}
	}
	if !doubtful {
		return nil
	}
	for slop := 256; slop > 0 && len(w.queue) > 0 && w.behind < maxBehind; {
		if w.queue[0].when < oldest {
			slop--
		}
		// A refusal here is of history behind the anchor, which stays trusted.
		if _, err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// descends reports whether floor is tip or an ancestor of it.
func descends(o Objects, tip, floor ring.SHA) (bool, *ring.Refusal, error) {
	if tip == floor {
		return true, nil, nil
	}
	w := newWalk(o)
	if refusal, err := w.paint(tip, fromAnchor); refusal != nil || err != nil {
		return false, refusal, err
	}
	for len(w.queue) > 0 && w.seen[floor] == nil {
		if refusal, err := w.step(); refusal != nil || err != nil {
			return false, refusal, err
		}
	}
	return w.seen[floor] != nil, nil, nil
}

// queue is a heap of visits, newest first; ids break ties so that a walk is the
// same each time.
type queue []*visit

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].when != q[j].when {
		return q[i].when > q[j].when
	}
	return q[i].sha < q[j].sha
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(v any)   { *q = append(*q, v.(*visit)) }
func (q *queue) Pop() any {
	old := *q
	v := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return v
}
