package manifest

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// reloadWords is x-gitring reload of one service, as written.
type reloadWords struct {
	place  place
	paths  []reloadPath
	signal string
	exec   []string
	unsure bool // a key that is not known may be the one that is missing
	// live is, by the source of a live mount, the hash of its content.
	live map[string]string
}

// reloadPath is one entry of paths.
type reloadPath struct {
	written string
	path    string // inside the commit
	place   place
	used    bool // some mount has it
}

var reloadKeys = []string{"paths", "signal", "exec"}

// reload reads the block; a later file's signal takes the place of an earlier
// one's exec, and the other way round.
func (d *decoder) reload(n *node, r *reloadWords, root string) {
	r.place = n.place
	d.keys(n, "reload", reloadKeys)
	r.unsure = slices.ContainsFunc(n.pairs, func(p pair) bool { return !contains(reloadKeys, p.key) })
	if p := n.get("paths"); !p.null() {
		r.paths = nil
		for _, w := range d.texts(p, "paths") {
			if path.IsAbs(w.text) {
				d.bad(w.place, "write the path relative to the Compose file", "reload paths: %s is not relative", head(w.text))
				continue
			}
			r.paths = append(r.paths, reloadPath{written: w.text, path: path.Join(root, w.text), place: w.place})
		}
	}
	signal, exec := n.get("signal"), n.get("exec")
	if !signal.null() && !exec.null() {
		d.bad(n.place, "keep one of them", "reload has a signal and an exec")
		return
	}
	if !signal.null() {
		r.signal, r.exec = d.signal(signal), nil
	}
	if !exec.null() {
		r.signal, r.exec = "", d.command(exec)
	}
}

// reloadSignal are the signals that a program may take for "read your files
// again"; a number would read differently on another machine.
var reloadSignal = regexp.MustCompile(`^SIG(HUP|USR1|USR2|ALRM|VTALRM|WINCH|URG|IO|POLL|CONT|PIPE|PROF|PWR|INT|QUIT|TERM|RTMIN(\+([1-9]|1[0-5]))?|RTMAX(-([1-9]|1[0-4]))?)$`)

func (d *decoder) signal(n *node) string {
	text := d.text(n, "signal")
	s := signalName(text)
	if n.kind == scalar && !reloadSignal.MatchString(s) {
		d.bad(n.place, "write the signal that the program reloads at, such as SIGHUP or SIGUSR1", "%q is no signal to reload at", head(text))
	}
	return s
}

func signalName(s string) string {
	s = strings.ToUpper(s)
	if s == "" || strings.HasPrefix(s, "SIG") {
		return s
	}
	return "SIG" + s
}

// command is an argv, or a line for the container's shell, as a check's.
func (d *decoder) command(n *node) []string {
	before := len(d.faults.list)
	out := d.exec(n)
	for i := before; i < len(d.faults.list); i++ {
		d.faults.list[i].says = strings.Replace(d.faults.list[i].says, "an exec check runs nothing", "the reload's exec runs nothing", 1)
	}
	return out
}

// covers says which paths of reload are in, above or below p, and whether all of p is
// reloaded: then none of its files is part of the version.
func (r *reloadWords) covers(p string) (some, all bool) {
	if r == nil {
		return false, false
	}
	for i := range r.paths {
		switch at := &r.paths[i]; {
		case under(p, at.path):
			at.used, some, all = true, true, true
		case under(at.path, p):
			some = true
		}
	}
	return some, all
}

// under reports whether p is dir or below it.
func under(p, dir string) bool {
	return dir == "." || p == dir || strings.HasPrefix(p, dir+"/")
}

// live makes the mount of a folder of the commit one whose content is swapped
// in place, where reload says so.
func (r *pathMount) live(h held) (m ring.Mount, is, ok bool) {
	words := r.extras[r.service].reload
	some, all := words.covers(r.path)
	if !some {
		return m, false, false
	}
	if h.file != "" {
		dir := asSource(path.Dir(path.Clean(r.source)))
		r.bad(r.at, "mount the folder it is in (say "+dir+":"+path.Dir(r.mount.Target)+") and keep "+r.source+" in reload paths",
			"services.%s mounts the single file %s, which is pinned when the instance is created: a reload would never reach it", r.service, head(r.source))
		return m, true, false
	}
	rest, missing := r.rest(words, h, all)
	if missing {
		return m, false, false
	}
	if f := r.hiddenName(h); f != "" {
		r.bad(r.at, "give it another name", "services.%s: %s in %s begins with two dots, which the live folder keeps for itself", r.service, head(f), head(r.source))
		return m, true, false
	}
	r.ownFolder()
	if r.mount.SELinux != "" {
		r.mount.SELinux = types.SELinuxShared // its files change without a new label
	}
	m = r.mount
	m.Kind, m.Source, m.ReadOnly, m.Rest = ring.MountLive, path.Clean(r.source), true, rest
	if words.live == nil {
		words.live = map[string]string{}
	}
	words.live[m.Source] = h.hash
	return m, true, true
}

