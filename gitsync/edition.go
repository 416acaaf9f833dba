package gitsync

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// edition is the file of signers as one commit made it. What counts after a commit
// is carried along from the trusted commit, never read from its tree alone: a branch
// that began long ago still has the signers of then in its tree.
//
// Whether a change counts does not depend on the bytes, which may be those of an
// older edition. It depends on history: a change counts where it was made by
// somebody who had all earlier changes before him. All of this is computed from
// commits alone, so that it is the same after a restart and on every host.
type edition struct {
	blob   blobAt
	t      *Trust     // the configuration's signers and the edition's
	before []*edition // those of the commit's parents
	made   bool       // the commit changed the file; else it only joins those before
}

// includes reports whether e was made with all the changes of other before it. The
// edition of the trusted commit counts as included everywhere: see sides.
func (e *edition) includes(other, anchored *edition) bool {
	if other == anchored || e.reaches(other) {
		return true
	}
	return !other.made && !slices.ContainsFunc(other.before, func(b *edition) bool { return !e.includes(b, anchored) })
}

func (e *edition) reaches(other *edition) bool {
	seen := map[*edition]bool{}
	todo := []*edition{e}
	for len(todo) > 0 {
		in := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if in == other {
			return true
		}
		if !seen[in] {
			seen[in] = true
			todo = append(todo, in.before...)
		}
	}
	return false
}

// editions are those of one run, by commit. A commit that is not in by lies behind
// the trusted one, whose edition counts in its place.
type editions struct {
	anchor   ring.SHA
	anchored *edition // of the trusted commit; nil where the repository has no say
	alone    bool     // one commit is judged, and not all that it stands on
	by       map[ring.SHA]*edition
	since    map[ring.SHA]bool     // commits of the range that descend from the trusted one
	blobs    map[ring.SHA]blobAt   // the file in the tree of a commit
	rules    map[ring.SHA][]*Trust // whose signatures count for a commit
	changes  map[ring.SHA]bool     // commits behind the trusted one: whether they changed the file
	known    map[[2]ring.SHA]bool  // what walked found
}

