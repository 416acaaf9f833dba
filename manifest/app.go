package manifest

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// appReader reads one app.
type appReader struct {
	*reader
	from   candidate
	name   string
	nameAt place // where the name is said; the first file where nothing says it
	// nameLost says that the name is not known for a fault, and name a stand-in.
	nameLost bool
	// namedBy is the name: of the files as written.
	namedBy string
	// base is where relative paths of the app's own files start: its folder, but
	// for COMPOSE_FILE, which means the folder of the first file it names.
	base   string
	mains  []composeFile // the app's own files, as they are
	files  []composeFile // with all they include and extend, earlier first, variables replaced
	vars   *variables
	host   *hostEnv
	shared *hostEnv // of all apps of the source
	// sharedTorn reports whether files of it could not be read whole.
	sharedTorn bool
	budget     *budget
	nodes      int // that the app's YAML may still come to
	parsed     map[string]*parsedFile
	homes      map[homeKey]*home
	// off are the services that no active profile asks for.
	off map[string]bool
	// plainly are the uses of the host's values that stand in the plan as they are.
	plainly  map[openUse]bool
	includes map[string]place       // the files that it includes
	naming   map[string]bool        // the files that name another file, or a service of one
	plain    map[ring.Sealed]string // the host's values
	apart    map[string]bool        // sealed texts of commands that are split once they are opened
	byName   map[string]bool        // services that join another by the name of its container
	hidden   map[hiddenValue]bool   // the host's values, which no refusal tells
	circled  bool                   // that services extend each other was told
	faults   faults
	notes    []string
	asks     []string // its references to providers
	asksMore bool     // it has more of them than are read
	awaits   []string // why it waits for values of providers

	// What is known of what could not be read; see mend.
	asWritten []*node // the files with all that they hold, variables replaced
	wounds    wounds
	torn      bool            // a file of the app is missing from what is read
	loose     map[string]bool // services whose base is
}

// openUse is a variable of the host's env folder under a key of a service; of
// "" where it is no service's.
type openUse struct{ name, service, key string }

// readApp reads one app whole: it goes on after a fault as far as it can, so
// that one commit can mend all of it.
func (r *reader) readApp(c candidate) outcome {
	a := &appReader{
		reader: r, from: c, base: c.path, faults: c.faults, notes: slices.Clone(c.notes), nodes: r.limits.Nodes,
		off: map[string]bool{}, plainly: map[openUse]bool{}, parsed: map[string]*parsedFile{}, homes: map[homeKey]*home{}, includes: map[string]place{}, hidden: map[hiddenValue]bool{},
		wounds: wounds{}, loose: map[string]bool{}, byName: map[string]bool{}, apart: map[string]bool{}, plain: map[ring.Sealed]string{},
	}
	a.budget = &budget{left: r.limits.Expanded, text: r.limits.Text}
	a.name, a.nameAt, a.nameLost = or2(c.name, c.unnamed), place{file: c.path}, c.nameLost
	var app ring.App
	a.unreadForSize()
	a.torn = !a.faults.none() // a file that is named and cannot be read
	if !a.torn || len(a.from.files) > 0 {
		app = a.read()
	}
	r.nodes += r.limits.Nodes - a.nodes
	a.whole()
	a.onceASubmodule()
	a.nameHostsEnv()
	a.hide()
	o := outcome{app: app, name: a.name, folder: c.unnamed, path: c.path, at: a.nameAt, faults: a.faults, includes: a.includes, asks: a.asks, awaits: slices.Compact(slices.Sorted(slices.Values(a.awaits))), hidden: a.hiddenHere()}
	if !a.faults.none() {
		o.lost = a.lostOwn()
		return o
	}
	o.project = a.project()
	return o
}

// nodesOfApps is how many apps with the most YAML nodes that one app may have are read of
// one commit: reading a node costs microseconds, so this is minutes of a processor at most.
const nodesOfApps = 200

// unreadForSize refuses an app that comes when the apps before it used up what the YAML
// of one commit may cost. Nothing of it is read.
func (a *appReader) unreadForSize() {
	if most := nodesOfApps * a.limits.Nodes; a.reader.nodes > most && len(a.from.files) > 0 {
		a.faults.add(ring.TooLarge, place{file: a.from.files[0]}, moreOfCommit("content.yaml_nodes"),
			"the YAML of the apps before this one has more than %d nodes, aliases followed", most)
		a.from.files = nil
	}
}

// project is how Compose is told to read the app as it was read.
func (a *appReader) project() Project {
	p := Project{Dir: wayTo(a.from.path, a.base), Profiles: a.profiles()}
	for _, f := range a.from.files {
		p.Files = append(p.Files, wayTo(a.from.path, f))
	}
	for _, w := range a.envFiles() {
		p.EnvFiles = append(p.EnvFiles, w.text)
	}
	return p
}