// asSource is a relative path as volumes take it: without a dot it would name a volume.
func asSource(p string) string {
	if strings.HasPrefix(p, ".") {
		return p
	}
	return "./" + p
}

// rest is the hash of the files of a folder that no path of reload names; a
// change of those is a new version. missing says that none is named.
func (r *pathMount) rest(words *reloadWords, h held, all bool) (hash string, missing bool) {
	if all {
		return "", false
	}
	var others []ring.ContentFile
	named := false
	for _, f := range r.contents[h.hash].Files {
		in := false
		for i := range words.paths {
			if at := &words.paths[i]; under(path.Join(r.path, f.Path), at.path) {
				at.used, in, named = true, true, true
			}
		}
		if !in {
			others = append(others, f)
		}
	}
	if !named {
		return "", true
	}
	if len(others) == 0 {
		return "", false
	}
	hash, f := r.reader.content(others, r.at)
	if f != nil {
		r.faults.put(f)
	}
	return hash, false
}

// hiddenName is a file or folder of a content that a live folder has no place for.
func (r *pathMount) hiddenName(h held) string {
	for _, f := range r.contents[h.hash].Files {
		if strings.HasPrefix(f.Path, "..") {
			return f.Path
		}
	}
	return ""
}

// reload is what x-gitring reload comes to, once the mounts are known.
func (b *builderOf) reload(c types.ServiceConfig, s *ring.Service, x *extras) *ring.Reload {
	w := x.reload
	if w == nil {
		return nil
	}
	no := func(at place, hint, says string, args ...any) {
		b.bad(at, hint, "services."+c.Name+" x-gitring reload: "+says, args...)
	}
	stop := signalName(or2(c.StopSignal, "SIGTERM"))
	switch {
	case w.unsure: // told
	case len(w.paths) == 0:
		no(w.place, "add paths: [./conf]", "no path is named")
	case w.signal == "" && len(w.exec) == 0:
		no(w.place, "add signal: SIGHUP, or exec: [program, argument]", "nothing tells the instance to read the files")
	case s.Kind != ring.Worker && !b.kindLost(c.Name):
		no(w.place, "remove it: each run reads the files of its commit", "a %s is not reloaded", s.Kind)
	case w.signal == stop:
		no(w.place, "choose the signal that the program reloads at", "%s stops the service: the engine would not start it again", stop)
	}
	for _, p := range w.paths {
		switch {
		case p.used:
		case !b.inside(p.path):
			b.faults.put(outside(p.written, p.place))
		default:
			no(p.place, "mount the folder that holds it, as in volumes: [./conf:/etc/app:ro], or correct the path", "no folder of the commit that the service mounts holds %s", head(p.written))
		}
	}
	r := &ring.Reload{Live: w.live, Signal: w.signal, Exec: w.exec}
	for _, p := range w.paths {
		r.Paths = append(r.Paths, p.written)
	}
	if len(r.Live) > 0 {
		b.note("%s: %s is reloaded in place: a change is followed by %s, and is no new version", c.Name, strings.Join(sortedKeys(r.Live), ", "), r.Does())
	}
	return r
}

// uponLive refuses a mount upon a live folder: its names are symlinks, which the engine
// cannot mount upon.
func (b *builderOf) uponLive(service string, mounts []ring.Mount) {
	for i, m := range mounts {
		if outer := enclosing(mounts, i); outer >= 0 && mounts[outer].Kind == ring.MountLive {
			b.bad(b.mountPlace(service, m.Target), "mount it beside the folder, or take "+asSource(mounts[outer].Source)+" out of reload paths",
				"services.%s mounts %s upon %s, which is reloaded in place", service, head(m.Target), head(mounts[outer].Target))
		}
	}
}
