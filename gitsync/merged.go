package gitsync

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// merge is a merge commit held against its parents, path by path.
type merge struct {
	*verification
	p       *parsed
	trees   []ring.SHA
	differs []map[string]change       // by parent: from it to the merge
	since   map[[2]int]map[string]int // of two parents: paths that the second changed since some base
}

// decided are the changes that a merge itself makes: what differs from all its
// parents, and what one of them has that another changed since they parted. The
// latter is as it was on one side, and yet nobody but the one who merged took the
// other's change back.
func (v *verification) decided(p *parsed, trees []ring.SHA) ([]change, *ring.Refusal, error) {
	m := &merge{verification: v, p: p, trees: trees, since: map[[2]int]map[string]int{}}
	all := map[string]change{}
	for _, tree := range trees {
		list, refusal, err := changed(v.o, p.sha, tree, p.tree)
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		by := make(map[string]change, len(list))
		for _, c := range list {
			by[c.path], all[c.path] = c, c
		}
		m.differs = append(m.differs, by)
	}
	var out []change
	for _, c := range all {
		own, refusal, err := m.own(c.path)
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		if own {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b change) int {
		if a.path < b.path {
			return -1
		}
		return 1 // a path is in it once
	})
	return out, nil, nil
}

// own reports whether what the merge holds at a path is its maker's own decision: for
// some parent that has another thing there, none that has this one vouches that
// the former did not touch it.
func (m *merge) own(path string) (bool, *ring.Refusal, error) {
	for j := range m.trees {
		if _, other := m.differs[j][path]; !other {
			continue
		}
		taken := false
		for i := range m.trees {
			if _, other := m.differs[i][path]; other || taken {
				continue
			}
			touched, refusal, err := m.touched(i, j)
			if refusal != nil || err != nil {
				return false, refusal, err
			}
			taken = touched[path] == 0
		}
		if !taken {
			return true, nil, nil
		}
	}
	return false, nil, nil
}

// touched are the paths that parent j changed since it parted from parent i: with
// several best common ancestors, since any of them.
func (m *merge) touched(i, j int) (map[string]int, *ring.Refusal, error) {
	if known, ok := m.since[[2]int{i, j}]; ok {
		return known, nil, nil
	}
	out, refusal, err := m.touchedSince(m.p.sha, m.p.parents[i], m.p.parents[j], m.trees[j])
	if refusal == nil && err == nil {
		m.since[[2]int{i, j}] = out
	}
	return out, refusal, err
}

// touchedSince are the paths that differ between a commit, whose tree is given,
// and any of the best ancestors that it has in common with another.
func (v *verification) touchedSince(of, other, commit, tree ring.SHA) (map[string]int, *ring.Refusal, error) {
	all, refusal, err := bases(v.o, other, commit, v.t.cfg.MaxRange)
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	if len(all) == 0 {
		all = []ring.SHA{""} // no common beginning: since nothing
	}
	out := map[string]int{}
	for _, base := range all {
		var from ring.SHA
		if base != "" {
			if from, refusal, err = v.treeOf(base); refusal != nil || err != nil {
				return nil, refusal, err
			}
		}
		list, refusal, err := changed(v.o, of, from, tree)
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		for _, c := range list {
			out[c.path]++
		}
	}
	return out, nil, nil
}

// maxBases is how many common ancestors are compared with each other. Above it
// all of them count, which only asks for more rights.
const maxBases = 16

// bases are the best common ancestors of two commits.
func bases(o Objects, a, b ring.SHA, max int) ([]ring.SHA, *ring.Refusal, error) {
	ids, _, refusal, err := apart(o, a, b, max)
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	if len(ids) == 0 {
		return []ring.SHA{b}, nil, nil
	}
	alone := make(map[ring.SHA]bool, len(ids))
	for _, id := range ids {
		alone[id] = true
	}
	// Whatever both reach, b reaches by way of a parent of what it reaches alone.
	var common []ring.SHA
	for _, id := range ids {
		p, refusal, err := readCommit(o, id)
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		for _, q := range p.parents {
			if !alone[q] && !slices.Contains(common, q) {
				common = append(common, q)
			}
		}
	}
	if len(common) > maxBases {
		return common, nil, nil
	}
	var best []ring.SHA
	for _, x := range common {
		behind := false
		for _, y := range common {
			if x == y || behind {
				continue
			}
			beyond, _, refusal, err := apart(o, y, x, max)
			if refusal != nil || err != nil {
				return nil, refusal, err
			}
			behind = len(beyond) == 0
		}
		if !behind {
			best = append(best, x)
		}
	}
	return best, nil, nil
}
