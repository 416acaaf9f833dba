package gitsync

import (
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/gitring/gitring/ring"
)

// Bounds of one comparison of trees; above them a person has to look.
const (
	maxChanged     = 20_000
	maxTreesOfDiff = 50_000
)

// change is one path that differs between two trees: a file, link or submodule
// that was added, removed or made another. A rename is both sides of it. It is a
// folder where that differs although nothing in it does: an empty one that came or
// went, or one whose entries are written in another way. The top folder is ".".
type change struct {
	path     string
	old, new node // the zero node is absent
}

// comparison walks two trees side by side; folders that are equal cost nothing.
type comparison struct {
	o     Objects
	trees int
	out   []change
}

// changed lists what differs between two trees, by path. "" is the empty tree.
// Every tree is hashed again when it is read. The refusal is of the commit named:
// a tree that cannot be read as one, or more changes than anybody reviews.
func changed(o Objects, of, from, to ring.SHA) ([]change, *ring.Refusal, error) {
	c := &comparison{o: o}
	if refusal, err := c.folders(of, "", from, to); refusal != nil || err != nil {
		return nil, refusal, err
	}
	slices.SortFunc(c.out, func(a, b change) int {
		switch {
		case a.path < b.path:
			return -1
		case a.path > b.path:
			return 1
		}
		return 0
	})
	return c.out, nil, nil
}

func (c *comparison) folders(of ring.SHA, at string, from, to ring.SHA) (*ring.Refusal, error) {
	if from == to {
		return nil, nil
	}
	before := len(c.out)
	if refusal, err := c.entries(of, at, from, to); refusal != nil || err != nil {
		return refusal, err
	}
	if len(c.out) == before {
		return c.add(of, change{path.Join(".", at), folderNode(at, from), folderNode(at, to)}), nil
	}
	return nil, nil
}

// folderNode is a folder as it stands in a tree; "" is absent.
func folderNode(at string, sha ring.SHA) node {
	if sha == "" {
		return node{}
	}
	return node{name: path.Base(path.Join(".", at)), mode: fs.ModeDir | 0o555, git: modeDir, sha: sha}
}

func (c *comparison) add(of ring.SHA, one change) *ring.Refusal {
	if c.out = append(c.out, one); len(c.out) > maxChanged {
		return tooManyChanges(of, maxChanged)
	}
	return nil
}

func (c *comparison) entries(of ring.SHA, at string, from, to ring.SHA) (*ring.Refusal, error) {
	a, refusal, err := c.folder(of, from)
	if refusal != nil || err != nil {
		return refusal, err
	}
	b, refusal, err := c.folder(of, to)
	if refusal != nil || err != nil {
		return refusal, err
	}
	for len(a) > 0 || len(b) > 0 {
		var x, y node
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].name < b[0].name:
			x, a = a[0], a[1:]
		case len(a) == 0 || b[0].name < a[0].name:
			y, b = b[0], b[1:]
		default:
			x, y, a, b = a[0], b[0], a[1:], b[1:]
		}
		if refusal, err := c.nodes(of, at, x, y); refusal != nil || err != nil {
			return refusal, err
		}
	}
	return nil, nil
}

func (c *comparison) nodes(of ring.SHA, at string, x, y node) (*ring.Refusal, error) {
	if x == y {
		return nil, nil
	}
	name := path.Join(at, x.name)
	if x.name == "" {
		name = path.Join(at, y.name)
	}
	var from, to ring.SHA
	if x.mode.IsDir() {
		from, x = x.sha, node{}
	}
	if y.mode.IsDir() {
		to, y = y.sha, node{}
	}
	if x != y {
		if refusal := c.add(of, change{name, x, y}); refusal != nil {
			return refusal, nil
		}
	}
	return c.folders(of, name, from, to)
}

func (c *comparison) folder(of, sha ring.SHA) (folder, *ring.Refusal, error) {
	if sha == "" {
		return nil, nil, nil
	}
	if c.trees++; c.trees > maxTreesOfDiff {
		return nil, tooManyChanges(of, maxTreesOfDiff), nil
	}
	kind, body, err := c.o.Raw(sha)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read tree %s: %w", sha, err)
	}
	sum, collides := objectHash(kind, body)
	if refusal := named(sha, sum, collides); refusal != nil {
		return nil, refusal, nil
	}
	if kind != "tree" {
		return nil, badGrammar(of, fmt.Errorf("%s is a %s where a tree has to be", sha.Short(), kind)), nil
	}
	list, err := parseFolder(body)
	if err != nil {
		return nil, badGrammar(of, err), nil
	}
	return list, nil, nil
}
