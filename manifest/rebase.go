package manifest

import (
	"path"
	"regexp"
	"strings"

	"github.com/gitring/gitring/ring"
)

// remote is how Compose writes what it would fetch from elsewhere.
var remote = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*://|git@|oci:|docker://)`)

// inCommit is the path inside the commit of a file or folder that a manifest
// names, relative to dir. What is no such path is refused.
func (a *appReader) inCommit(dir, name string, at place) (string, bool) {
	p := path.Join(dir, name)
	switch {
	case remote.MatchString(name):
		a.faults.add(ring.OutsideCommit, at, "commit the file, and name it by its path", "%s would be read from elsewhere", head(name))
		return "", false
	case path.IsAbs(name), strings.HasPrefix(name, "~"), windowsPath.MatchString(name), !a.inside(p):
		a.faults.put(outside(name, at))
		return "", false
	}
	return p, true
}

// wayTo is how one clean path inside the commit is named from another.
func wayTo(from, to string) string {
	if from == "." {
		return to
	}
	a, b := strings.Split(from, "/"), strings.Split(to, "/")
	if to == "." {
		b = nil
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	return path.Join(".", strings.Repeat("../", len(a)), strings.Join(b, "/"))
}

// rebase rewrites the relative paths of a file whose paths start at dir so that
// they start at the app's folder. It changes nodes: they are this use's own.
func (a *appReader) rebase(root *node, dir string) {
	way := wayTo(a.from.path, dir)
	if way == "." {
		return
	}
	r := rebaser(way)
	for _, p := range root.get("services").mappingPairs() {
		r.service(p.val)
	}
	for _, kind := range []string{"configs", "secrets"} {
		for _, p := range root.get(kind).mappingPairs() {
			r.text(p.val.get("file"))
		}
	}
	for _, p := range root.get("volumes").mappingPairs() {
		if o := p.val.get("driver_opts"); textOf(o.get("o")) == "bind" {
			r.text(o.get("device"))
		}
	}
}

// rebaser is the way from the app's folder to where paths start.
type rebaser string

func (r rebaser) path(s string) string {
	if s == "" || path.IsAbs(s) || strings.HasPrefix(s, "~") || windowsPath.MatchString(s) || remote.MatchString(s) {
		return s
	}
	if s = path.Join(string(r), s); s != ".." && !strings.HasPrefix(s, "../") {
		s = "./" + s // Compose takes a word without a dot for a volume's name
	}
	return s
}

func (r rebaser) text(n *node) {
	if n != nil && n.kind == scalar && !n.null() && !n.broken {
		n.text = r.path(n.text)
	}
}

func (r rebaser) service(n *node) {
	if n == nil {
		return
	}
	for _, key := range []string{"env_file", "label_file"} {
		r.files(n.get(key))
	}
	if b := n.get("build"); b != nil {
		r.text(b)
		r.text(b.get("context"))
	}
	if v := n.get("volumes"); v != nil {
		for _, it := range v.items {
			r.mount(it)
		}
	}
	if m := n.get(extensionKey).get("mounts"); m != nil && m.kind == mapping {
		for i := range m.pairs {
			m.pairs[i].key = r.path(m.pairs[i].key)
		}
	}
}

// files are one file or a list, each by its path or as {path: …}.
func (r rebaser) files(n *node) {
	if n == nil {
		return
	}
	r.text(n)
	for _, it := range n.items {
		r.text(it)
		r.text(it.get("path"))
	}
}

func (r rebaser) mount(n *node) {
	if n.kind == mapping {
		if textOf(n.get("type")) == "bind" {
			r.text(n.get("source"))
		}
		return
	}
	if source, rest, ok := strings.Cut(n.text, ":"); ok && strings.HasPrefix(source, ".") {
		n.text = r.path(source) + ":" + rest
	}
}
