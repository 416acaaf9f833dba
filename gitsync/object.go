package gitsync

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitring/gitring/ring"
)

// errDamaged is wrapped by every error that says the local store does not hold
// what it should; the cure is to build it anew.
var errDamaged = errors.New("the local copy is damaged")

// errTooBig is wrapped when an object is larger than its limit.
var errTooBig = errors.New("larger than the limit")

// checked reads an object of one kind and compares its hash with its name: a
// store whose files were exchanged serves the wrong object without an error.
func checked(o Objects, sha ring.SHA, kind string) ([]byte, error) {
	got, body, err := o.Raw(sha)
	if err != nil {
		return nil, err
	}
	if got != kind {
		return nil, fmt.Errorf("cannot read %s %s: it is a %s: %w", kind, sha, got, errDamaged)
	}
	if sum, collides := objectHash(kind, body); collides || sum != sha {
		return nil, fmt.Errorf("cannot read %s %s: its content has another hash: %w", kind, sha, errDamaged)
	}
	return body, nil
}

// links is where a commit leads. It is read leniently, for moving objects and
// for finding out what is new; nothing is decided by it.
type links struct {
	tree    plumbing.Hash
	parents []plumbing.Hash
	when    int64 // the committer's time, seconds
}

func linksOf(body []byte) links {
	var l links
	head, _, _ := bytes.Cut(body, []byte("\n\n"))
	for line := range strings.SplitSeq(string(head), "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch {
		case key == "tree" && l.tree.IsZero() && plumbing.IsHash(value):
			l.tree = plumbing.NewHash(value)
		case key == "parent" && plumbing.IsHash(value):
			l.parents = append(l.parents, plumbing.NewHash(value))
		case key == "committer":
			if f := strings.Fields(value); len(f) > 1 {
				l.when, _ = strconv.ParseInt(f[len(f)-2], 10, 64)
			}
		}
	}
	return l
}

// entry is one line of a tree object.
type entry struct {
	mode uint32 // as Git writes it, octal
	name string
	hash plumbing.Hash
}

const (
	modeDir     = 0o040000
	modeLink    = 0o120000
	modeGitlink = 0o160000
)

// entriesOf splits a tree object; it judges neither names nor order.
func entriesOf(body []byte) ([]entry, error) {
	list := make([]entry, 0, len(body)/40)
	for len(body) > 0 {
		mode, rest, ok := bytes.Cut(body, []byte{' '})
		if !ok {
			return nil, errors.New("cannot parse tree: an entry has no mode")
		}
		name, rest, ok := bytes.Cut(rest, []byte{0})
		if !ok || len(rest) < 20 {
			return nil, errors.New("cannot parse tree: an entry is cut short")
		}
		m, err := strconv.ParseUint(string(mode), 8, 32)
		if err != nil {
			return nil, fmt.Errorf("cannot parse tree: mode %q", mode)
		}
		list = append(list, entry{mode: uint32(m), name: string(name), hash: plumbing.Hash(rest[:20])})
		body = rest[20:]
	}
	return list, nil
}
