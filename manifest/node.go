package manifest

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// nodeKind is the shape of a node.
type nodeKind int

const (
	scalar nodeKind = iota
	list
	mapping
)

// node is YAML that passed the limits: aliases followed (a shared subtree is
// one node), merge keys applied, every node with its line.
type node struct {
	kind  nodeKind
	tag   string // of a scalar: !!str, !!int, !!float, !!bool, !!null
	text  string // of a scalar, as written; after expand, with variables replaced
	raw   *yaml.Node
	place place
	pairs []pair
	items []*node
	// reset are the keys of a mapping that it takes out of earlier files; instead
	// says that the value takes the place of theirs, where it would be merged.
	reset   []pair
	instead bool
	// taken are the keys of a mapping that were taken out for a fault; see mend.
	taken []string
	// broken says that its variables could not be replaced, which is told once.
	broken bool
}

// pair is one key of a mapping and its value.
type pair struct {
	key   string
	place place
	val   *node
}

// get is the value of a key; nil when it is not there.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for i := range n.pairs {
		if n.pairs[i].key == key {
			return n.pairs[i].val
		}
	}
	return nil
}

func (n *node) null() bool { return n == nil || n.kind == scalar && n.tag == tagNull }

// asksNothing reports whether a value is what its absence would be: null, false, or
// empty. A key with such a value needs no support and breaks no rule.
func (n *node) asksNothing() bool {
	switch {
	case n.null():
		return true
	case n.kind == list:
		return len(n.items) == 0
	case n.kind == mapping:
		return len(n.pairs) == 0
	}
	return n.text == "" || strings.EqualFold(n.text, "false")
}

// unexpanded reports whether a text of n, or of its entries, is not what it means.
func (n *node) unexpanded() bool {
	for i := range n.pairs {
		if n.pairs[i].val.unexpanded() {
			return true
		}
	}
	return n.broken || slices.ContainsFunc(n.items, (*node).unexpanded)
}

// words are the strings of a list, or the one string that stands for it.
func (n *node) words() []string {
	var out []string
	for _, it := range n.texts() {
		out = append(out, it.text)
	}
	return out
}

// texts are words with their places.
func (n *node) texts() []*node {
	if n.null() {
		return nil
	}
	if n.kind == scalar {
		return []*node{n}
	}
	var out []*node
	for _, it := range n.items {
		if it.kind == scalar {
			out = append(out, it)
		}
	}
	return out
}

// value is the node as plain Go values, what a YAML library would give, except
// that a date stays as written. Keys that skip says are left out.
func (n *node) value() any {
	switch n.kind {
	case list:
		out := make([]any, len(n.items))
		for i, it := range n.items {
			out[i] = it.value()
		}
		return out
	case mapping:
		out := make(map[string]any, len(n.pairs))
		for _, p := range n.pairs {
			out[p.key] = p.val.value()
		}
		return out
	}
	switch n.tag {
	case tagNull:
		return nil
	case tagInt, tagFloat, tagBool:
		var v any
		if err := n.raw.Decode(&v); err == nil {
			return v
		}
	}
	return n.text
}

// at walks down keys and list indexes as far as they lead; how many it took is
// the second result. The place of the last key on the way is the third.
func (n *node) at(path []string) (*node, int, place) {
	last := n.place
	for i, step := range path {
		next, at := n.step(step)
		if next == nil {
			return n, i, last
		}
		n, last = next, at
	}
	return n, len(path), last
}

func (n *node) step(step string) (*node, place) {
	switch n.kind {
	case mapping:
		for i := range n.pairs {
			if n.pairs[i].key == step {
				return n.pairs[i].val, n.pairs[i].place
			}
		}
	case list:
		if i, ok := index(step); ok && i < len(n.items) {
			return n.items[i], n.items[i].place
		}
	}
	return nil, place{}
}

func index(s string) (int, bool) {
	if s == "" || len(s) > 6 {
		return 0, false
	}
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
