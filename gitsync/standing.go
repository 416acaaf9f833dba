package gitsync

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// standing is what is known of a commit that is not of this range. An error of the
// store ends the whole judgement, and until then the commit counts for nothing.
func (l *landings) standing(id ring.SHA) ring.Standing {
	if l.aids.Standing == nil {
		return l.standingHere(id)
	}
	s, err := l.aids.Standing(id)
	if err != nil {
		l.failed = err
		return ring.SeenOnly
	}
	return s
}

// standingHere is what can be told where there is no store. In a clone the history of
// the anchor, first parents only, is taken as a host would have trusted it, and a good
// signature as one that was verified then.
func (l *landings) standingHere(id ring.SHA) ring.Standing {
	if !l.aids.NoStore {
		return ring.NeverSeen
	}
	p, refusal, err := readCommit(l.o, id)
	if err != nil {
		l.failed = err
	}
	if err != nil || refusal != nil {
		return ring.NeverSeen
	}
	if _, refusal := l.signer(p); refusal == nil {
		return ring.OwnSignature
	}
	line, err := l.firstParents()
	if err != nil {
		l.failed = err
	}
	if line[id] {
		return ring.LetIn
	}
	return ring.NeverSeen
}

// firstParents are the anchor and what its first parents lead to.
func (l *landings) firstParents() (map[ring.SHA]bool, error) {
	if l.line != nil {
		return l.line, nil
	}
	l.line = map[ring.SHA]bool{}
	for id := l.anchor; id != "" && len(l.line) < maxBehind; {
		l.line[id] = true
		p, refusal, err := readCommit(l.o, id)
		if err != nil || refusal != nil || len(p.parents) == 0 {
			return l.line, err
		}
		id = p.parents[0]
	}
	return l.line, nil
}

// trusted reports whether a commit was accepted, in this look or an earlier one. A
// landing may be judged upon its tree.
func (l *landings) trusted(id ring.SHA) bool {
	if d, ok := l.verdicts[id]; ok {
		return d.ok
	}
	return id == l.anchor || l.standing(id) >= ring.LetIn
}

// carries reports whether other commits may stand on a commit. One from before trust
// began may have children: what is landed of them is what they change since then. One
// that was seen since, and not accepted, was left out by a landing.
func (l *landings) carries(id ring.SHA) bool {
	if d, ok := l.verdicts[id]; ok {
		return d.ok
	}
	return id == l.anchor || l.standing(id) != ring.SeenOnly
}

// leftBehind reports whether a commit is of this range and was not accepted.
func (l *landings) leftBehind(id ring.SHA) bool {
	d, ok := l.verdicts[id]
	return ok && !d.ok
}

// since reports whether a commit is the anchor, or comes after it.
func (l *landings) since(id ring.SHA) bool {
	d, ok := l.verdicts[id]
	return id == l.anchor || ok && d.since
}

// verdictOf is what came of a commit, here or on the branch that a head is held
// against; nil for one that lies behind the anchor.
func (l *landings) verdictOf(id ring.SHA) *verdict {
	for in := l; in != nil; in = in.outer {
		if d := in.verdicts[id]; d != nil {
			return d
		}
	}
	return nil
}

// brings holds what a landing brings to who verified it: ids are the commits of head
// that d's base does not have, judged by in. Each has to be of this look, or verified
// by its own signature in an earlier one.
func (l *landings) brings(d *verdict, head ring.SHA, ids []ring.SHA, in *landings) (*ring.Refusal, error) {
	if !slices.Contains(d.p.parents, head) {
		return l.bringsNothingOld(d, head, ids, in)
	}
	at := in.unverified(ids)
	if at == "" {
		return nil, nil
	}
	// The button "update branch" merges the trusted branch into a head. What it
	// brings is then the head's own commits, onto the trusted branch.
	if l.trusted(head) {
		back, _, refusal, err := apart(l.o, head, d.base, l.t.cfg.MaxRange)
		if refusal != nil || err != nil || in.unverified(back) == "" {
			return refusal, err
		}
	}
	return neverVerified(d.p.sha, head, at), nil
}

// unverified is the first of the commits that lies behind the anchor and was not
// verified by its own signature; "" when there is none.
func (l *landings) unverified(ids []ring.SHA) ring.SHA {
	for _, id := range ids {
		if l.verdictOf(id) == nil && l.standing(id) != ring.OwnSignature {
			return id
		}
	}
	return ""
}

// bringsNothingOld refuses a landing that is no merge of its head and brings commits
// from behind the anchor. What main took back would come back by it, as if it were new.
func (l *landings) bringsNothingOld(d *verdict, head ring.SHA, ids []ring.SHA, in *landings) (*ring.Refusal, error) {
	var known []ring.SHA
	for _, id := range ids {
		if in.verdictOf(id) == nil {
			return bringsOld(d.p.sha, head, id), nil
		}
		if l.standing(id) >= ring.LetIn {
			known = append(known, id)
		}
	}
	if len(known) == 0 {
		return nil, nil
	}
	// The walk goes by dates, which a forge chooses. Of what was accepted before,
	// history itself says whether it is still behind the anchor.
	missed, err := unreached(l.o, l.anchor, known)
	if err != nil {
		return nil, err
	}
	for _, id := range known {
		if !slices.Contains(missed, id) {
			return bringsOld(d.p.sha, head, id), nil
		}
	}
	return nil, nil
}
