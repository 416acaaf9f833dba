package manifest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// expander makes a copy of a file's nodes with their variables replaced. Where a
// place is one that the runtime opens, a value of the host's env folder stands
// there sealed; anywhere else as it is, because Compose's structure depends on it.
type expander struct {
	vars *variables
	fs   *faults
	// used is told of each value of the host that stands somewhere as it is.
	used func(chain []string, at place, s ring.Sealed)
	// apart is told of each text of a command with values of the host.
	apart func(chain []string, val value)
}

// root expands a whole file, but for its name and its extensions.
func (e *expander) root(n *node) *node {
	out := *n
	out.pairs = slices.Clone(n.pairs)
	for i, p := range out.pairs {
		if p.key != "name" && !strings.HasPrefix(p.key, "x-") {
			out.pairs[i].val = e.node(p.val, []string{p.key}, false)
		}
	}
	return &out
}

func (e *expander) node(n *node, chain []string, listed bool) *node {
	out := *n
	switch n.kind {
	case mapping:
		out.pairs = slices.Clone(n.pairs)
		for i, p := range out.pairs {
			out.pairs[i].val = e.node(p.val, append(chain, p.key), false)
		}
		if environmentAt(chain) {
			e.inherit(&out)
		}
	case list:
		out.items = slices.Clone(n.items)
		for i, it := range out.items {
			out.items[i] = e.node(it, append(chain, "*"), true)
		}
		if environmentAt(chain) {
			e.inheritListed(&out)
		}
	default:
		e.scalar(&out, chain, listed)
	}
	return &out
}

func (e *expander) scalar(n *node, chain []string, listed bool) {
	e.replaced(n, chain, listed)
	if !n.broken && hostPathAt(chain) {
		e.home(n, chain)
	}
}

// hostPathAt are the places whose path Compose takes from somebody's home by ~.
func hostPathAt(chain []string) bool {
	switch {
	case len(chain) == 3 && (chain[0] == "secrets" || chain[0] == "configs"):
		return chain[2] == "file"
	case len(chain) < 4 || chain[0] != "services" || chain[2] != "volumes":
		return false
	}
	return len(chain) == 4 || len(chain) == 5 && chain[4] == "source"
}

// home puts the variable HOME in the place of ~, as Compose does with that of its user.
func (e *expander) home(n *node, chain []string) {
	rest, ok := strings.CutPrefix(n.text, "~")
	if n.tag != "!!str" || !ok || rest != "" && rest[0] != '/' && rest[0] != ':' {
		return
	}
	val, set := e.vars.value("HOME")
	switch {
	case !e.vars.known("HOME"):
		e.fs.put(untold)
	case !set:
		f := undefined("HOME", n.place)
		f.says = fmt.Sprintf("variable HOME is not set, and %s lies in it", head(strings.SplitN(n.text, ":", 2)[0]))
		e.fs.put(f)
	case !path.IsAbs(val.plain):
		e.fs.add(ring.BadValue, n.place, "set HOME to an absolute path", "variable HOME is no absolute path, and ~ stands for it")
	default:
		n.text = strings.TrimSuffix(val.plain, "/") + rest
		e.usedIn(chain, n.place, val)
		return
	}
	n.broken = true
}

func (e *expander) replaced(n *node, chain []string, listed bool) {
	if n.tag != "!!str" || !strings.Contains(n.text, "$") {
		return
	}
	val, faults := e.vars.replace(n.text, n.place)
	if n.broken = faults != nil; n.broken {
		e.fs.putAll(faults)
		return
	}
	switch sealable(chain) {
	case whole:
		n.text = val.sealed
		if val.hidden() && len(chain) == 3 && chain[0] == "services" {
			e.apart(chain, val)
		}
		return
	case behindName:
		name, _, said := strings.Cut(val.sealed, "=")
		if !listed || said && !ring.HasSealed(name) {
			n.text = val.sealed
			return
		}
	}
	n.text = val.plain
	if !val.hidden() {
		return
	}
	if strings.Contains(val.plain, ring.SealMark) {
		n.broken = true
		e.fs.put(markFault(n.place))
	}
	e.usedIn(chain, n.place, val)
}

// usedIn tells of what is sealed in a value that stands somewhere as it is.
func (e *expander) usedIn(chain []string, at place, val value) {
	for _, s := range ring.SealedIn(val.sealed) {
		e.used(chain, at, s)
	}
}

// inherit gives a name without a value that of the variable, from a mapping. One
// that is not set stays as it is: a later file may say it.
func (e *expander) inherit(n *node) {
	for i, p := range n.pairs {
		if !p.val.null() {
			continue
		}
		if !e.vars.known(p.key) {
			e.fs.put(untold)
			n.pairs[i].val = &node{kind: scalar, tag: "!!str", place: p.val.place, broken: true}
		} else if val, ok := e.vars.value(p.key); ok {
			n.pairs[i].val = &node{kind: scalar, tag: "!!str", text: val.sealed, place: p.val.place}
		}
	}
}

func (e *expander) inheritListed(n *node) {
	for i, it := range n.items {
		if it.kind != scalar || it.broken || strings.Contains(it.text, "=") {
			continue
		}
		bare := *it
		if !e.vars.known(it.text) {
			e.fs.put(untold)
			bare.broken = true
			n.items[i] = &bare
		} else if val, ok := e.vars.value(it.text); ok {
			bare.tag, bare.text = "!!str", it.text+"="+val.sealed
			n.items[i] = &bare
		}
	}
}

// How much of a text may be sealed.
const (
	nothingOf = iota
	whole
	behindName // of NAME=value in a list; of a mapping the whole
)

// sealable are the places whose values the runtime opens as it builds the
// payload for the engine.
func sealable(chain []string) int {
	switch {
	case len(chain) == 3 && chain[0] == "configs" && chain[2] == "content":
		return whole
	case len(chain) < 3 || chain[0] != "services":
		return nothingOf
	}
	switch chain[2] {
	case "command", "entrypoint":
		return whole
	case "environment", "labels", "annotations":
		return behindName
	case "healthcheck":
		if len(chain) > 3 && chain[3] == "test" {
			return whole
		}
	case "logging":
		if len(chain) > 4 && chain[3] == "options" {
			return whole
		}
	case "post_start", "pre_stop":
		if len(chain) > 4 && chain[4] == "command" {
			return whole
		}
		if len(chain) > 5 && chain[4] == "environment" {
			return behindName
		}
	}
	return nothingOf
}

// environmentAt are the places where a name may stand without its value.
func environmentAt(chain []string) bool {
	switch {
	case len(chain) < 3 || chain[0] != "services":
		return false
	case chain[2] == "post_start", chain[2] == "pre_stop":
		return len(chain) == 5 && chain[4] == "environment"
	}
	return len(chain) == 3 && chain[2] == "environment"
}

// size is what a subtree comes to, aliases followed; it ends at most.
func (n *node) size(most int) int {
	sum := 1
	for i := range n.pairs {
		if sum > most {
			return sum
		}
		sum += n.pairs[i].val.size(most - sum)
	}
	for _, it := range n.items {
		if sum > most {
			return sum
		}
		sum += it.size(most - sum)
	}
	return sum
}
