package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// fleetFile lies at the root of the repository, whatever the source's path: it is about
// all hosts that follow it.
const fleetFile = ".gitring/fleet.yaml"

// fleet is what the file of hosts says: which there are, and who takes a commit first.
type fleet struct {
	hosts map[string]map[string]string // facts by host
	waves []waveEntry
	place place // of waves
}

// waveEntry is one wave as the file has it.
type waveEntry struct {
	place    place
	patterns []written
	soak     time.Duration
}

// fleetHost is what a host is called in labels and commit statuses.
var fleetHost = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// readFleet reads the file of hosts, where the commit has one. Every mistake in it is one of
// the whole commit: a host that misread it would not wait.
func (r *reader) readFleet(plan *ring.Plan) *fault {
	body, ok, f := r.tree.manifest(fleetFile, place{})
	if f != nil {
		return f
	}
	if !ok {
		return r.misnamedFleet()
	}
	if f := r.notHere(fleetFile, body, place{}); f != nil {
		return f
	}
	nodes := r.limits.Nodes
	d := &decoder{}
	root, f := parse(fleetFile, body, r.limits, &nodes, &d.faults)
	if f != nil {
		return f
	}
	for _, at := range tagsIn(root, true) {
		d.faults.put(&fault{code: ring.Yaml, place: at, says: "!reset and !override mean nothing in " + fleetFile, hint: "write the value without a tag"})
	}
	list := d.fleet(root)
	if r.settings.NoStatus && len(list.waves) > 0 {
		d.faults.add(ring.Unsupported, list.place, fmt.Sprintf("add status: to source %s in the configuration of this host, or take waves out of %s", r.settings.Source, fleetFile),
			"waves need status: of source %s: hosts hear of each other by the forge alone", r.settings.Source)
	}
	if !d.faults.none() {
		r.mistakes, r.sound = d.faults, nil
		if r.listed {
			r.sound = r.entries
		}
		all := d.faults.refusal("", "")
		return &fault{code: all.Code, place: place{file: all.File, line: all.Line}, says: all.Says, hint: all.Hint}
	}
	r.fleet = list
	plan.Waves, plan.Awaited = list.before(r.settings.Host), list.awaits(r.settings.Host)
	return nil
}

// misnamedFleet refuses the file under the name that people also try: unread, it would have
// no host wait.
func (r *reader) misnamedFleet() *fault {
	const name = ".gitring/fleet.yml"
	if kind, _ := r.tree.look(name); kind == missing {
		return nil
	}
	return &fault{code: ring.BadName, place: place{file: name}, says: "gitring reads " + fleetFile + ", not " + name, hint: "git mv " + name + " " + fleetFile}
}

func (d *decoder) fleet(root *node) *fleet {
	out := &fleet{hosts: map[string]map[string]string{}}
	known := []string{"hosts", "waves"}
	d.keys(root, "", known)
	if hosts := root.get("hosts"); !hosts.null() && d.mapping(hosts, "hosts") {
		for _, p := range hosts.pairs {
			if !fleetHost.MatchString(p.key) {
				d.bad(p.place, "write the host's name as its configuration has it: lower case, digits and ._-", "hosts: %q is no name of a host", head(p.key))
			}
			out.hosts[p.key] = d.fleetHost(p)
		}
	}
	waves := root.get("waves")
	if waves == nil {
		return out
	}
	for _, p := range root.pairs {
		if p.key == "waves" {
			out.place = p.place
		}
	}
	for _, n := range d.list(waves, "waves") {
		if d.mapping(n, "waves") {
			out.waves = append(out.waves, d.wave(n))
		}
	}
	d.knownHosts(out)
	return out
}

// knownHosts refuses waves that name a host which the file does not have: a canary that is
// misspelt would let a commit through to all.
func (d *decoder) knownHosts(f *fleet) {
	for _, w := range f.waves {
		for _, p := range w.patterns {
			if _, known := f.hosts[p.text]; !known && !strings.Contains(p.text, "*") {
				d.bad(p.place, "add it to hosts: of "+fleetFile+", or write the name as it stands there", "waves: %q is no host of the file, so nobody would wait for it", head(p.text))
			}
		}
	}
}

