package gitsync

import "github.com/gitring/gitring/ring"

// audit is a judgement of what was accepted before: it goes on after a refusal, as if
// the commit had passed.
type audit struct {
	tip             ring.SHA
	standing        func(ring.SHA) (ring.Standing, error) // in earlier looks; nil knows nothing
	refused, untold []*ring.Refusal
	met             map[ring.Refusal]bool
}

// pass lets a commit through that an earlier look accepted, and notes why it would not
// pass now. One that no look accepted stays refused: a landing left it out.
func (a *audit) pass(d *verdict) error {
	accepted := d.p.sha == a.tip
	if !accepted && a.standing != nil {
		s, err := a.standing(d.p.sha)
		if err != nil {
			return err
		}
		accepted = s >= ring.LetIn
	}
	if accepted {
		a.tell(d.cause)
		d.ok = true
	}
	return nil
}

// tell notes a refusal once.
func (a *audit) tell(r *ring.Refusal) {
	if a.met[*r] || len(a.refused)+len(a.untold) >= mostReverified {
		return
	}
	a.met[*r] = true
	switch r.Code {
	case ring.HeadUnavailable, ring.NeedsMergeTree:
		a.untold = append(a.untold, r)
	default:
		a.refused = append(a.refused, r)
	}
}
