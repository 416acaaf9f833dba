package gitsync

import (
	"fmt"
	"io/fs"

	"github.com/gitring/gitring/ring"
)

// rehash reads, and so hashes, what git reads to merge two commits: the trees that
// differ on the way from where they parted, and every file in which they do. Git
// believes the index of a pack, which whoever fetched has written: without this
// bytes of strangers could stand for a file that somebody signed, and what comes
// of them be called a merge. All else that git looks at are names of objects.
func rehash(o Objects, ours, theirs ring.SHA, max int) error {
	r := &rehashing{verification: &verification{o: o}, max: max, done: map[ring.SHA]bool{}, pairs: map[[2]ring.SHA]bool{}}
	return r.pair(ours, theirs)
}

type rehashing struct {
	*verification
	max   int
	done  map[ring.SHA]bool // files
	pairs map[[2]ring.SHA]bool
}

// pair is two commits that are merged. Where they parted at several, git merges
// these first.
func (r *rehashing) pair(ours, theirs ring.SHA) error {
	if r.pairs[[2]ring.SHA{ours, theirs}] || r.pairs[[2]ring.SHA{theirs, ours}] {
		return nil
	}
	r.pairs[[2]ring.SHA{ours, theirs}] = true
	all, refusal, err := bases(r.o, ours, theirs, r.max)
	if err = refusedOr(refusal, err); err != nil {
		return err
	}
	for i, base := range all {
		for _, side := range []ring.SHA{ours, theirs} {
			if err := r.between(base, side); err != nil {
				return err
			}
		}
		for _, other := range all[:i] {
			if err := r.pair(base, other); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rehashing) between(base, side ring.SHA) error {
	var trees [2]ring.SHA
	for i, of := range []ring.SHA{base, side} {
		var refusal *ring.Refusal
		var err error
		trees[i], refusal, err = r.treeOf(of)
		if err = refusedOr(refusal, err); err != nil {
			return err
		}
	}
	list, refusal, err := changed(r.o, side, trees[0], trees[1])
	if err = refusedOr(refusal, err); err != nil {
		return err
	}
	for _, c := range list {
		for _, n := range []node{c.old, c.new} {
			if err := r.file(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rehashing) file(n node) error {
	if n.name == "" || n.mode&fs.ModeIrregular != 0 || r.done[n.sha] {
		return nil
	}
	r.done[n.sha] = true
	kind, body, err := r.o.Raw(n.sha)
	if err != nil {
		return fmt.Errorf("cannot read what is to be merged: %w", err)
	}
	sum, collides := objectHash(kind, body)
	return refusedOr(named(n.sha, sum, collides), nil)
}

// refusedOr makes an error of a refusal: what is merged was judged before, so
// either the mirror is damaged, or it is too much.
func refusedOr(r *ring.Refusal, err error) error {
	if err != nil || r == nil {
		return err
	}
	if r.Code == ring.HashMismatch {
		return fmt.Errorf("cannot read what is to be merged: %s: %w", r.Says, errDamaged)
	}
	return fmt.Errorf("cannot read what is to be merged: %s", r.Says)
}