// begin takes the signers that a trusted commit names. A file that cannot be read
// names none: the configuration's signers can mend it.
func (v *verification) begin(anchor ring.SHA) (*ring.Refusal, error) {
	if v.t.cfg.SignersInRepo == "" || anchor == "" {
		return nil, nil
	}
	v.vouching = map[ring.SHA]*vouching{}
	v.editions = editions{
		anchor: anchor, by: map[ring.SHA]*edition{}, since: map[ring.SHA]bool{anchor: true}, blobs: map[ring.SHA]blobAt{},
		rules: map[ring.SHA][]*Trust{}, changes: map[ring.SHA]bool{}, known: map[[2]ring.SHA]bool{},
	}
	blob, refusal, err := v.signersBlob(anchor)
	if refusal != nil || err != nil {
		return refusal, err
	}
	s, _, refusal, err := v.signersOf(blob)
	if refusal != nil || err != nil {
		return refusal, err
	}
	v.editions.anchored = &edition{blob: blob, t: v.t.with(s), made: true}
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

// knows reports whether all changes of the file in the history of one commit are in
// the history of the other, a, too.
func (v *verification) knows(a, b ring.SHA) (bool, *ring.Refusal, error) {
	e := &v.editions
	if a == b {
		return true, nil, nil
	}
	if !e.alone && e.since[a] { // what lies behind the trusted commit lies behind a
		return e.after(a).includes(e.after(b), e.anchored), nil, nil
	}
	return v.walked(a, b)
}

// walked is knows by walking over the commits that a does not have. A history that
// is too long or too odd to be walked is not known.
func (v *verification) walked(a, b ring.SHA) (known bool, _ *ring.Refusal, _ error) {
	key := [2]ring.SHA{a, b}
	if known, ok := v.editions.known[key]; ok {
		return known, nil, nil
	}
	ids, _, refusal, err := apart(v.o, a, b, v.t.cfg.MaxRange)
	known = refusal == nil
	for i := 0; i < len(ids) && known && err == nil; i++ {
		var changed bool
		changed, refusal, err = v.changedThere(ids[i])
		known = !changed && refusal == nil
	}
	if refusal != nil && refusal.Code != ring.HashMismatch && refusal.Code != ring.Sha1Collision {
		refusal = nil
	}
	if refusal != nil || err != nil {
		return false, refusal, err
	}
	v.editions.known[key] = known
	return known, nil, nil
}

// changedThere reports whether a commit changed the file.
func (v *verification) changedThere(sha ring.SHA) (bool, *ring.Refusal, error) {
	if changed, ok := v.editions.changes[sha]; ok {
		return changed, nil, nil
	}
	p, refusal, err := readCommit(v.o, sha)
	if refusal != nil || err != nil {
		return false, refusal, err
	}
	changed, _, refusal, err := v.changesFile(sha, p.parents)
	if refusal == nil && err == nil {
		v.editions.changes[sha] = changed
	}
	return changed, refusal, err
}

// changesFile reports whether a commit with these parents changes the file itself. A
// merge does not where it has the file of a parent that knows all the changes of
// the parents with another file. from is a parent that has the file as the commit
// has it; "" is none.
func (v *verification) changesFile(sha ring.SHA, parents []ring.SHA) (changed bool, from ring.SHA, _ *ring.Refusal, _ error) {
	blob, refusal, err := v.signersBlob(sha)
	if refusal != nil || err != nil {
		return false, "", refusal, err
	}
	var same, others []ring.SHA
	for _, p := range parents {
		b, refusal, err := v.signersBlob(p)
		if refusal != nil || err != nil {
			return false, "", refusal, err
		}
		if b == blob {
			same = append(same, p)
		} else {
			others = append(others, p)
		}
	}
	if len(same) == 0 {
		return len(parents) > 0 || blob != blobAt{}, "", nil, nil
	}
	for _, other := range others {
		known := false
		for i := 0; i < len(same) && !known; i++ {
			if known, refusal, err = v.knows(same[i], other); refusal != nil || err != nil {
				return false, "", refusal, err
			}
		}
		if !known {
			return true, same[0], nil, nil
		}
	}
	return false, same[0], nil, nil
}

// rulesOf are whose signatures count for a commit: those of the newest edition of
// its parents, and always the configuration's. Where there are several, made apart
// from each other, the commit has to pass under each: else who was taken out on one
// side would sign it. The trusted commit's edition counts for all that does not know
// it, so that a stale branch lets nobody in.
func (v *verification) rulesOf(p *parsed) ([]*Trust, *ring.Refusal, error) {
	e := &v.editions
	if e.anchored == nil {
		return []*Trust{v.t}, nil, nil
	}
	if all := e.rules[p.sha]; all != nil {
		return all, nil, nil
	}
	known := map[*edition]bool{} // an edition of a parent, and whether it came after the trusted one
	var sides []*edition
	current := false
	for _, parent := range p.parents {
		in := e.after(parent)
		knows, refusal, err := in == e.anchored, (*ring.Refusal)(nil), error(nil)
		if !knows {
			knows, refusal, err = v.knows(parent, e.anchor)
		}
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		known[in], current = known[in] || knows, current || knows
		if !slices.Contains(sides, in) {
			sides = append(sides, in)
		}
	}
	if !current {
		known[e.anchored] = true
		if !slices.Contains(sides, e.anchored) {
			sides = append(sides, e.anchored)
		}
	}
	var all []*Trust
	for _, in := range sides {
		if !slices.ContainsFunc(sides, func(other *edition) bool {
			return other != in && other.includes(in, e.anchored) && (in != e.anchored || known[other])
		}) {
			all = append(all, in.t)
		}
	}
	e.rules[p.sha] = all
	return all, nil, nil
}

// rules are the first of rulesOf, of a commit that was judged.
func (v *verification) rules(p *parsed) *Trust {
	if all := v.editions.rules[p.sha]; len(all) > 0 {
		return all[0]
	}
	return v.t
}

// carry makes a commit stand on its first parent's edition, until it is answered
// for.
func (v *verification) carry(p *parsed) {
	e := &v.editions
	if e.anchored == nil {
		return
	}
	e.by[p.sha] = e.anchored
	if len(p.parents) > 0 {
		e.by[p.sha] = e.after(p.parents[0])
	}
	if slices.ContainsFunc(p.parents, func(id ring.SHA) bool { return e.since[id] }) {
		e.since[p.sha] = true
	}
}

// stand makes a commit stand on a new edition that it made, or on those of its
// parents.
func (v *verification) stand(sha ring.SHA, parents []ring.SHA, made bool) (*edition, *ring.Refusal, error) {
	blob, refusal, err := v.signersBlob(sha)
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	var before []*edition
	for _, p := range parents {
		if in := v.editions.after(p); !slices.Contains(before, in) {
			before = append(before, in)
		}
	}
	if !made {
		for _, in := range before {
			if !slices.ContainsFunc(before, func(other *edition) bool { return !in.includes(other, v.editions.anchored) }) {
				v.editions.by[sha] = in
				return in, nil, nil
			}
		}
		if len(before) == 0 {
			return v.editions.anchored, nil, nil
		}
	}
	e := &edition{blob: blob, t: v.editions.after(sha).t, before: before, made: made}
	v.editions.by[sha] = e
	return e, nil, nil
}

// assume notes what a commit does to the file, without giving it effect.
func (v *verification) assume(p *parsed) (*ring.Refusal, error) {
	if v.editions.anchored == nil {
		return nil, nil
	}
	made, _, refusal, err := v.changesFile(p.sha, p.parents)
	if refusal == nil && err == nil {
		_, refusal, err = v.stand(p.sha, p.parents, made)
	}
	return refusal, err
}

// edit holds a commit that makes an edition to the role trust: as many people with
// it as trust_threshold asks for have to answer for the commit. Two editions that
// were made apart are brought together by who has the role in both.
func (v *verification) edit(p *parsed, rules []*Trust, by []identity) (*ring.Refusal, error) {
	if v.editions.anchored == nil {
		return nil, nil
	}
	made, from, refusal, err := v.changesFile(p.sha, p.parents)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if !made {
		_, refusal, err = v.stand(p.sha, p.parents, false)
		return refusal, err
	}
	trusted := slices.DeleteFunc(slices.Clone(by), func(id identity) bool {
		return slices.ContainsFunc(rules, func(t *Trust) bool { return !t.mayEditSigners(p.sha, id) })
	})
	switch {
	case len(trusted) == 0 && from != "":
		return signersStale(p.sha, from, v.t.cfg.SignersInRepo), nil
	case len(trusted) == 0:
		return signersNotAllowed(p.sha, by, v.t.cfg.SignersInRepo), nil
	}
	if refusal, err = v.takeEffect(p.sha, p.parents); refusal != nil || err != nil {
		return refusal, err
	}
	v.count(p, trusted, max(1, v.t.cfg.TrustThreshold), " of signers with the role trust, because it changes "+v.t.cfg.SignersInRepo)
	return nil, nil
}

// takeEffect makes the file of a commit the edition that counts after it.
func (v *verification) takeEffect(sha ring.SHA, parents []ring.SHA) (*ring.Refusal, error) {
	blob, refusal, err := v.signersBlob(sha)
	if refusal != nil || err != nil {
		return refusal, err
	}
	s, mistake, refusal, err := v.signersOf(blob)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if mistake != nil {
		return trustFile(sha, v.t.cfg.SignersInRepo, *mistake), nil
	}
	e, refusal, err := v.stand(sha, parents, true)
	if refusal == nil && err == nil {
		e.t = v.t.with(s)
	}
	return refusal, err
}

// mayEditSigners reports whether a signer has the role trust, and the path.
func (t *Trust) mayEditSigners(sha ring.SHA, id identity) bool {
	with, refusal := t.holding(sha, id, RoleTrust)
	return refusal == nil && slices.ContainsFunc(with, func(b Binding) bool { return b.covers(t.cfg.SignersInRepo) })
}

// landsSigners holds what a forge landed to the editions of its base and its head:
// a forge makes none, and lands none that was made without knowing the base's.
func (v *verification) landsSigners(sha, base, head ring.SHA) (*ring.Refusal, error) {
	if v.editions.anchored == nil {
		return nil, nil
	}
	parents := []ring.SHA{base, head}
	made, from, refusal, err := v.changesFile(sha, parents)
	switch {
	case refusal != nil || err != nil:
		return refusal, err
	case made && from != "":
		return signersStale(sha, from, v.t.cfg.SignersInRepo), nil
	case made:
		return signersNotAllowed(sha, nil, v.t.cfg.SignersInRepo), nil
	}
	p, refusal, err := readCommit(v.o, sha)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if slices.Contains(p.parents, head) {
		_, refusal, err = v.stand(sha, parents, false)
		return refusal, err
	}
	// The head does not become history: a change of the file is the landing's own.
	if made, _, refusal, err = v.changesFile(sha, parents[:1]); refusal != nil || err != nil {
		return refusal, err
	}
	if made {
		return v.takeEffect(sha, parents[:1])
	}
	_, refusal, err = v.stand(sha, parents[:1], false)
	return refusal, err
}
