package manifest

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

const gitringFile = "gitring.yaml"

// entry is one app of gitring.yaml.
type entry struct {
	place    place
	name     string
	path     string
	files    []string
	envFiles []written
	profiles []string
	after    []afterEntry
	targets  map[string]string
	noPrune  bool
	drift    string
	hold     *ring.Hold
	unsure   bool // a fault of its own may hide what it is called
	unsound  bool // a fault of its own may hide which files are read, and how
}

// written is a word with its place.
type written struct {
	text  string
	place place
}

type afterEntry struct {
	ring.AfterApp
	place place
}

// listedApps are the apps that gitring.yaml lists for this host; listed is
// false without that file. Every mistake in it is one of the whole commit: what
// an author meant to keep cannot be told from what was meant to go.
func (r *reader) listedApps() (apps []candidate, listed bool, _ *fault) {
	file := path.Join(r.settings.Path, gitringFile)
	body, ok, f := r.tree.manifest(file, place{})
	if f != nil {
		return nil, true, f
	}
	if !ok && r.settings.GitringYAML != nil {
		body, ok = r.settings.GitringYAML, true
	}
	if !ok {
		return nil, false, r.misnamed()
	}
	if f := r.notHere(file, body, place{}); f != nil {
		return nil, true, f
	}
	nodes := r.limits.Nodes
	d := &decoder{}
	root, f := parse(file, body, r.limits, &nodes, &d.faults)
	if f != nil {
		return nil, true, f
	}
	legible := d.faults.none()
	for _, at := range tagsIn(root, true) {
		d.faults.put(&fault{code: ring.Yaml, place: at, says: "!reset and !override mean nothing in " + gitringFile, hint: "write the value without a tag"})
	}
	search, searched := d.searchOf(root)
	entries := d.gitringYAML(root, searched)
	r.checkEntries(entries, &d.faults)
	if !d.faults.none() {
		if r.mistakes = d.faults; legible {
			r.sound = r.soundOf(entries)
		}
		all := d.faults.refusal("", "")
		return nil, true, &fault{code: all.Code, place: place{file: all.File, line: all.Line}, says: all.Says, hint: all.Hint}
	}
	if root.get("apps") == nil {
		r.search = search
		return nil, false, nil
	}
	r.entries = entries
	return r.candidates(entries), true, nil
}

// misnamed refuses the file under the name that people also try: leaving it
// unread would deploy something else than what it says.
func (r *reader) misnamed() *fault {
	name := path.Join(r.settings.Path, "gitring.yml")
	if kind, _ := r.tree.look(name); kind == missing {
		return nil
	}
	return &fault{code: ring.BadName, place: place{file: name}, says: "gitring reads gitring.yaml, not gitring.yml", hint: "git mv gitring.yml gitring.yaml"}
}

var entryKeys = []string{"name", "path", "files", "env_files", "profiles", "after", "targets", "prune", "hold", "drift"}

// gitringYAML are the apps that it lists. Where searched is true it says how folders are
// searched instead.
func (d *decoder) gitringYAML(root *node, searched bool) []entry {
	known := []string{"version", "apps", "depth", "exclude"}
	d.keys(root, "", known)
	if v := root.get("version"); v == nil && !mistyped(root, "version", known) || v != nil && v.text != "1" {
		at := root.place
		if v != nil {
			at = v.place
		}
		d.bad(at, "write version: 1", "version of gitring.yaml is not 1")
	}
	apps := root.get("apps")
	if apps == nil {
		if !searched && !mistyped(root, "apps", known) && !mistyped(root, "depth", known) && !mistyped(root, "exclude", known) {
			d.bad(root.place, "list the apps: apps: [{path: web}]; or say depth: or exclude:, by which folders are searched", "gitring.yaml lists no apps")
		}
		return nil
	}
	if searched {
		d.bad(apps.place, "remove apps, or depth and exclude", "gitring.yaml lists apps, and says how folders are searched for them")
	}
	var out []entry
	for _, n := range d.list(apps, "apps") {
		out = append(out, d.entry(n))
	}
	return out
}

