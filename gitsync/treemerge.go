package gitsync

import (
	"bytes"
	"container/heap"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// MergeByFolders is the tree that git would merge two commits into, told from folders
// alone. It needs no git, so it can be asked anywhere. It answers where each file was
// changed on one side only and neither side took one away: then git looks for no
// renames, and has nothing to decide. The error wraps ErrNoMergeTree for anything else.
func MergeByFolders(o Objects, ours, theirs ring.SHA) (ring.SHA, error) {
	base, err := mergeBase(o, ours, theirs)
	if err != nil {
		return "", err
	}
	var trees [3]ring.SHA
	for i, sha := range []ring.SHA{base, ours, theirs} {
		p, refusal, err := readCommit(o, sha)
		if err := worldly(refusal, err); err != nil {
			return "", err
		}
		trees[i] = p.tree
	}
	m := &folderMerge{o: o}
	return m.merge(trees[0], trees[1], trees[2])
}

// notByFolders is what only git can tell.
func notByFolders(why string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(why, args...), ErrNoMergeTree)
}

// folderMerge is one merge; trees counts what it reads.
type folderMerge struct {
	o     Objects
	trees int
}

// merge is one folder; "" is an empty one.
func (m *folderMerge) merge(base, ours, theirs ring.SHA) (ring.SHA, error) {
	switch {
	case ours == theirs, base == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	var sides [3]map[string]entry
	for i, sha := range []ring.SHA{base, ours, theirs} {
		var err error
		if sides[i], err = m.folder(sha); err != nil {
			return "", err
		}
	}
	for name := range sides[0] {
		for _, side := range sides[1:] {
			if now, ok := side[name]; !ok || (now.mode == modeDir) != (sides[0][name].mode == modeDir) {
				return "", notByFolders("%s was removed or moved", clip(name))
			}
		}
	}
	merged := map[string]entry{}
	for name := range maps.Keys(sides[1]) {
		merged[name] = sides[1][name]
	}
	for name, t := range sides[2] {
		o, both := sides[1][name]
		b, was := sides[0][name]
		switch {
		case !both, was && o == b:
			merged[name] = t
		case o == t, was && t == b:
		case o.mode == modeDir && t.mode == modeDir && (!was || b.mode == modeDir):
			below := ring.SHA("")
			if was {
				below = ring.SHA(b.hash.String())
			}
			sha, err := m.merge(below, ring.SHA(o.hash.String()), ring.SHA(t.hash.String()))
			if err != nil {
				return "", err
			}
			raw, _ := hex.DecodeString(string(sha)) // it is an id
			copy(o.hash[:], raw)
			merged[name] = o
		default:
			return "", notByFolders("%s was changed on both sides", clip(name))
		}
	}
	return treeID(slices.Collect(maps.Values(merged))), nil
}

func (m *folderMerge) folder(sha ring.SHA) (map[string]entry, error) {
	out := map[string]entry{}
	if sha == "" {
		return out, nil
	}
	if m.trees++; m.trees > maxTreesOfDiff {
		return nil, notByFolders("there are more than %d folders", maxTreesOfDiff)
	}
	body, err := checked(m.o, sha, "tree")
	if err != nil {
		return nil, err
	}
	list, err := entriesOf(body)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if _, twice := out[e.name]; twice {
			return nil, notByFolders("%s is in a folder twice", clip(e.name))
		}
		out[e.name] = e
	}
	return out, nil
}

// treeID is the id of a folder with these entries, in Git's order: a folder's name counts
// with a slash behind it.
func treeID(list []entry) ring.SHA {
	sortedAs := func(e entry) string {
		if e.mode == modeDir {
			return e.name + "/"
		}
		return e.name
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(sortedAs(a), sortedAs(b)) })
	var body bytes.Buffer
	for _, e := range list {
		fmt.Fprintf(&body, "%o %s\x00%s", e.mode, e.name, e.hash[:])
	}
	sum, _ := objectHash("tree", body.Bytes())
	return sum
}

// mostToBase bounds the way to where two commits parted.
const mostToBase = 20_000

// Colours of a commit on the way to where two parted.
const (
	fromOurs   = 1 << iota
	fromTheirs // reachable from the other
	below      // behind a commit that both reach
)

// mergeBase is the one commit where two parted, by the rules of git. Where there are
// several only git can tell.
func mergeBase(o Objects, ours, theirs ring.SHA) (ring.SHA, error) {
	if ours == theirs {
		return ours, nil
	}
	w := &baseWalk{o: o, seen: map[ring.SHA]*visit{}}
	for _, start := range []struct {
		sha    ring.SHA
		colour int
	}{{ours, fromOurs}, {theirs, fromTheirs}} {
		if err := w.paint(start.sha, start.colour); err != nil {
			return "", err
		}
	}
	var found []ring.SHA
	for n := 0; w.open(); n++ {
		if n > mostToBase {
			return "", notByFolders("the two parted more than %d commits ago", mostToBase)
		}
		v := heap.Pop(&w.queue).(*visit)
		v.done = false
		colour := v.colour
		if colour&(fromOurs|fromTheirs|below) == fromOurs|fromTheirs {
			if !slices.Contains(found, v.sha) {
				found = append(found, v.sha)
			}
			colour |= below
		}
		for _, p := range v.parents {
			if err := w.paint(p, colour); err != nil {
				return "", err
			}
		}
	}
	found = slices.DeleteFunc(found, func(sha ring.SHA) bool { return w.seen[sha].colour&below != 0 })
	if len(found) != 1 {
		return "", notByFolders("there are %d commits where the two parted", len(found))
	}
	return found[0], nil
}

// baseWalk goes back from two commits, the newest first. A commit may come up again with
// another colour.
type baseWalk struct {
	o     Objects
	seen  map[ring.SHA]*visit
	queue queue
}

func (w *baseWalk) paint(sha ring.SHA, colour int) error {
	v := w.seen[sha]
	if v == nil {
		p, refusal, err := readCommit(w.o, sha)
		if err := worldly(refusal, err); err != nil {
			return err
		}
		v = &visit{sha: sha, when: p.committer.when.Unix(), parents: p.parents}
		w.seen[sha] = v
	}
	if v.colour&colour == colour {
		return nil
	}
	v.colour |= colour
	if !v.done { // done: it is in the queue
		v.done = true
		heap.Push(&w.queue, v)
	}
	return nil
}

// open reports whether a commit is left that is not behind one that both reach.
func (w *baseWalk) open() bool {
	return slices.ContainsFunc(w.queue, func(v *visit) bool { return v.colour&below == 0 })
}
