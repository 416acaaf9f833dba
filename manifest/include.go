package manifest

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// parsedFile is a file of the commit as written, parsed once for an app. Its
// nodes are never changed; each use expands its own.
type parsedFile struct {
	root *node
	used bool
}

// scope is where a file's relative paths start, the variables it sees, and the
// files that lead to it by include.
type scope struct {
	dir  string
	vars *variables
	way  []include
}

// include is one step of a chain of includes.
type include struct {
	file string
	at   place
}

// unfold turns a file into Compose files that can be merged in order: what it
// includes, what its services extend, and itself. It is written as if it stood
// in the app's folder. What it takes back is taken out of those before it.
func (a *appReader) unfold(p string, written *node, s scope, before []composeFile) []composeFile {
	root := (&expander{vars: s.vars, fs: &a.faults, used: a.useOf, apart: a.splitApart}).root(written)
	var included []composeFile
	var groups [][]composeFile
	for _, n := range entriesOf(root.get("include")) {
		a.namesAnother(p)
		files, whole := a.included(n, s)
		a.torn = a.torn || !whole
		groups = append(groups, files)
	}
	a.rebase(root, s.dir)
	a.keepApart(groups, root)
	for _, g := range groups {
		included = append(included, g...)
	}
	h := &home{file: p, dir: s.dir, vars: s.vars, included: included, services: root.get("services")}
	own := composeFile{p, root, s.vars}
	bases := a.extended(h)
	a.takeBack(own, before, bases)
	return slices.Concat(included, bases, []composeFile{own})
}

// namesAnother remembers a file that names another one, or a service of one: who may write it
// chooses what it says.
func (a *appReader) namesAnother(file string) {
	if a.naming == nil {
		a.naming = map[string]bool{}
	}
	a.naming[file] = true
}

// entriesOf are those of include; what is no list is refused by its type.
func entriesOf(n *node) []*node {
	if n == nil {
		return nil
	}
	return n.items
}

func (a *appReader) useOf(chain []string, at place, s ring.Sealed) {
	if s.From != ring.FromEnvFolder {
		a.secretPlace(at, strings.Join(chain, "."), s)
		return
	}
	if key := strings.TrimSuffix(strings.Join(chain, "."), ".*"); a.settings.Swarm && inClusterSpec(chain) {
		a.faults.add(ring.Unsupported, at, "write it out, or leave it out: a swarm takes no secret there", "%s has %s of the host: every manager could read it", key, s.Name)
	}
	u := openUse{name: s.Name, key: chain[0]}
	if chain[0] == "services" && len(chain) > 2 {
		u.service, u.key = chain[1], chain[2]
	}
	a.plainly[u] = true
}

const standsOpen = " and stands in the plan as it is"

// Open reports whether a value of the host's env folder stands in a as it is: a plan of it
// told to others may hold it.
func Open(a *ring.App) bool {
	return slices.ContainsFunc(a.Notes, func(note string) bool { return strings.HasSuffix(note, standsOpen) })
}

// plainUses notes the host's values that stand in the plan as they are.
func (a *appReader) plainUses() {
	seen := map[string]bool{}
	for u := range a.plainly {
		if !a.off[u.service] {
			seen[fmt.Sprintf("%s of the host's env is used in %s%s", u.name, u.key, standsOpen)] = true
		}
	}
	a.notes = append(a.notes, sortedKeys(seen)...)
}

// included unfolds the files of one entry of include: the first, and those that
// merge over it. whole is false where one of them cannot be read, which is told.
func (a *appReader) included(n *node, s scope) (out []composeFile, whole bool) {
	paths := n.words()
	if n.kind == mapping {
		paths = n.get("path").words()
	}
	if len(paths) == 0 || n.unexpanded() {
		return nil, false // refused by its type, or by the variable
	}
	var files []string
	for _, name := range paths {
		p, ok := a.inCommit(s.dir, name, n.place)
		if !ok || !a.mayInclude(p, n.place, s) {
			return nil, false
		}
		files = append(files, p)
	}
	inner := scope{dir: path.Dir(files[0])}
	if d := textOf(n.get("project_directory")); d != "" {
		ok := false
		if inner.dir, ok = a.projectDirectory(s.dir, d, n.get("project_directory").place); !ok {
			return nil, false
		}
	}
	inner.vars = a.includedVars(n, s, inner.dir)
	whole = true
	for _, p := range files {
		root := a.parsedAt(p, n.place, "included")
		if root == nil {
			whole = false
			continue
		}
		a.includes[p] = n.place
		inner.way = append(slices.Clip(s.way), include{p, n.place})
		out = append(out, a.unfold(p, root, inner, out)...)
	}
	return out, whole
}