func (d *decoder) entry(n *node) (e entry) {
	before := len(d.faults.list)
	defer func() { e.unsure = len(d.faults.list) > before }()
	e = entry{place: n.place}
	if !d.mapping(n, "apps") {
		e.unsound = true
		return e
	}
	d.keys(n, "apps", entryKeys)
	e.name = d.text(n.get("name"), "name")
	e.path = d.text(n.get("path"), "path")
	if p := n.get("path"); e.path == "" && (p == nil || p.kind == scalar) && !mistyped(n, "path", entryKeys) {
		d.bad(n.place, "add path: the app's folder, or . for the source's path", "an app of gitring.yaml has no path")
	}
	for _, f := range d.texts(n.get("files"), "files") {
		e.files = append(e.files, f.text)
	}
	e.envFiles = d.texts(n.get("env_files"), "env_files")
	for _, p := range d.texts(n.get("profiles"), "profiles") {
		e.profiles = append(e.profiles, p.text)
	}
	e.targets = d.textMap(n.get("targets"), "targets")
	e.unsound = len(d.faults.list) > before
	for _, a := range d.list(n.get("after"), "after") {
		e.after = append(e.after, d.after(a))
	}
	e.noPrune = !d.boolean(n.get("prune"), "prune", true)
	e.hold = d.hold(n.get("hold"))
	if v := n.get("drift"); !v.null() {
		e.drift = d.oneOf(v, "drift", ring.DriftHeal, ring.DriftReport)
	}
	return e
}

func (d *decoder) after(n *node) afterEntry {
	a := afterEntry{place: n.place, AfterApp: ring.AfterApp{Until: ring.ReadyDep}}
	if n.kind == scalar {
		a.App = d.text(n, "after")
		return a
	}
	if !d.mapping(n, "after") {
		return a
	}
	d.keys(n, "after", []string{"app", "until"})
	a.App = d.text(n.get("app"), "app")
	if u := n.get("until"); !u.null() {
		a.Until = ring.Until(d.oneOf(u, "until", string(ring.Started), string(ring.ReadyDep), string(ring.Completed)))
	}
	return a
}

func (d *decoder) hold(n *node) *ring.Hold {
	if n.null() || !d.mapping(n, "hold") {
		return nil
	}
	known := []string{"reason", "until"}
	d.keys(n, "hold", known)
	h := &ring.Hold{Reason: d.text(n.get("reason"), "reason")}
	if r := n.get("reason"); h.Reason == "" && (r == nil || r.kind == scalar) && !mistyped(n, "reason", known) {
		d.bad(n.place, "say why: hold: {reason: …}", "a hold has no reason")
	}
	if u := n.get("until"); !u.null() {
		h.Until = d.moment(u)
	}
	return h
}

// moment is a date (its first second in UTC) or a time of RFC 3339.
func (d *decoder) moment(n *node) time.Time {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, n.text); err == nil {
			return t.UTC()
		}
	}
	d.bad(n.place, "write a date such as 2027-01-31, or a time such as 2027-01-31T18:00:00Z", "until: %q is no date", head(n.text))
	return time.Time{}
}

// checkEntries looks at what entries say of each other.
func (r *reader) checkEntries(entries []entry, fs *faults) {
	names := map[string]place{}
	for _, e := range entries {
		if !r.inside(path.Join(r.settings.Path, e.path)) || path.IsAbs(e.path) {
			fs.put(outside(e.path, e.place))
		}
		if e.name == "" {
			continue
		}
		if !appName.MatchString(e.name) {
			fs.put(badName(e.name, e.place))
		}
		if first, twice := names[e.name]; twice {
			fs.add(ring.AppTaken, e.place, "give one of the two another name", "app %s is listed twice, first on line %d", e.name, first.line)
		}
		names[e.name] = e.place
	}
	for _, e := range entries {
		r.checkAfter(e, entries, fs)
	}
	r.circular(entries, fs)
}

// title is what an entry is called before its Compose file is read; after
// means these.
func (r *reader) title(e entry) string {
	if e.name != "" {
		return e.name
	}
	return r.folderName(path.Join(r.settings.Path, e.path))
}

