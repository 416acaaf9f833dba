package gitsync

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/gitring/gitring/ring"
)

// payloadHash names a signed content. A signature can be spelled in several ways, each
// with a commit id of its own, and needs no key for that.
func payloadHash(p *parsed) string {
	sum := sha256.Sum256(p.payload)
	return hex.EncodeToString(sum[:])
}

// once refuses a landing that brings no signed commit which its base has not had
// already. What was landed and taken back since would come back by it, without a word
// of anybody who signs. It notes in d which signed contents it brings.
func (l *landings) once(d *verdict, head ring.SHA, ids []ring.SHA, in *landings) (*ring.Refusal, error) {
	d.one.Head = head
	if len(ids) == 0 {
		return nil, nil
	}
	headPayload, members, refusal, err := l.contents(head, ids, in)
	if refusal != nil || err != nil {
		return refusal, err
	}
	asHead, fresh, err := l.fresh(d, d.base, headPayload, members, ids)
	if err != nil {
		return nil, err
	}
	again, refusal, err := l.again(d, d.base, asHead, members, fresh)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if again {
		return headLanded(d.p.sha, head), nil
	}
	d.one.Payloads = []string{headPayload}
	if slices.Contains(d.p.parents, head) {
		return nil, nil // the head's commits are of the range themselves
	}
	for _, m := range fresh {
		if m != headPayload {
			d.one.Payloads = append(d.one.Payloads, m)
		}
	}
	return nil, nil
}

// again reports whether a landing onto base is a second one: of the same head, or of
// nothing new that changes something all the same.
func (l *landings) again(d *verdict, base ring.SHA, asHead bool, members, fresh []string) (bool, *ring.Refusal, error) {
	if asHead {
		return true, nil, nil
	}
	if len(members) == 0 || len(fresh) > 0 {
		return false, nil, nil
	}
	was, refusal, err := l.treeOf(base)
	return was != d.p.tree, refusal, err
}

// contents are the payloads of a head and of the commits among ids that passed by
// their own signature, those of heads that were landed within it included.
func (l *landings) contents(head ring.SHA, ids []ring.SHA, in *landings) (string, []string, *ring.Refusal, error) {
	p, refusal, err := readCommit(l.o, head)
	if refusal != nil || err != nil {
		return "", nil, refusal, err
	}
	var members []string
	for _, id := range slices.Backward(ids) {
		h := in.verdictOf(id)
		switch {
		case h == nil || !h.ok:
		case h.landing && !slices.Contains(h.p.parents, h.one.Head):
			members = append(members, h.one.Payloads...)
		case h.one.Signed:
			members = append(members, payloadHash(h.p))
		}
	}
	return payloadHash(p), members, nil, nil
}

// fresh are the members that base has not had, and whether it had the head as a head.
func (l *landings) fresh(d *verdict, base ring.SHA, head string, members []string, ids []ring.SHA) (asHead bool, fresh []string, _ error) {
	had := map[ring.SHA]bool{}
	carriedBefore := func(payload string, headsOnly bool) (bool, error) {
		all, err := l.carriers(payload)
		if err != nil {
			return false, err
		}
		for _, c := range all {
			if headsOnly && !c.AsHead || c.By == d.p.sha || slices.Contains(ids, c.By) {
				continue
			}
			if _, asked := had[c.By]; !asked {
				if had[c.By], err = l.behind(base, c.By); err != nil {
					return false, err
				}
			}
			if had[c.By] {
				return true, nil
			}
		}
		return false, nil
	}
	asHead, err := carriedBefore(head, true)
	if err != nil {
		return false, nil, err
	}
	for _, m := range members {
		before, err := carriedBefore(m, false)
		if err != nil {
			return false, nil, err
		}
		if !before {
			fresh = append(fresh, m)
		}
	}
	return asHead, fresh, nil
}

// carriers are the commits that brought a signed content, of this look and earlier ones.
func (l *landings) carriers(payload string) ([]ring.Carrier, error) {
	var all []ring.Carrier
	for in := l; in != nil; in = in.outer {
		all = append(all, in.brought[payload]...)
	}
	if l.aids.Carriers == nil {
		return all, nil
	}
	known, err := l.aids.Carriers(payload)
	return append(all, known...), err
}

// bring notes what an accepted commit brought, for the landings after it.
func (l *landings) bring(d *verdict) {
	if d.one.Signed && !d.landing {
		d.one.Payloads = []string{payloadHash(d.p)}
	}
	for i, payload := range d.one.Payloads {
		l.brought[payload] = append(l.brought[payload], ring.Carrier{By: d.p.sha, AsHead: d.landing && i == 0})
	}
}

// behind reports whether base is a carrier, or comes after it. What the store knows
// lies behind the anchor, or did: a source does not take the same head twice.
func (l *landings) behind(base, carrier ring.SHA) (bool, error) {
	if base == carrier {
		return true, nil
	}
	if l.verdictOf(carrier) == nil && l.comesAfter(base) {
		return true, nil
	}
	missed, err := unreached(l.o, base, []ring.SHA{carrier})
	return len(missed) == 0, err
}

// comesAfter reports whether a commit is the anchor or comes after it, by what was
// judged so far here or on the branch that a head is held against.
func (l *landings) comesAfter(id ring.SHA) bool {
	for in := l; in != nil; in = in.outer {
		if in.since(id) {
			return true
		}
	}
	return false
}

// turned refuses a merge on the way to the tip whose second parent is the branch, and
// whose first parent is a head that landed there before: whoever merges chooses the
// order of the parents.
func (l *landings) turned(tip ring.SHA) (*ring.Refusal, error) {
	for d := l.verdicts[tip]; d != nil && len(d.p.parents) > 0; d = l.verdicts[d.p.parents[0]] {
		head := d.one.Head
		if !d.ok || !d.landing || d.base == "" || !slices.Contains(d.p.parents, head) || !l.since(head) {
			continue
		}
		ids, _, refusal, err := apart(l.o, head, d.base, l.t.cfg.MaxRange)
		if refusal != nil || err != nil {
			return refusal, err
		}
		payload, members, refusal, err := l.contents(d.base, ids, l)
		if refusal != nil || err != nil {
			return refusal, err
		}
		asHead, fresh, err := l.fresh(d, head, payload, members, ids)
		if err != nil {
			return nil, err
		}
		was, refusal, err := l.treeOf(head)
		if refusal != nil || err != nil {
			return refusal, err
		}
		if len(ids) == 0 || was == d.p.tree { // it changes nothing there
			continue
		}
		if asHead || len(members) > 0 && len(fresh) == 0 {
			return headLanded(d.p.sha, d.base), nil
		}
	}
	return nil, nil
}