// mayInclude refuses a circle, with each place on it, and a chain without end.
func (a *appReader) mayInclude(p string, at place, s scope) bool {
	if len(s.way) >= a.limits.Chain {
		a.faults.add(ring.TooLarge, at, "include fewer files in a row", "include goes deeper than %d files", a.limits.Chain)
		return false
	}
	for i, step := range s.way {
		if step.file != p {
			continue
		}
		var circle []string
		for _, on := range s.way[i+1:] {
			circle = append(circle, fmt.Sprintf("%s (%s:%d)", on.file, on.at.file, on.at.line))
		}
		circle = append(circle, fmt.Sprintf("%s (%s:%d)", p, at.file, at.line))
		a.faults.add(ring.BadValue, at, "remove one of these include", "%s includes itself by way of %s", p, strings.Join(circle, ", "))
		return false
	}
	if slices.ContainsFunc(a.mains, func(f composeFile) bool { return f.path == p }) {
		a.faults.add(ring.BadValue, at, "remove it", "%s is one of the app's own Compose files and cannot be included", p)
		return false
	}
	return true
}

func (a *appReader) projectDirectory(from, name string, at place) (string, bool) {
	dir, ok := a.inCommit(from, name, at)
	if !ok {
		return "", false
	}
	switch r := a.tree.real(dir); {
	case r.kind == symlink, r.kind == submodule, r.lost:
		a.faults.put(r.odd(at, "project_directory "+head(name)))
		return "", false
	case r.kind != folder:
		a.faults.add(ring.BadValue, at, "correct project_directory", "the commit holds no folder %s", dir)
		return "", false
	}
	return dir, true
}

// includedVars are those that an included file sees: its own env files, over
// which what the app says wins. /dev/null is Compose's word for none.
func (a *appReader) includedVars(n *node, s scope, dir string) *variables {
	v := newVariables(s.vars.all(), a.budget)
	v.unsure = s.vars.unsure
	named := n.get("env_file")
	if named.asksNothing() {
		a.readEnvFile(v, path.Join(dir, dotEnv), n.place, false)
		return v
	}
	for _, name := range named.words() {
		if name == "/dev/null" {
			continue
		}
		p, ok := a.inCommit(s.dir, name, named.place)
		v.unsure = v.unsure || !ok
		if ok && !a.readEnvFile(v, p, named.place, false) {
			v.unsure = true
			a.faults.add(ring.BadValue, named.place, "add the file, or correct its name", "the commit does not hold %s", p)
		}
	}
	return v
}

// parsedAt is a file that another one names; nil when it cannot be read, which is
// noted. Each further use of one costs as much as reading it again.
func (a *appReader) parsedAt(p string, at place, how string) *node {
	f := a.parsed[p]
	if f == nil {
		f = &parsedFile{}
		a.parsed[p] = f
		if n := a.limits.Included; len(a.parsed)-len(a.mains) > n {
			if len(a.parsed)-len(a.mains) == n+1 { // told once
				a.faults.add(ring.TooLarge, at, "include and extend fewer files", "the app includes and extends more than %d files", n)
			}
			return nil
		}
		body, ok, fault := a.tree.manifest(p, at)
		switch {
		case fault != nil:
			a.faults.put(fault)
		case !ok:
			a.faults.add(ring.BadValue, at, "add the file, or correct its name", "the commit does not hold %s, which is %s", p, how)
		case a.notHere(p, body, at) != nil:
			a.faults.put(a.notHere(p, body, at))
		default:
			if f.root, fault = parse(p, body, a.limits, &a.nodes, &a.faults); fault != nil {
				a.faults.put(fault)
			} else {
				a.sections(f.root)
			}
		}
	}
	if f.root == nil || f.used && !a.afford(f.root, at) {
		return nil
	}
	f.used = true
	return f.root
}

