package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// binds judges HostConfig.Binds: "source:target[:options]", where a source
// without a slash before it is a volume.
func binds(l *look) {
	for _, s := range l.words() {
		source, rest, _ := strings.Cut(s, ":")
		target, options, _ := strings.Cut(rest, ":")
		if source != "" && !strings.HasPrefix(source, "/") && target != "" {
			l.volumeNamed(source, target)
			l.targetAt(target, "")
			continue
		}
		if target == "" { // an anonymous volume, or nothing that can be judged
			l.find(finding{value: s, at: source, grade: forbidden, risk: "is no mount that can be judged"})
			continue
		}
		l.bindAt(bindOf(source, target, options))
		l.targetAt(target, l.hostPath(plain(source)))
	}
}

func bindOf(source, target, options string) bind {
	b := bind{source: source, target: target}
	for o := range strings.SplitSeq(options, ",") {
		switch o {
		case "ro":
			b.readOnly = true
		case "z", "Z":
			b.relabel = true
		case "private", "rprivate", "shared", "rshared", "slave", "rslave":
			b.propagation = o
		}
	}
	return b
}

// mountType judges Mounts[].Type and, for a bind, all of the mount.
func mountType(l *look) {
	source, target := l.fieldText("Source"), l.fieldText("Target")
	switch l.text() {
	case "bind":
		b := bind{source: source, target: target, readOnly: l.fieldTrue("ReadOnly")}
		if o := l.field("BindOptions"); o.IsValid() {
			b.propagation = textOf(o.FieldByName("Propagation"))
		}
		l.bindAt(b)
	case "volume":
		l.volumeNamed(source, target)
	case "tmpfs":
	default:
		l.find(finding{value: l.text(), at: target, grade: forbidden, risk: "is a kind of mount that gitring does not make"})
	}
}

// mountSource lets pass what mountType judged; a mount without a type has no
// meaning that could be judged.
func mountSource(l *look) {
	if l.fieldText("Type") == "" {
		l.rule.name = l.rule.with
		l.find(finding{value: l.text(), at: l.fieldText("Target"), grade: forbidden, risk: "is a mount of no kind"})
	}
}

// volumeNamed judges a volume by the engine's name for it.
func (l *look) volumeNamed(name, at string) {
	if other, taken := l.req.Others.volume(name); taken && name != "" {
		of := *l
		of.rule.name = "mounts.external_volumes"
		of.find(finding{value: name, at: at, grade: forbidden, risk: "is a volume of " + other.called()})
		l.out = of.out
	}
}

func volumeName(l *look) { l.volumeNamed(l.text(), "") }

// volumeOptions judges the options of a volume's driver: with them "local"
// mounts any folder of the host, or a share of the network. Only their names are
// shown, for among them are passwords.
func volumeOptions(l *look) {
	opts := l.dict()
	var lets []string
	for _, word := range l.r.lists().DriverOpts {
		lets = append(lets, strings.TrimSpace(word))
	}
	asks, alone := optionsAsked(opts), false
	for _, name := range sortedKeys(opts) {
		alone = alone || slices.ContainsFunc(optionPaths(name, opts[name]), func(p string) bool {
			g := l.pathAt(p, false, false)
			return g != nil && (g.alone || g.grade == forbidden)
		})
	}
	for _, name := range sortedKeys(opts) {
		if !alone && slices.Contains(lets, name+"="+opts[name]) {
			continue
		}
		f := finding{value: name, at: name, asks: asks, alone: alone, risk: optionRisk(name, opts), instead: "make the volume by hand (docker volume create) and say external: true"}
		if name == "device" && optionsBind(opts) && !path.IsAbs(opts[name]) {
			f.grade, f.risk, f.instead = forbidden, "is a path from wherever the engine was started", "write the whole path, from /"
		}
		for _, p := range optionPaths(name, opts[name]) {
			if g := l.pathAt(p, false, false); g != nil && g.grade == forbidden {
				f.grade, f.risk = forbidden, p+" "+g.risk
			}
		}
		l.find(f)
	}
}

// optionsAsked are all options of one volume together, as a grant names them: each one
// alone says nothing of what is mounted. Where one may be a password only their hash is
// written.
func optionsAsked(opts map[string]string) string {
	var words []string
	for _, name := range sortedKeys(opts) {
		words = append(words, name+"="+opts[name])
	}
	all := strings.Join(words, ";")
	if ring.HasSealed(all) {
		return all // no grant can name it
	}
	if secretOption.MatchString(all) {
		return hashed(all)
	}
	return all
}

var secretOption = regexp.MustCompile(`(?i)pass|cred|secret|token|key`)

func optionRisk(name string, opts map[string]string) string {
	kind := opts["type"]
	switch {
	case strings.HasPrefix(kind, "nfs"), kind == "cifs", kind == "smb3", kind == "9p", kind == "ceph":
		return "mounts a share of the network from the host, with what the host may reach there"
	case name == "type", name == "device", name == "o":
		return "mounts any folder or device of the host under the name of a volume"
	}
	return "goes to the volume's driver, which acts as root on the host"
}

// optionsBind reports whether the options of a volume mount a folder of the host.
func optionsBind(opts map[string]string) bool {
	words := strings.Split(opts["o"], ",")
	return slices.Contains(words, "bind") || slices.Contains(words, "rbind") || slices.Contains([]string{"", "none", "bind"}, opts["type"])
}

// optionPaths are the paths of the host that an option of a volume names. The engine takes
// a relative one from its own working directory, which is / as a rule.
func optionPaths(name, value string) []string {
	out := pathsIn(value)
	relative := func(p string) {
		if p != "" && !path.IsAbs(p) && !strings.Contains(p, ":") {
			out = append(out, path.Clean("/"+p))
		}
	}
	switch name {
	case "device":
		relative(value)
	case "o":
		for _, word := range strings.Split(value, ",") {
			if key, dirs, has := strings.Cut(word, "="); has && strings.HasSuffix(key, "dir") {
				for _, dir := range strings.Split(dirs, ":") {
					relative(dir)
				}
			}
		}
	}
	return out
}

// rootOptions reports whether the options of one volume, as optionsAsked writes them, may
// give root on the host. Tame are memory, shares of the network, and folders that are.
func rootOptions(asks string) bool {
	if strings.HasPrefix(asks, "sha256:") {
		return true // nobody can see what they are
	}
	kind := ""
	for _, word := range strings.Split(asks, ";") {
		name, value, _ := strings.Cut(word, "=")
		if name == "type" {
			kind = value
		}
		for _, p := range optionPaths(name, value) {
			if rootPath(plain(p), false) {
				return true
			}
		}
	}
	return !slices.Contains(tameFilesystems, kind)
}

// tameFilesystems are those that show nothing of the kernel and read no disk. "" is a bind.
var tameFilesystems = []string{"", "none", "bind", "tmpfs", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph"}

// pathsIn are the absolute paths that stand anywhere in an option's value, such
// as "lowerdir=/a:/b,upperdir=/c".
func pathsIn(value string) []string {
	var out []string
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '=' || r == ':' || r == ' ' }) {
		if strings.HasPrefix(word, "/") {
			out = append(out, path.Clean(word))
		}
	}
	return out
}