func (d *decoder) fleetHost(p pair) map[string]string {
	if p.val.null() || !d.mapping(p.val, "hosts."+head(p.key)) {
		return nil
	}
	d.keys(p.val, "hosts", []string{"at", "facts"})
	at := p.val.get("at")
	if says := d.text(at, "at"); says != "" {
		if _, err := ring.ParseHostAddress(says); err != nil {
			d.bad(at.place, "write it as "+ring.AddressScheme+"edge-1, or leave it out where ssh finds the host by its name", "hosts.%s.at: %q is no address of a host: %v", head(p.key), head(says), err)
		}
	}
	return d.textMap(p.val.get("facts"), "facts")
}

func (d *decoder) wave(n *node) waveEntry {
	known := []string{"hosts", "soak"}
	d.keys(n, "waves", known)
	w := waveEntry{place: n.place, patterns: d.texts(n.get("hosts"), "hosts")}
	if hosts := n.get("hosts"); len(w.patterns) == 0 && (hosts.null() || hosts.kind == list) && !mistyped(n, "hosts", known) {
		d.bad(n.place, `add hosts: such as [canary-1], or ["edge-*"]`, "a wave names no hosts")
	}
	if soak := n.get("soak"); !soak.null() {
		w.soak = d.duration(soak, "soak", 0)
	}
	return w
}

// before are the waves that a host waits for, each with the hosts that no wave before it
// names. A host in no wave comes after all.
func (f *fleet) before(host string) []ring.Wave {
	var out []ring.Wave
	taken := map[string]bool{}
	for _, w := range f.waves {
		wave := ring.Wave{Soak: w.soak}
		for _, name := range f.named(w) {
			if !taken[name] {
				wave.Hosts = append(wave.Hosts, name)
			}
			taken[name] = true
		}
		if taken[host] {
			return out
		}
		if len(wave.Hosts) > 0 {
			out = append(out, wave)
		}
	}
	return out
}

// awaits reports whether a wave names a host of the file: those that come later wait for it.
func (f *fleet) awaits(host string) bool {
	return slices.ContainsFunc(f.waves, func(w waveEntry) bool { return slices.Contains(f.named(w), host) })
}

// named are the hosts of the file that a wave names, sorted.
func (f *fleet) named(w waveEntry) []string {
	var out []string
	for _, name := range sortedKeys(f.hosts) {
		if slices.ContainsFunc(w.patterns, func(p written) bool { return namesHost(p.text, name) }) {
			out = append(out, name)
		}
	}
	return out
}

// namesHost reports whether a pattern names a host; * is any run of characters.
func namesHost(pattern, name string) bool {
	head, tail, star := strings.Cut(pattern, "*")
	rest, begins := strings.CutPrefix(name, head)
	switch {
	case !star:
		return pattern == name
	case !begins:
		return false
	}
	for i := range len(rest) + 1 {
		if namesHost(tail, rest[i:]) {
			return true
		}
	}
	return false
}

// doubts are of what matches no host of the file: an app that would run nowhere, and a wave
// that nobody waits for. Facts of hosts may stand in their configurations alone, so a file
// without any says nothing of targets.
func (r *reader) doubts() (out []string) {
	doubt := func(at place, says string, args ...any) {
		out = append(out, fmt.Sprintf("%s:%d: %s", at.file, at.line, fmt.Sprintf(says, args...)))
	}
	f := r.fleet
	if f == nil {
		return nil
	}
	for _, w := range f.waves {
		for _, p := range w.patterns {
			if !slices.ContainsFunc(sortedKeys(f.hosts), func(name string) bool { return namesHost(p.text, name) }) {
				doubt(p.place, "waves: %q names no host of the file, so nobody waits for it", head(p.text))
			}
		}
	}
	knowsFacts := false
	for _, facts := range f.hosts {
		knowsFacts = knowsFacts || len(facts) > 0
	}
	for _, e := range r.entries {
		somewhere := !knowsFacts || len(e.targets) == 0
		for _, facts := range f.hosts {
			somewhere = somewhere || matches(e.targets, facts)
		}
		if !somewhere {
			doubt(e.place, "targets of app %s match no host of %s: it runs nowhere", r.title(e), fleetFile)
		}
	}
	return out
}
