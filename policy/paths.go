package policy

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
)

// bind is one folder or file of the host that a request mounts.
type bind struct {
	source, target string
	readOnly       bool
	relabel        bool // :z or :Z
	propagation    string
}

// bindAt judges a bind: whose path it is first, then how it is mounted.
func (l *look) bindAt(b bind) {
	if l.req.frontMount(b) {
		return
	}
	f := l.pathAt(b.source, b.readOnly, b.relabel)
	if f != nil {
		f.value, f.at = path.Clean(b.source), b.target
		f.asks = asksOf(b.source, b.readOnly && !b.relabel)
		if l.find(*f); l.denies() {
			return
		}
	}
	if !among(l.r.lists().Propagation, cmp.Or(b.propagation, "rprivate")) {
		clean := path.Clean(b.source)
		l.find(finding{
			value: clean + " " + b.propagation, at: b.target, grade: escape, risk: "shares later mounts between the container and the host",
			instead: "remove the propagation", asks: clean + ":" + b.propagation,
		})
	}
}

// asksOf is what a grant of a path of the host has to say.
func asksOf(source string, readOnly bool) string {
	if readOnly {
		return path.Clean(source) + ":ro"
	}
	return path.Clean(source)
}

// The order is that of who has the last word: the daemon, other apps, the app
// itself, then the lists. nil lets the path pass.
func (l *look) pathAt(source string, readOnly, relabel bool) *finding {
	if !path.IsAbs(source) {
		return &finding{grade: forbidden, risk: "is no path that can be judged"}
	}
	p := plain(source)
	if (l.r.contentOf(l.req, p) || l.r.liveOf(l.req, p)) && readOnly {
		return nil
	}
	if viaProcess.MatchString(p) {
		return &finding{grade: forbidden, risk: "leads through a process to any file of the host", instead: "name the file itself"}
	}
	mine := l.isMine(p)
	if own, ok := l.r.own(p); ok && (!mine || !within(plain(l.req.DataRoot), own) || plain(l.req.DataRoot) == own) {
		return &finding{grade: forbidden, risk: "is the daemon's own: its state, keys and secrets"}
	}
	if f := l.dataOfOthers(p, mine); f != nil {
		return f
	}
	for _, dir := range volumeFolders {
		// Portainer's agent and its like mount the whole of it, beside the socket by which
		// they reach every volume anyway.
		if within(p, dir) && !(p == dir && l.holdsEngineSocket()) {
			return &finding{grade: forbidden, risk: "is where the engine keeps the volumes of all apps", instead: "mount the volume by its name"}
		}
	}
	lists := l.r.lists()
	shared := l.req.Others.holdsFolder(p)
	if withinAny(p, l.req.Taken) && !l.r.holdsOwn(p) && !shared {
		return nil
	}
	if root, ok := l.bindRoot(lists, p); ok && !l.r.holdsOwn(p) && !shared && !l.closed(lists, p, root) {
		return nil
	}
	if entry, ok := readOnlyPlace(lists.Always, p); ok && !l.r.holdsOwn(p) && !shared && !l.closed(lists, p, plain(entry)) {
		switch {
		case !readOnly:
			return &finding{grade: escape, risk: "lets the container change " + entry + " of the host", instead: "add :ro"}
		case relabel:
			return &finding{grade: escape, risk: "changes the SELinux label of " + entry + " of the host", instead: "remove :z"}
		}
		return nil
	}
	f := &finding{grade: escape, risk: l.riskOf(p), instead: insteadOf(p)}
	if mine {
		f.risk, f.instead = "is the app's own folder, which mounts.bind_roots of this host does not name", `add "{data_root}/{path}" to that list, or begin each of its items with + or -`
	}
	if l.r.Profile != Owner {
		f.never, f.alone = neverAt(lists.Never, p)
		f.alone = f.alone || mine || strings.Contains(p, ":") || withinAny(p, volumeFolders) || shared && l.inDataRoots(p)
	}
	return f
}

// closed reports whether a path of a bind root is closed all the same: by never, or by an
// entry of grant_only that is nearer to it than the root, or that lies inside it.
func (l *look) closed(lists *Lists, p, root string) bool {
	if l.isMine(p) {
		return false // the operator chose where the data of apps lies
	}
	if _, is := neverAt(lists.Never, p); is {
		return true
	}
	for _, entry := range lists.GrantOnly {
		if name, anywhere := strings.CutPrefix(entry, "**/"); anywhere {
			if path.Base(p) == name {
				return true
			}
			continue
		}
		if e := plain(entry); within(e, p) || within(p, e) && len(e) > len(root) {
			return true
		}
	}
	return false
}

// bindRoot is the entry of mounts.bind_roots that a path is or lies below, as a path.
func (l *look) bindRoot(lists *Lists, p string) (string, bool) {
	best, found := "", false
	for _, entry := range lists.BindRoots {
		if strings.Contains(entry, "{data_root}") && l.req.DataRoot == "" {
			continue
		}
		root := plain(strings.NewReplacer("{data_root}", l.req.DataRoot, "{path}", l.req.Path).Replace(entry))
		if entry == OwnFolder && !l.isMine(p) {
			continue
		}
		if within(p, root) && (!found || len(root) > len(best)) {
			best, found = root, true
		}
	}
	return best, found
}