func or2(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (a *appReader) read() ring.App {
	a.checkSubmodules(a.tree.real(a.from.path).path)
	a.shared = a.hostEnvOf(SharedEnv(a.settings.Source), a.settings.Shared)
	ahead := a.lookAhead()
	a.composeFileOf(ahead)
	broken := a.readFiles()
	a.decideName(broken, ahead)
	a.openHost()
	a.vars = a.variables()
	a.renameByHost()
	if len(a.mains) == 0 || a.faults.beyond() {
		return ring.App{}
	}
	a.vars.own("COMPOSE_PROJECT_NAME", a.name)
	if a.nameLost {
		a.vars.lose("COMPOSE_PROJECT_NAME", a.nameAt)
	}
	for _, f := range a.mains {
		a.files = append(a.files, a.unfold(f.path, f.root, scope{dir: a.base, vars: a.vars}, a.files)...)
	}
	if a.faults.beyond() {
		return ring.App{}
	}
	a.joinOwnContainers()
	for _, f := range a.files {
		a.asWritten = append(a.asWritten, f.root)
	}
	a.mend()
	a.checkKeys()
	if a.faults.beyond() {
		return ring.App{}
	}
	a.mend()
	if len(declaredIn(a.files, "services")) == 0 {
		return ring.App{}
	}
	project := a.understood()
	if project == nil {
		return ring.App{}
	}
	a.plainUses()
	a.noteLinks()
	return a.build(project)
}

// checkSubmodules refuses a submodule below the app. Git writes .gitmodules for
// each; without that file only the app's own folder, which is read anyway, is
// looked at, and a large repository is not listed for nothing.
func (a *appReader) checkSubmodules(dir string) {
	deep := a.tree.entry(".", ".gitmodules") != nil
	for _, e := range a.tree.list(dir) {
		p := path.Join(dir, e.Name())
		switch kindOf(e) {
		case submodule:
			a.faults.put(odd(submodule, p, place{file: p}, "below app "+a.name))
		case folder:
			if deep {
				a.checkSubmodules(p)
			}
		}
	}
}

// onceASubmodule leaves out what is refused for a submodule that is told of by itself.
func (a *appReader) onceASubmodule() {
	var below []string
	for _, f := range a.faults.list {
		if f.code == ring.Submodule && f.line == 0 {
			below = append(below, ": "+f.file+" is a submodule")
		}
	}
	a.faults.list = slices.DeleteFunc(a.faults.list, func(f fault) bool {
		return f.code == ring.Submodule && f.line > 0 && slices.ContainsFunc(below, func(end string) bool { return strings.HasSuffix(f.says, end) })
	})
}

// nameHostsEnv puts the files of the host into hints that mean them.
func (a *appReader) nameHostsEnv() {
	if a.host == nil || a.nameLost {
		return
	}
	places := a.host.where(dotEnv) + " on the host, or " + a.shared.where(dotEnv) + " for all apps"
	for i := range a.faults.list {
		f := &a.faults.list[i]
		f.hint = strings.Replace(f.hint, hostsEnv, places, 1)
		if f.variable != "" {
			f.answers = [2]string{a.host.path(dotEnv), a.shared.path(dotEnv)}
		}
	}
}

// nameLine finds the name in a file that is no YAML: an app in force must be
// found again under its name even while its file is broken.
var nameLine = regexp.MustCompile(`(?m)^name:[ \t]*["']?([a-z0-9][a-z0-9_-]{0,62})["']?[ \t]*(?:#.*)?\r?$`)

// readFiles parses the Compose files; broken is the name by the last file that
// could not be parsed, "" when there is none.
func (a *appReader) readFiles() (broken string) {
	for _, p := range a.from.files {
		at := a.from.filesAt
		if e := a.from.entry; e != nil && len(e.files) > 0 {
			at = e.place
		}
		body, ok, f := a.tree.manifest(p, at)
		if f == nil && !ok {
			hint := "add the file, or correct files: in gitring.yaml"
			if a.from.filesAt.file != "" {
				hint = "add the file, or correct COMPOSE_FILE"
			}
			f = &fault{code: ring.BadValue, place: at, says: "the commit does not hold " + p, hint: hint}
		}
		if f == nil {
			f = a.notHere(p, body, place{})
		}
		var root *node
		if f == nil {
			root, f = parse(p, body, a.limits, &a.nodes, &a.faults)
		}
		if f != nil {
			a.faults.put(f)
			a.torn = true
			if m := nameLine.FindSubmatch(body); m != nil {
				broken = string(m[1])
			}
			continue
		}
		a.sections(root)
		a.parsed[p] = &parsedFile{root: root}
		a.mains = append(a.mains, composeFile{path: p, root: root})
	}
	return broken
}

// sections gives a file's sections that have a letter wrong the name that was meant,
// and tells of it: a file of which nothing else could be read.
func (a *appReader) sections(root *node) {
	for i, p := range root.pairs {
		meant := ring.Nearest(p.key, sortedKeys(composeShape().known))
		if _, known := composeShape().known[p.key]; known || strings.HasPrefix(p.key, "x-") || !contains(resourceKinds, meant) || root.get(meant) != nil {
			continue
		}
		p.place.of = nil // it is read on
		a.faults.add(ring.UnknownKey, p.place, "did you mean "+meant+"?", "unknown key %s", head(p.key))
		root.pairs[i].key, root.pairs[i].place = meant, p.place
	}
}

// checkKeys refuses what Compose does not know and what gitring does not carry
// out or may not.
func (a *appReader) checkKeys() {
	a.profilesOff()
	ports := 0
	for i, f := range a.files {
		see := func(chain []string, pattern string, key pair, fit *node) bool {
			if a.disregarded(chain, i) {
				return true
			}
			k := &keyCheck{app: a.name, chain: slices.Clone(chain), key: key, fit: fit, fs: &a.faults, ports: &ports, limit: a.limits, read: a.reader, root: a.from.path, note: a.noted, image: a.imageOf}
			return k.judge(pattern)
		}
		composeShape().walk(f.root, nil, "", see, &a.faults)
	}
	a.wound()
	a.obsolete()
	a.checkServices()
}

// imageOf is the image that the app's files say last of a service.
func (a *appReader) imageOf(service string) string {
	for _, f := range slices.Backward(a.files) {
		if n := f.root.get("services").get(service).get("image"); n != nil && !n.null() {
			return n.text
		}
	}
	return ""
}

// obsolete notes a version: once for a file, however often it is read.
func (a *appReader) obsolete() {
	seen := map[string]bool{}
	for _, f := range a.files {
		if f.root.get("version") != nil && !seen[f.path] {
			a.note("%s: version is obsolete and means nothing", f.path)
			seen[f.path] = true
		}
	}
}

func (a *appReader) checkServices() {
	names := map[string]bool{}
	for _, f := range a.files {
		for _, p := range f.root.get("services").mappingPairs() {
			names[p.key] = true
		}
	}
	if len(names) > a.limits.Services {
		a.faults.add(ring.TooLarge, a.place("services"), "split the app", "the app has more than %d services", a.limits.Services)
	}
	unknown := slices.ContainsFunc(a.asWritten, func(root *node) bool { return slices.ContainsFunc(root.pairs, a.wounds.pair) })
	if len(names) == 0 && !unknown && !a.lost("services") {
		a.faults.add(ring.BadValue, a.place("services"), "declare one under services:", "the app declares no service")
	}
}

// disregarded: what belongs to a service that is off asks nothing of the host,
// and a single value that a later file replaces is not asked for.
func (a *appReader) disregarded(chain []string, file int) bool {
	if len(chain) > 1 && chain[0] == "services" && a.off[chain[1]] {
		return true
	}
	for _, later := range a.asWritten[file+1:] {
		if n, took, _ := later.at(chain); took == len(chain) && n.kind == scalar && !n.null() {
			return true
		}
	}
	return false
}

// profilesOff finds the services that have profiles, none of which is active.
func (a *appReader) profilesOff() {
	active := a.profiles()
	profiles := map[string][]string{}
	for _, f := range a.files {
		for _, p := range f.root.get("services").mappingPairs() {
			profiles[p.key] = append(profiles[p.key], p.val.get("profiles").words()...)
		}
	}
	for _, name := range sortedKeys(profiles) {
		of := profiles[name]
		if len(of) == 0 || contains(active, "*") {
			continue
		}
		if !slices.ContainsFunc(of, func(p string) bool { return contains(active, p) }) {
			a.off[name] = true
			a.note("%s: not started, no profile of %s is active", name, strings.Join(of, ", "))
		}
	}
}

func (n *node) mappingPairs() []pair {
	if n == nil {
		return nil
	}
	return n.pairs
}

// place is where the app says what chain names; the nearest key above it when
// it says nothing of it. The later file counts, as it does in a merge.
func (a *appReader) place(chain ...string) place {
	best, deepest := place{file: a.from.files[0], line: 1}, 0
	for _, f := range a.files {
		if _, took, at := f.root.at(chain); took > 0 && took >= deepest {
			best, deepest = at, took
		}
	}
	return best
}

// says tells whether a file of the app holds the key that chain names.
func (a *appReader) says(chain ...string) bool {
	for _, f := range a.files {
		if n, took, _ := f.root.at(chain); took == len(chain) && !n.null() {
			return true
		}
	}
	return false
}
