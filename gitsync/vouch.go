package gitsync

import (
	"bytes"
	"maps"

	"github.com/gitring/gitring/ring"
)

// vouchTrailer names, by its full id, a commit that a signed one answers for.
const vouchTrailer = "Gitring-Vouch"

// voucher is who answers for a commit of somebody else, and where.
type voucher struct {
	identity
	sha ring.SHA // of the commit that vouches
}

// vouches are the commits of a range that need no signature of their own,
// because a later one of the range answers for them (TRUST.md section 5). A
// commit that vouches is held to its own signature, to the role, and to its
// signer's paths for everything that differs from the anchor to it. One that
// claims to vouch and may not is a refusal, not a commit without a vouch.
func (v *verification) vouches(anchor ring.SHA, ids []ring.SHA) (map[ring.SHA]voucher, *ring.Refusal, error) {
	out := map[ring.SHA]voucher{}
	maps.Copy(out, v.assumed)
	if v.t.cfg.Mode == Disabled {
		return out, nil, nil
	}
	var base ring.SHA
	for _, id := range ids {
		p, refusal, err := readCommit(v.o, id)
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		if !bytes.Contains(p.message, []byte(vouchTrailer)) {
			continue
		}
		names := p.trailers(vouchTrailer)
		if len(names) == 0 {
			continue
		}
		if base == "" {
			if base, refusal, err = v.treeOf(anchor); refusal != nil || err != nil {
				return nil, refusal, err
			}
		}
		by, refusal, err := v.mayVouch(p, base)
		if v.t.cfg.Mode == ForgeMerge && byForge(refusal) {
			continue // a squash that quotes what it was made from; nobody's word
		}
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		brought, refusal, err := v.ancestry(p, ids)
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		for _, name := range names {
			if !brought[ring.SHA(name)] {
				return nil, vouchOutside(id, name), nil
			}
			out[ring.SHA(name)] = voucher{by, id}
		}
	}
	return out, nil, nil
}

// mayVouch is the signer of a commit that vouches, over base, the tree that is
// trusted.
func (v *verification) mayVouch(p *parsed, base ring.SHA) (identity, *ring.Refusal, error) {
	id, refusal := v.signer(p)
	if refusal != nil {
		return id, refusal, nil
	}
	with, refusal := v.t.holding(p.sha, id, RoleVouch)
	if refusal != nil {
		if refusal.Code == ring.RoleNotAllowed {
			refusal = vouchNotAllowed(p.sha, id)
		}
		return id, refusal, nil
	}
	if everywhere(with) {
		return id, nil, nil
	}
	list, refusal, err := changed(v.o, p.sha, base, p.tree)
	if refusal != nil || err != nil {
		return id, refusal, err
	}
	return id, inPaths(p.sha, id, with, list), nil
}

// ancestry are the commits of the range that p reaches, without itself.
func (v *verification) ancestry(p *parsed, ids []ring.SHA) (map[ring.SHA]bool, *ring.Refusal, error) {
	in := make(map[ring.SHA]bool, len(ids))
	for _, id := range ids {
		in[id] = true
	}
	out := map[ring.SHA]bool{}
	todo := p.parents
	for len(todo) > 0 {
		id := todo[0]
		todo = todo[1:]
		if !in[id] || out[id] {
			continue
		}
		out[id] = true
		q, refusal, err := readCommit(v.o, id)
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		todo = append(todo, q.parents...)
	}
	return out, nil, nil
}
