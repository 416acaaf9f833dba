package gitsync

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// edition is the file of signers as it counts after a commit of the range: what is
// in the commit's tree once those with the role trust answered for it. A branch
// that began long ago still has in its tree the signers of then, who must not come
// back by it: so what counts is carried along from the trusted commit, and the
// trees are only held against it.
type edition struct {
	blob   blobAt
	t      *Trust     // the configuration's signers and the edition's
	before []*edition // those it was made from
}

// after says that e is other, or was made from it.
func (e *edition) after(other *edition) bool {
	seen := map[*edition]bool{}
	todo := []*edition{e}
	for len(todo) > 0 {
		in := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if in == other || in == e && in.blob == other.blob {
			return true
		}
		if !seen[in] {
			seen[in] = true
			todo = append(todo, in.before...)
		}
	}
	return false
}

// newest is the one of them that was made from all the others; nil when two were
// made apart from each other.
func newest(all []*edition) *edition {
	for _, e := range all {
		if !slices.ContainsFunc(all, func(other *edition) bool { return !e.after(other) }) {
			return e
		}
	}
	return nil
}

// editions are those of one run, by commit; a commit that is not in it was trusted
// before.
type editions struct {
	anchored *edition // of the trusted commit; nil where the repository has no say
	by       map[ring.SHA]*edition
	blobs    map[ring.SHA]blobAt // the file in the tree of a commit
}

// begin takes the signers that a trusted commit names. A file that cannot be read
// names none: the configuration's signers can mend it.
func (v *verification) begin(anchor ring.SHA) (*ring.Refusal, error) {
	if v.t.cfg.SignersInRepo == "" || anchor == "" {
		return nil, nil
	}
	v.vouching = map[ring.SHA]*vouching{}
	v.editions = editions{by: map[ring.SHA]*edition{}, blobs: map[ring.SHA]blobAt{}}
	blob, refusal, err := v.signersBlob(anchor)
	if refusal != nil || err != nil {
		return refusal, err
	}
	s, _, refusal, err := v.signersOf(blob)
	if refusal != nil || err != nil {
		return refusal, err
	}
	v.editions.anchored = &edition{blob: blob, t: v.t.with(s)}
	return nil, nil
}

func (v *verification) signersBlob(commit ring.SHA) (blobAt, *ring.Refusal, error) {
	if b, ok := v.editions.blobs[commit]; ok {
		return b, nil, nil
	}
	tree, refusal, err := v.treeOf(commit)
	if refusal != nil || err != nil {
		return blobAt{}, refusal, err
	}
	b, refusal, err := v.fileAt(commit, tree, v.t.cfg.SignersInRepo)
	if refusal == nil && err == nil {
		v.editions.blobs[commit] = b
	}
	return b, refusal, err
}

// after is the edition that counts after a commit.
func (e *editions) after(commit ring.SHA) *edition {
	if in := e.by[commit]; in != nil {
		return in
	}
	return e.anchored
}

// rules are whose signatures count for a commit: those that its first parent
// names, and always the configuration's. Of a merge it is the newest that its
// parents name, or else who was taken out on one side would sign it.
func (v *verification) rules(p *parsed) *Trust {
	if v.editions.anchored == nil || len(p.parents) == 0 {
		return v.t
	}
	all := v.sides(p)
	if e := newest(all); e != nil {
		return e.t
	}
	return all[0].t
}

// sides are the editions that the parents of a commit stand on.
func (v *verification) sides(p *parsed) []*edition {
	all := make([]*edition, len(p.parents))
	for i, parent := range p.parents {
		all[i] = v.editions.after(parent)
	}
	return all
}

// carry makes a commit stand on its first parent's edition, until it is answered
// for.
func (v *verification) carry(p *parsed) {
	if v.editions.anchored == nil {
		return
	}
	v.editions.by[p.sha] = v.editions.anchored
	if len(p.parents) > 0 {
		v.editions.by[p.sha] = v.editions.after(p.parents[0])
	}
}

// edited is the edition after a commit, and whether the commit made it.
func (v *verification) edited(sha ring.SHA, parents []ring.SHA) (e *edition, made bool, _ *ring.Refusal, _ error) {
	blob, refusal, err := v.signersBlob(sha)
	if refusal != nil || err != nil {
		return nil, false, refusal, err
	}
	var all, current []*edition // of the parents; of those whose tree has what counts
	same, every := false, true  // some, all parents' trees have the file as it is here
	for _, p := range parents {
		b, refusal, err := v.signersBlob(p)
		if refusal != nil || err != nil {
			return nil, false, refusal, err
		}
		e := v.editions.after(p)
		all = append(all, e)
		if e.blob == b {
			current = append(current, e)
		}
		same, every = same || b == blob, every && b == blob
	}
	switch last := newest(all); {
	case len(parents) == 0 && blob == blobAt{}:
		return v.editions.anchored, false, nil, nil
	case len(parents) > 0 && len(current) == 0 && same: // all from before: what counts is not here yet
		return v.editions.anchored, false, nil, nil
	case last != nil && (blob == last.blob || every && len(parents) == 1):
		return last, false, nil, nil
	}
	return &edition{blob: blob, t: v.t, before: current}, true, nil, nil
}

// edit holds a commit that makes an edition to the role trust: as many people with
// it as trust_threshold asks for have to answer for the commit.
func (v *verification) edit(p *parsed, t *Trust, by []identity) (*ring.Refusal, error) {
	if v.editions.anchored == nil {
		return nil, nil
	}
	e, made, refusal, err := v.edited(p.sha, p.parents)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if !made {
		v.editions.by[p.sha] = e
		return nil, nil
	}
	s, mistake, refusal, err := v.signersOf(e.blob)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if mistake != nil {
		return trustFile(p.sha, v.t.cfg.SignersInRepo, *mistake), nil
	}
	sides := v.sides(p)
	if newest(sides) != nil {
		sides = nil // t is of the newest
	}
	// Two that were made apart are brought together by who has the role in both: one
	// who was taken out on one side would choose the other.
	trusted := slices.DeleteFunc(slices.Clone(by), func(id identity) bool {
		return !t.mayEditSigners(p.sha, id) || slices.ContainsFunc(sides, func(e *edition) bool { return !e.t.mayEditSigners(p.sha, id) })
	})
	if len(trusted) == 0 {
		return signersNotAllowed(p.sha, by, v.t.cfg.SignersInRepo), nil
	}
	e.t = v.t.with(s)
	v.editions.by[p.sha] = e
	v.count(p, trusted, max(1, v.t.cfg.TrustThreshold), " of signers with the role trust, because it changes "+v.t.cfg.SignersInRepo)
	return nil, nil
}

// mayEditSigners says that a signer has the role trust, and the path.
func (t *Trust) mayEditSigners(sha ring.SHA, id identity) bool {
	with, refusal := t.holding(sha, id, RoleTrust)
	return refusal == nil && slices.ContainsFunc(with, func(b Binding) bool { return b.covers(t.cfg.SignersInRepo) })
}

// landsSigners holds what a forge landed to the editions of its base and its head:
// a forge makes none.
func (v *verification) landsSigners(sha, base, head ring.SHA) (*ring.Refusal, error) {
	if v.editions.anchored == nil {
		return nil, nil
	}
	e, made, refusal, err := v.edited(sha, []ring.SHA{base, head})
	if refusal != nil || err != nil {
		return refusal, err
	}
	if made {
		return signersNotAllowed(sha, nil, v.t.cfg.SignersInRepo), nil
	}
	v.editions.by[sha] = e
	return nil, nil
}
