package manifest

import (
	"path"
	"slices"

	"github.com/gitring/gitring/ring"
	"gopkg.in/yaml.v3"
)

// An app with faults is read to its end, so that one push can mend all of it: what
// has a fault is taken out of the copies that are read on, and what is left is
// judged as if the rest were not there. What the taken part might have said is
// then not known, and nothing is told of an absence that it may explain. Such an
// app is never carried out.

// wounds are the keys and values that have a fault, by what is written there.
type wounds map[*yaml.Node]bool

// wound notes what has a fault so far. Later faults lie where others are named
// from, and take nothing out.
func (a *appReader) wound() {
	for _, f := range a.faults.list {
		if f.of != nil {
			a.wounds[f.of] = true
		}
	}
}

func (w wounds) pair(p pair) bool { return w[p.place.of] }
func (w wounds) value(n *node) bool {
	return n.broken || w[n.place.of]
}

// within reports whether n, or something in it, has a fault.
func (w wounds) within(n *node) bool {
	if n == nil {
		return false
	}
	return w.value(n) || slices.ContainsFunc(n.pairs, func(p pair) bool { return w.pair(p) || w.within(p.val) }) ||
		slices.ContainsFunc(n.items, w.within)
}

// mend takes what has a fault out of the app's files.
func (a *appReader) mend() {
	a.wound()
	for i, f := range a.files {
		if !a.wounds.within(f.root) {
			continue
		}
		m := mender{wounds: a.wounds, meant: a.faults.meant}
		a.files[i].root = m.mapping(f.root, nil)
		for _, chain := range m.scalars { // an earlier word would not count if it were right
			for j := range a.files[:i] {
				if n, took, _ := a.files[j].root.at(chain); took == len(chain) && n.kind == scalar {
					a.files[j].root = a.files[j].root.without(chain)
				}
			}
		}
	}
}

// mender copies one file without what has a fault.
type mender struct {
	wounds
	meant   map[*yaml.Node]string
	scalars [][]string // single values that were taken out
}

func (m *mender) mapping(n *node, chain []string) *node {
	out := *n
	out.pairs = nil
	for _, p := range n.pairs {
		if meant := m.meant[p.place.of]; meant != "" && n.get(meant) == nil {
			p.key = meant
		} else if m.pair(p) {
			out.taken = append(out.taken, p.key)
			continue
		}
		below := append(slices.Clone(chain), p.key)
		if val := m.node(p.val, below); val != nil {
			p.val = val
		} else if stub := standIn(below, p.val); stub != nil {
			p.val = stub
		} else {
			if p.val.kind == scalar {
				m.scalars = append(m.scalars, below)
			}
			out.taken = append(out.taken, p.key)
			continue
		}
		out.pairs = append(out.pairs, p)
	}
	return &out
}

// node is nil where nothing is left of it.
func (m *mender) node(n *node, chain []string) *node {
	switch {
	case n.broken && sealable(chain) != nothingOf:
		return anyText(n, chain)
	case m.value(n):
		return nil
	case n.kind == mapping:
		return m.mapping(n, chain)
	case n.kind == list:
		return m.list(n, chain)
	}
	return n
}

// list leaves out an entry that is a mapping with a fault in it: half an entry
// says something else than the whole.
func (m *mender) list(n *node, chain []string) *node {
	out := *n
	out.items = nil
	below := append(slices.Clone(chain), "*")
	for _, it := range n.items {
		switch {
		case it.kind == scalar:
			if val := m.node(it, below); val != nil {
				out.items = append(out.items, val)
			}
		case !m.within(it):
			out.items = append(out.items, it)
		}
	}
	return &out
}

// anyText stands for a text whose variables are not known, where any text will do.
func anyText(n *node, chain []string) *node {
	out := *n
	if sealable(chain) == behindName {
		out.broken = false
		if name := nameOf(n.text); chain[len(chain)-1] == "*" {
			if name == "" {
				return nil
			}
			out.text = name + "="
		} else {
			out.text = ""
		}
	}
	return &out
}

// nameOf is what stands before = in an entry; "" where that itself is not known.
func nameOf(entry string) string {
	for i := range len(entry) {
		switch entry[i] {
		case '=':
			return entry[:i]
		case '$':
			return ""
		}
	}
	return entry
}

// standIn is for what is declared although its value has a fault: others may name
// it. nil for anything else.
func standIn(chain []string, n *node) *node {
	if len(chain) != 2 || !contains(resourceKinds, chain[0]) {
		return nil
	}
	return &node{kind: mapping, place: n.place}
}

// lost reports whether something at chain, or what may have been meant for it, has a
// fault: that it is not there, or what it says, is then not known.
func (a *appReader) lost(chain ...string) bool {
	if a.torn || len(a.wounds) == 0 && len(a.loose) == 0 && !a.faults.untold {
		return a.torn
	}
	if chain[0] == "services" && len(chain) > 2 && a.loose[chain[1]] {
		return true
	}
	return slices.ContainsFunc(a.asWritten, func(root *node) bool { return a.wounds.at(root, chain) })
}

// anyLost is lost of one of several keys of a service.
func (a *appReader) anyLost(service string, keys ...[]string) bool {
	return slices.ContainsFunc(keys, func(key []string) bool { return a.lost(append([]string{"services", service}, key...)...) })
}

func (w wounds) at(n *node, chain []string) bool {
	if n == nil || w.value(n) || len(chain) == 0 {
		return w.within(n)
	}
	for _, p := range n.pairs {
		if p.key == chain[0] && (w.pair(p) || w.at(p.val, chain[1:])) {
			return true
		}
		if p.key != chain[0] && w.pair(p) && resembles(p.key, chain[0]) {
			return true
		}
	}
	return false
}

// kindLost reports whether it is not known whether a service is a job.
func (b *builderOf) kindLost(name string) bool {
	if b.anyLost(name, []string{extensionKey, "kind"}, []string{"restart"}, []string{"deploy", "restart_policy"}) {
		return true
	}
	return slices.ContainsFunc(sortedKeys(b.project.Services), func(other string) bool { return b.lost("services", other, "depends_on") })
}

// replicasLost reports whether it is not known how many a service has.
func (b *builderOf) replicasLost(name string) bool {
	return b.anyLost(name, []string{"scale"}, []string{"deploy", "replicas"})
}

// networksLost reports whether it is not known which networks a service joins.
func (b *builderOf) networksLost(name string) bool {
	return b.anyLost(name, []string{"networks"}, []string{"network_mode"})
}

// profilesLost reports whether it is not known which profiles are active.
func (a *appReader) profilesLost() bool { return !a.vars.known("COMPOSE_PROFILES") }

// lostOwn are the app's services, networks and volumes that have a fault.
func (a *appReader) lostOwn() map[string]bool {
	out := map[string]bool{}
	for _, kind := range []string{"services", "networks", "volumes"} {
		for _, root := range a.asWritten {
			for _, p := range root.get(kind).mappingPairs() {
				if a.lost(kind, p.key) {
					out[kind+"."+p.key] = true
				}
			}
		}
	}
	return out
}

// whole is the fault of last resort: an app of which something was not read, while
// nothing was told, must not pass. No commit is known that comes here.
func (a *appReader) whole() {
	if len(a.faults.list) == 0 && a.faults.untold {
		file := a.from.path
		if len(a.from.files) > 0 {
			file = a.from.files[0]
		}
		a.faults.put(&fault{
			code: ring.BadValue, place: place{file: path.Clean(file)}, says: "the app cannot be read whole, and nothing says why",
			hint: ring.FaultOfOurs,
		})
	}
}
