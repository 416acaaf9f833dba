package gitsync

import (
	"bytes"
	"slices"

	"github.com/gitring/gitring/ring"
)

// vouchTrailer names, by its full id, a commit that a signed one answers for.
const vouchTrailer = "Gitring-Vouch"

// voucher is who answers for a commit of somebody else, and where.
type voucher struct {
	identity
	sha ring.SHA // of the commit that vouches
	p   *parsed  // that commit, where it depends on what is vouched for who may; else nil
}

// vouching is a commit that vouches and is judged with what it vouches for.
type vouching struct {
	base ring.SHA // the tree that it is held against
	open int      // how many of those it names were not judged, or not its to answer for
	by   identity
}

// vouches are the commits of a range that need no signature of their own,
// because a later one of the range answers for them (docs/design/trust.md#vouches). A
// commit that vouches is held to its own signature, to the role, and to its
// signer's paths for everything that differs from the anchor to it. One that
// claims to vouch and may not is a refusal, not a commit without a vouch. Where
// the repository has a say in who signs, somebody whom it does not name yet might
// otherwise vouch for the very commit that names them: so it is asked for each
// commit, by the rules that count for that one.
func (v *verification) vouches(anchor ring.SHA, ids []ring.SHA) (map[ring.SHA][]voucher, *ring.Refusal, error) {
	out := map[ring.SHA][]voucher{}
	if v.t.cfg.Mode == Disabled {
		return out, nil, nil
	}
	var base ring.SHA
	in := make(map[ring.SHA]bool, len(ids))
	for _, id := range ids {
		in[id] = true
	}
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
		by := voucher{sha: id}
		later := v.editions.anchored != nil
		if later {
			by.p = p
		} else {
			by.identity, refusal, err = v.mayVouch(v.t, p, base)
		}
		if v.t.cfg.Mode == ForgeMerge && byForge(refusal) {
			continue // a squash that quotes what it was made from; nobody's word
		}
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		brought, refusal, err := v.ancestry(p, in)
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		if !later {
			if refusal, err := v.mayVouchForEach(p, by.identity, names, brought); refusal != nil || err != nil {
				return nil, refusal, err
			}
		}
		if refusal := v.note(out, by, names, brought, later && v.t.cfg.Mode == ForgeMerge); refusal != nil {
			return nil, refusal, nil
		}
		if later {
			v.vouching[id] = &vouching{base: base, open: len(slices.Compact(slices.Sorted(slices.Values(names))))}
		}
	}
	return out, nil, nil
}

// note takes the names that one commit vouches for; loose passes over those that
// it does not bring, because it may be nobody's word.
func (v *verification) note(out map[ring.SHA][]voucher, by voucher, names []string, brought map[ring.SHA]bool, loose bool) *ring.Refusal {
	for _, name := range names {
		switch sha := ring.SHA(name); {
		case brought[sha] && slices.ContainsFunc(out[sha], func(v voucher) bool { return v.sha == by.sha }): // named twice
		case brought[sha]:
			out[sha] = append(out[sha], by)
		case !loose:
			return vouchOutside(by.sha, name)
		}
	}
	return nil
}

// mayVouch is the signer of a commit that vouches, among those whom t knows, over
// base, the tree that is trusted.
func (v *verification) mayVouch(t *Trust, p *parsed, base ring.SHA) (identity, *ring.Refusal, error) {
	id, refusal := v.signerBy(t, p)
	if refusal != nil {
		return id, refusal, nil
	}
	with, refusal := t.holding(p.sha, id, RoleVouch)
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
	return id, t.inVouchedPaths(p.sha, id, with, list), nil
}

// inVouchedPaths holds what somebody vouches for to their paths. The file of signers
// is open to whoever has the role trust for it.
func (t *Trust) inVouchedPaths(sha ring.SHA, id identity, with []Binding, list []change) *ring.Refusal {
	if file := t.cfg.SignersInRepo; file != "" && t.mayEditSigners(sha, id) {
		list = slices.DeleteFunc(list, func(c change) bool { return c.path == file })
	}
	return inPaths(sha, id, with, list)
}

// mayVouchFor holds id, who vouches in p and may do so, to the paths that the commit q
// changes by itself. The difference between the anchor and p does not show a change
// that takes back what another commit of the range did.
func (v *verification) mayVouchFor(t *Trust, p, q *parsed, id identity) (*ring.Refusal, error) {
	with, refusal := t.holding(p.sha, id, RoleVouch)
	if refusal != nil || everywhere(with) {
		return refusal, nil
	}
	list, refusal, err := v.changes(q)
	if refusal != nil || err != nil {
		return refusal, err
	}
	return t.inVouchedPaths(p.sha, id, with, list), nil
}

// mayVouchForEach is mayVouchFor, of all commits that p names and brings.
func (v *verification) mayVouchForEach(p *parsed, id identity, names []string, brought map[ring.SHA]bool) (*ring.Refusal, error) {
	for _, name := range names {
		if !brought[ring.SHA(name)] {
			continue // refused by its name
		}
		q, refusal, err := readCommit(v.o, ring.SHA(name))
		if refusal == nil && err == nil {
			refusal, err = v.mayVouchFor(v.t, p, q, id)
		}
		if refusal != nil || err != nil {
			return refusal, err
		}
	}
	return nil, nil
}

// ancestry are the commits of the range, in, that p reaches, without itself.
func (v *verification) ancestry(p *parsed, in map[ring.SHA]bool) (map[ring.SHA]bool, *ring.Refusal, error) {
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
