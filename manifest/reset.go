package manifest

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
	"gopkg.in/yaml.v3"
)

// Compose's own tags, by which a file takes back what earlier ones say.
const (
	tagReset    = "!reset"
	tagOverride = "!override"
)

func mergeTag(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n.Tag == tagReset || n.Tag == tagOverride
}

func resetTag(n *yaml.Node) bool {
	return mergeTag(n) && (n.Tag == tagReset || n.Kind == yaml.AliasNode && n.Alias.Tag == tagReset)
}

// untagged is the value as it is without its tag.
func untagged(n *yaml.Node) *yaml.Node {
	plain := *n
	plain.Tag = ""
	switch plain.Kind {
	case yaml.SequenceNode:
		plain.Tag = "!!seq"
	case yaml.MappingNode:
		plain.Tag = "!!map"
	}
	return &plain
}

func misplacedTag(at place) *fault {
	return &fault{
		code: ring.Yaml, place: at, says: "!reset and !override mean nothing here",
		hint: "put them behind a key that no list holds: ports: !override [\"8080:80\"]",
	}
}

// tagsIn are the places of the tags in n, but for those by which a file takes
// back what earlier ones say: an entry of a list has no name to find it by.
func tagsIn(n *node, listed bool) []place {
	var out []place
	if n.instead && listed {
		out = append(out, n.place)
	}
	for _, p := range n.reset {
		if listed {
			out = append(out, p.place)
		}
	}
	for _, p := range n.pairs {
		out = append(out, tagsIn(p.val, listed)...)
	}
	for _, it := range n.items {
		out = append(out, tagsIn(it, true)...)
	}
	return out
}

// retraction is what a file takes out of earlier ones.
type retraction struct {
	chain []string
	at    place
	reset bool
}

// takeBack takes out of earlier files what f says of them: the keys that it
// resets, and those whose value it gives instead of theirs. They are changed in
// copies, because services that extend each other share them.
func (a *appReader) takeBack(f composeFile, earlier ...[]composeFile) {
	for _, r := range retractions(f.root, nil) {
		if r.early() {
			a.faults.put(misplacedTag(r.at))
			continue
		}
		found := false
		for _, files := range earlier {
			for i := range files {
				was := files[i].root
				files[i].root = was.without(r.chain)
				found = found || files[i].root != was
			}
		}
		if r.reset && !found {
			a.note("%s:%d: !reset of %s takes nothing back", r.at.file, r.at.line, strings.Join(r.chain, "."))
		}
	}
}

// early: include, extends and name are carried out file by file, before files
// are merged.
func (r retraction) early() bool {
	return r.chain[0] == "include" || r.chain[0] == "name" || len(r.chain) == 3 && r.chain[2] == "extends"
}

func retractions(n *node, chain []string) []retraction {
	if n.kind != mapping {
		return nil
	}
	var out []retraction
	for _, p := range n.reset {
		out = append(out, retraction{append(slices.Clone(chain), p.key), p.place, true})
	}
	for _, p := range n.pairs {
		below := append(slices.Clone(chain), p.key)
		if p.val.instead {
			out = append(out, retraction{chain: below, at: p.place})
		}
		out = append(out, retractions(p.val, below)...)
	}
	return out
}

// without is n without what chain names, and n itself where it says nothing of
// it. An entry NAME=value of a list is what NAME is of a mapping.
func (n *node) without(chain []string) *node {
	key, rest := chain[0], chain[1:]
	out := *n
	switch n.kind {
	case mapping:
		i := slices.IndexFunc(n.pairs, func(p pair) bool { return p.key == key })
		if i < 0 {
			return n
		}
		if len(rest) == 0 {
			out.pairs = slices.Delete(slices.Clone(n.pairs), i, i+1)
			return &out
		}
		below := n.pairs[i].val.without(rest)
		if below == n.pairs[i].val {
			return n
		}
		out.pairs = slices.Clone(n.pairs)
		out.pairs[i].val = below
	case list:
		named := func(it *node) bool {
			name, _, _ := strings.Cut(it.text, "=")
			return it.kind == scalar && name == key
		}
		if len(rest) > 0 || !slices.ContainsFunc(n.items, named) {
			return n
		}
		out.items = slices.DeleteFunc(slices.Clone(n.items), named)
	default:
		return n
	}
	return &out
}