// afford takes the size of a copy from what the app's YAML may come to.
func (a *appReader) afford(n *node, at place) bool {
	if a.nodes -= n.size(a.nodes); a.nodes < 0 {
		a.faults.add(ring.TooLarge, at, "include or extend less", "what the app includes and extends has more than %d nodes", a.limits.Nodes)
		return false
	}
	return true
}

// resourceKinds are what an include brings.
var resourceKinds = []string{"services", "networks", "volumes", "configs", "secrets"}

// keepApart refuses what two included files, or one and the file that includes
// it, both declare, as Compose does. Two equal declarations are one: a shared
// network is often declared wherever it is used.
func (a *appReader) keepApart(groups [][]composeFile, root *node) {
	if len(groups) == 0 {
		return
	}
	own := []composeFile{{root: root}}
	for _, kind := range resourceKinds {
		first := map[string][]composeFile{}
		for _, g := range append([][]composeFile{own}, groups...) {
			for _, name := range declaredIn(g, kind) {
				earlier, twice := first[name]
				if !twice {
					first[name] = g
					continue
				}
				one, other := saidOf(earlier, kind, name), saidOf(g, kind, name)
				if reflect.DeepEqual(one.values, other.values) || kind != "services" && reflect.DeepEqual(merged(one.values), merged(other.values)) {
					undeclare(g, kind, name)
					continue
				}
				a.faults.add(ring.BadValue, other.at, "rename one of the two; to change what is included, list an override: include: [{path: [file, override]}]",
					"%s.%s is declared twice, here and at %s:%d", kind, head(name), one.at.file, one.at.line)
			}
		}
	}
}

func declaredIn(g []composeFile, kind string) []string {
	names := map[string]bool{}
	for _, f := range g {
		for _, p := range f.root.get(kind).mappingPairs() {
			names[p.key] = true
		}
	}
	return sortedKeys(names)
}

// declaration is what the files of a group say of one resource.
type declaration struct {
	values []any
	at     place
}

func saidOf(g []composeFile, kind, name string) (d declaration) {
	for _, f := range g {
		for _, p := range f.root.get(kind).mappingPairs() {
			if p.key != name {
				continue
			}
			v := p.val.value()
			if v == nil {
				v = map[string]any{}
			}
			d.values, d.at = append(d.values, v), p.place
		}
	}
	return d
}

// merged is what several files say of one resource that is no service, later ones on top.
func merged(values []any) any {
	var out any
	for _, v := range values {
		out = mergedInto(out, v)
	}
	return out
}

func mergedInto(under, over any) any {
	a, b := asMapping(under), asMapping(over)
	if a == nil || b == nil {
		return over
	}
	out := maps.Clone(a)
	for k, v := range b {
		out[k] = mergedInto(out[k], v)
	}
	return out
}

func asMapping(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func undeclare(g []composeFile, kind, name string) {
	for _, f := range g {
		if n := f.root.get(kind); n != nil {
			n.pairs = slices.DeleteFunc(slices.Clone(n.pairs), func(p pair) bool { return p.key == name })
		}
	}
}

// withoutIncluded drops the apps of folders below an app whose Compose file that
// app includes: they are parts of it, and would run twice. A folder beside it
// stays what it is, and the one that includes it is refused: who may write one
// app's folder must not take another app away.
func withoutIncluded(all []outcome, apps []candidate) []outcome {
	by := map[string][]int{}
	for i, o := range all {
		for p := range o.includes {
			by[p] = append(by[p], i)
		}
	}
	for i, c := range apps {
		if c.entry != nil || len(c.files) == 0 {
			continue
		}
		file := c.files[0]
		for _, owner := range by[file] {
			switch {
			case owner == i:
			case !below(c.path, all[owner].path):
				all[owner].faults.add(ring.BadValue, all[owner].includes[file],
					"include it from a folder above both, or list the apps in gitring.yaml, which makes it a part",
					"%s is the Compose file of app %s beside this one, which would run twice", file, all[i].name)
			case all[i].path != "":
				all[owner].app.Notes = append(all[owner].app.Notes, fmt.Sprintf("%s is included, so its folder is no app of its own", file))
				all[i].path = ""
			}
		}
	}
	return slices.DeleteFunc(all, func(o outcome) bool { return o.path == "" })
}

func below(dir, top string) bool { return top == "." || strings.HasPrefix(dir, top+"/") }