func (r *reader) checkAfter(e entry, entries []entry, fs *faults) {
	var known []string
	unsure := false
	for _, o := range entries {
		known = append(known, r.title(o))
		unsure = unsure || o.unsure
	}
	for _, a := range e.after {
		if a.App == "" {
			continue // told by its type
		}
		if a.App == r.title(e) {
			fs.add(ring.BadValue, a.place, "remove it", "app %s comes after itself", a.App)
			continue
		}
		if !contains(known, a.App) && !unsure {
			fs.add(ring.BadValue, a.place, didYouMean(a.App, known), "after: there is no app %q in gitring.yaml", head(a.App))
		}
	}
}

// circular refuses apps that wait for each other.
func (r *reader) circular(entries []entry, fs *faults) {
	next := map[string][]afterEntry{}
	for _, e := range entries {
		next[r.title(e)] = e.after
	}
	state := map[string]int{} // 1 on the way, 2 done
	var walk func(name string, way []string) bool
	walk = func(name string, way []string) bool {
		way = append(way, name)
		state[name] = 1
		for _, a := range next[name] {
			if a.App == name {
				continue // told before
			}
			if state[a.App] == 1 {
				fs.add(ring.BadValue, a.place, "remove one of these after", "apps wait for each other: %s", strings.Join(append(way, a.App), " after "))
				return true
			}
			if state[a.App] == 0 && walk(a.App, way) {
				return true
			}
		}
		state[name] = 2
		return false
	}
	for _, e := range entries {
		if t := r.title(e); state[t] == 0 && walk(t, nil) {
			return
		}
	}
}

// candidates are the entries for this host, with their files.
func (r *reader) candidates(entries []entry) []candidate {
	here := map[string]bool{}
	for _, e := range entries {
		here[r.title(e)] = matches(e.targets, r.settings.Facts)
	}
	var out []candidate
	for i := range entries {
		e := &entries[i]
		if !matches(e.targets, r.settings.Facts) {
			r.elsewhere = append(r.elsewhere, path.Join(r.settings.Path, e.path))
			continue
		}
		c := r.listedApp(e)
		var after []afterEntry
		for _, a := range e.after {
			if here[a.App] {
				after = append(after, a)
				continue
			}
			c.notes = append(c.notes, fmt.Sprintf("does not wait for app %s, which is not for this host", a.App))
		}
		e.after = after
		out = append(out, c)
	}
	return out
}

func matches(targets, facts map[string]string) bool {
	for k, want := range targets {
		if got, ok := facts[k]; !ok || got != want {
			return false
		}
	}
	return true
}

// listedApp finds the files of an entry; a folder that is not there is a fault
// of that app only.
func (r *reader) listedApp(e *entry) candidate {
	c := candidate{name: e.name, path: path.Join(r.settings.Path, e.path), entry: e}
	c.unnamed = r.folderName(c.path)
	at := r.tree.real(c.path)
	switch {
	case at.kind == symlink, at.kind == submodule, at.lost:
		c.faults.put(at.odd(e.place, "path "+e.path))
		return c
	case at.kind != folder:
		c.faults.add(ring.BadValue, e.place, "correct path, or remove the app from gitring.yaml", "path: the commit holds no folder %s", c.path)
		return c
	}
	if len(e.files) == 0 {
		var names []string
		names, c.notes = composeFiles(r.tree.list(at.path))
		if len(names) == 0 {
			c.without = &fault{code: ring.BadValue, place: e.place, says: fmt.Sprintf("folder %s holds no Compose file", c.path), hint: "add " + composeNames[0] + ", or say files:"}
		}
		for _, n := range names {
			c.files = append(c.files, path.Join(c.path, n))
		}
		return c
	}
	for _, f := range e.files {
		p := path.Join(c.path, f)
		if path.IsAbs(f) || !r.inside(p) {
			c.faults.put(outside(f, e.place))
			continue
		}
		c.files = append(c.files, p)
	}
	return c
}