// inDataRoots reports whether a path lies below a folder that holds the data of apps.
func (l *look) inDataRoots(p string) bool {
	return slices.ContainsFunc(append(slices.Clone(l.req.Others.roots()), l.req.DataRoot), func(root string) bool { return root != "" && within(p, plain(root)) })
}

// readOnlyPlace is the entry of mounts.always that a path is or lies below; each entry
// ends in :ro.
func readOnlyPlace(always []string, p string) (string, bool) {
	for _, entry := range always {
		if entry = strings.TrimSuffix(entry, ":ro"); within(p, plain(entry)) {
			return entry, true
		}
	}
	return "", false
}

// neverAt is the entry of mounts.never that a path is, lies below or holds. The root
// folder is only itself.
func neverAt(never []string, p string) (string, bool) {
	for _, entry := range never {
		if e := plain(entry); p == e || e != "/" && (within(p, e) || p != "/" && within(e, p)) {
			return entry, true
		}
	}
	return "", false
}

// plain is a path as it is compared. /var/run is /run on every host of today.
func plain(p string) string {
	p = path.Clean(p)
	if within(p, "/var/run") {
		return strings.TrimPrefix(p, "/var")
	}
	return p
}

// viaProcess are the links of a process to the files it sees.
var viaProcess = regexp.MustCompile(`^/proc/[^/]+/(task/[^/]+/)?(root|cwd|exe|fd|map_files|ns)(/|$)|^/dev/fd(/|$)`)

// root is the folder below which the app's data lies.
func (q *Request) root() string { return path.Join(q.DataRoot, q.Path) }

// contentOf reports whether p is content that gitring placed for the request's service.
func (r *Rules) contentOf(q *Request, p string) bool {
	return slices.ContainsFunc(q.Contents, func(hash string) bool {
		return hash != "" && !strings.ContainsAny(hash, "/.") && slices.ContainsFunc(append([]string{r.Content}, r.Secrets...), func(dir string) bool {
			return dir != "" && within(p, path.Join(plain(dir), hash))
		})
	})
}

// liveOf reports whether p is a live folder that gitring made for the request's instance.
func (r *Rules) liveOf(q *Request, p string) bool {
	return r.Live != "" && slices.ContainsFunc(q.Lives, func(name string) bool {
		return name != "" && !strings.Contains(name, "..") && p == path.Join(plain(r.Live), name)
	})
}

// ownAnywhere are the daemon's folders on a host that says nothing else.
var ownAnywhere = []string{"/etc/gitring", "/run/gitring", "/var/lib/gitring"}

// own is the daemon's file or folder that p is or lies below.
func (r *Rules) own(p string) (string, bool) {
	best, found := "", false
	for _, dir := range slices.Concat(ownAnywhere, r.Own) {
		if dir = plain(dir); within(p, dir) && len(dir) >= len(best) {
			best, found = dir, true
		}
	}
	return best, found
}

// holdsOwn reports whether something of the daemon lies below p.
func (r *Rules) holdsOwn(p string) bool {
	return slices.ContainsFunc(slices.Concat(ownAnywhere, r.Own), func(dir string) bool { return within(plain(dir), p) })
}

// riskOf names what a path of the host gives, and the list that names it.
func (l *look) riskOf(p string) string {
	risk := "is a path of the host outside the app's own data"
	switch base := path.Base(p); {
	case p == "/":
		risk = "gives the container every file of the host"
	case base == "docker.sock", base == "containerd.sock", base == "podman.sock":
		risk = "is the engine's socket: whoever may write to it is root on the host"
	case strings.HasSuffix(base, ".sock"), strings.HasSuffix(base, ".socket"):
		risk = "is a socket of a program of the host, which obeys what is written to it"
	case within(p, "/dev"):
		risk = "gives the container devices of the host"
	case within(p, "/proc"), within(p, "/sys"):
		risk = "gives the container a view into the kernel and every process of the host"
	case within(p, "/etc"), within(p, "/root"), within(p, "/boot"), within(p, "/usr"), within(p, "/bin"), within(p, "/sbin"), within(p, "/lib"):
		risk = "gives the container files that the host itself runs by"
	case within(p, "/var/lib/docker"), within(p, "/var/lib/containerd"):
		risk = "gives the container the files of all containers of the host"
	case l.r.holdsOwn(p):
		risk = "gives the container a folder of the host that holds the daemon's state too"
	}
	if l.r.Profile == Owner {
		return risk
	}
	if entry, ok := neverAt(l.r.lists().Never, p); ok {
		return risk + " (" + entry + " is never granted)"
	}
	if entry, ok := placed(l.r.lists().GrantOnly, p); ok {
		return risk + " (" + entry + " needs a grant)"
	}
	return risk
}

func insteadOf(p string) string {
	for _, dir := range []string{"/proc", "/sys", "/dev", "/run"} {
		if p == "/" || within(p, dir) || strings.HasSuffix(p, ".sock") {
			return "remove the mount" // nothing of the app's own takes its place
		}
	}
	return "use a path relative to the Compose file, or a named volume"
}
