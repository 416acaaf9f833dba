package manifest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// home is a file in which a base is looked for: its services, and those that it
// includes. Of a file that is only named by extends a service is expanded when it
// is asked for: the others ask nothing.
type home struct {
	file     string
	dir      string // where its relative paths start
	vars     *variables
	services *node
	included []composeFile
	lazy     map[string]*node // by name; nil where services are expanded already
}

// homeKey is a file as some variables make it.
type homeKey struct {
	file string
	vars *variables
}

// base is one service on the way of extends, at the place that names it.
type base struct {
	home *home
	name string
	at   place
}

// extended are files with what the services of h extend, the farthest first,
// each under the name of the service that extends it.
func (a *appReader) extended(h *home) []composeFile {
	var layers []composeFile // the nearest first
	for _, p := range h.services.mappingPairs() {
		chain, whole := a.lineage(base{h, p.key, p.place}, nil)
		if !whole {
			a.loose[p.key] = true
		}
		for i := range chain {
			n := chain[len(chain)-1-i]
			if !a.afford(n, p.place) {
				return nil
			}
			if i == len(layers) {
				layers = append(layers, composeFile{path: h.file, vars: h.vars, root: &node{kind: mapping, place: p.place, pairs: []pair{{
					key: "services", place: p.place, val: &node{kind: mapping, place: p.place},
				}}}})
			}
			services := layers[i].root.pairs[0].val
			services.pairs = append(services.pairs, pair{key: p.key, place: p.place, val: n})
		}
	}
	slices.Reverse(layers)
	for i, f := range layers {
		a.takeBack(f, layers[:i])
	}
	return layers
}

// lineage are the services that b extends, the farthest first. whole is false
// where one of them cannot be read, which is told.
func (a *appReader) lineage(b base, way []base) (out []*node, whole bool) {
	n := a.serviceAt(b.home, b.name)
	e := n.get("extends")
	if e.null() {
		return nil, true
	}
	a.namesAnother(e.place.file)
	if e.unexpanded() || a.circular(b, way) {
		return nil, false
	}
	to := base{home: b.home, name: e.text, at: e.place}
	if e.kind == mapping {
		to.name = textOf(e.get("service"))
		if f := e.get("file"); !f.null() {
			if to.home = a.homeOf(b.home, f); to.home == nil {
				return nil, false
			}
		}
	}
	if to.name == "" {
		return nil, false // refused by its type
	}
	for _, f := range to.home.included {
		if n := f.root.get("services").get(to.name); n != nil {
			out = append(out, n)
		}
	}
	own := a.serviceAt(to.home, to.name)
	if own == nil && len(out) == 0 {
		if !a.torn { // else it may be declared by what could not be included
			a.faults.add(ring.BadValue, to.at, noService(to.name, a.namesAt(to.home)), "services.%s extends %s, which %s does not declare", b.name, head(to.name), to.home.file)
		}
		return nil, false
	}
	whole = true
	if own != nil {
		var farther []*node
		farther, whole = a.lineage(to, append(way, b))
		out = append(append(out, farther...), own)
	}
	return out, whole
}

// circular refuses services that extend each other, once, with each place.
func (a *appReader) circular(b base, way []base) bool {
	if len(way) >= a.limits.Chain {
		a.faults.add(ring.TooLarge, b.at, "extend fewer services in a row", "services.%s: extends goes over more than %d services", way[0].name, a.limits.Chain)
		return true
	}
	for i, w := range way {
		if w.home.file != b.home.file || w.name != b.name {
			continue
		}
		if a.circled {
			return true
		}
		a.circled = true
		var circle []string
		for _, on := range append(way[i+1:], b) {
			circle = append(circle, fmt.Sprintf("%s (%s:%d)", on.name, on.at.file, on.at.line))
		}
		a.faults.add(ring.BadValue, b.at, "remove one of these extends", "services.%s extends itself by way of %s", b.name, strings.Join(circle, ", "))
		return true
	}
	return false
}

// serviceAt is a service of a file; nil when it declares none.
func (a *appReader) serviceAt(h *home, name string) *node {
	n := h.services.get(name)
	if h.lazy == nil || n == nil {
		return n
	}
	if done, ok := h.lazy[name]; ok {
		return done
	}
	n = (&expander{vars: h.vars, fs: &a.faults, used: a.useOf, apart: a.splitApart}).node(n, []string{"services", name}, false)
	a.rebase(&node{kind: mapping, pairs: []pair{{key: "services", val: &node{kind: mapping, pairs: []pair{{key: name, val: n}}}}}}, h.dir)
	h.lazy[name] = n
	return n
}

func (a *appReader) namesAt(h *home) []string {
	out := declaredIn(h.included, "services")
	for _, p := range h.services.mappingPairs() {
		out = append(out, p.key)
	}
	return out
}

// homeOf is the file that extends names, relative to the one that says it. As in
// Compose its paths start at its own folder, and what it includes is not read.
func (a *appReader) homeOf(from *home, f *node) *home {
	p, ok := a.inCommit(from.dir, f.text, f.place)
	if !ok {
		return nil
	}
	key := homeKey{p, from.vars}
	if h, ok := a.homes[key]; ok {
		return h
	}
	a.homes[key] = nil
	root := a.parsedAt(p, f.place, "extended")
	if root == nil {
		return nil
	}
	a.homes[key] = &home{file: p, dir: path.Dir(p), vars: from.vars, services: root.get("services"), lazy: map[string]*node{}}
	return a.homes[key]
}
