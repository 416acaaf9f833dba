package manifest

import (
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/format"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/go-units"
	"github.com/gitring/gitring/ring"
)

// mounts are the volumes and tmpfs of a service, by target.
func (b *builderOf) mounts(c types.ServiceConfig) []ring.Mount {
	var out []ring.Mount
	x := b.extras[c.Name]
	used := map[string]bool{}
	for _, v := range c.Volumes {
		at := b.mountPlace(c.Name, v.Target)
		switch v.Type {
		case types.VolumeTypeVolume:
			out = append(out, b.volume(c.Name, v))
		case types.VolumeTypeTmpfs:
			out = append(out, longTmpfs(v))
		case types.VolumeTypeBind:
			p := path.Join(b.from.path, v.Source)
			used[p] = true
			if m, ok := b.bind(c.Name, v, p, x.mountOf(p), at); ok {
				out = append(out, m)
			}
		}
	}
	for _, t := range c.Tmpfs {
		out = append(out, b.shortTmpfs(c.Name, t))
	}
	for _, m := range x.mounts {
		if !used[m.path] {
			b.bad(m.place, "write the source as it stands in volumes", "services.%s x-gitring mounts: no volume has the source %s", c.Name, head(m.written))
		}
	}
	out = append(out, b.objects(c)...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].Target < out[j].Target })
	for i := 1; i < len(out); i++ {
		if out[i].Target == out[i-1].Target {
			b.bad(b.mountPlace(c.Name, out[i].Target), "keep one of them", "services.%s mounts two things at %s", c.Name, head(out[i].Target))
		}
	}
	return out
}

func (b *builderOf) mountPlace(service, target string) place {
	at := b.entryPlace(service, "volumes", func(n *node) bool {
		if n.kind == mapping {
			return path.Clean(textOf(n.get("target"))) == target
		}
		for part := range strings.SplitSeq(n.text, ":") {
			if path.Clean(part) == target {
				return true
			}
		}
		return false
	})
	return at
}

// volume is a named volume, or the anonymous one made named: {slot} stands for
// the instance's slot, which gives each its own.
func (b *builderOf) volume(service string, v types.ServiceVolumeConfig) ring.Mount {
	m := ring.Mount{Kind: ring.MountVolume, Source: v.Source, Target: v.Target, ReadOnly: v.ReadOnly}
	if v.Volume != nil {
		m.NoCopy = v.Volume.NoCopy
	}
	if v.Source == "" {
		m.Source = ring.AnonymousVolume(service, v.Target)
		return m
	}
	b.volumes[v.Source] = true
	return m
}

// bind is a path relative to the app: a file or folder of the commit, or the
// app's data.
func (b *builderOf) bind(service string, v types.ServiceVolumeConfig, p string, mode *mountMode, at place) (ring.Mount, bool) {
	if !b.inside(p) { // refused before, by its place; here nothing may rely on that
		b.faults.put(outside(v.Source, at))
		return ring.Mount{}, false
	}
	h, f := b.hold(p, at)
	if f != nil {
		b.faults.put(f)
		return ring.Mount{}, false
	}
	data := ring.Mount{Kind: ring.MountData, Source: p, Target: v.Target, ReadOnly: v.ReadOnly}
	switch {
	case mode != nil && mode.mode == modeData && h.file != "":
		b.bad(mode.place, "mount the folder it is in, or remove it from x-gitring mounts", "services.%s x-gitring mounts: %s is a file of the commit, which is always read-only", service, p)
		return ring.Mount{}, false
	case !h.held && mode != nil && mode.mode == modeContent:
		b.bad(mode.place, "commit it, or write data", "services.%s x-gitring mounts: the commit does not hold %s", service, p)
		return ring.Mount{}, false
	case !h.held:
		b.note("%s: %s is the app's data, kept below the data root and created on first use", service, p)
		return data, true
	case mode != nil && mode.mode == modeData:
		return data, true
	case h.file == "" && !v.ReadOnly && mode == nil:
		b.note("%s: %s is mounted read-only from the commit; x-gitring mounts: {%s: data} makes it writable data", service, p, v.Source)
	}
	return ring.Mount{Kind: ring.MountContent, Source: h.hash, File: h.file, Target: v.Target, ReadOnly: true}, true
}

func longTmpfs(v types.ServiceVolumeConfig) ring.Mount {
	m := ring.Mount{Kind: ring.MountTmpfs, Target: v.Target, ReadOnly: v.ReadOnly}
	if v.Tmpfs != nil {
		m.Size, m.Mode = int64(v.Tmpfs.Size), v.Tmpfs.Mode
	}
	return m
}

// shortTmpfs is /path:size=64m,mode=1777,… as docker run takes it.
func (b *builderOf) shortTmpfs(service, s string) ring.Mount {
	target, options, _ := strings.Cut(s, ":")
	m := ring.Mount{Kind: ring.MountTmpfs, Target: path.Clean(target)}
	at := b.entryPlace(service, "tmpfs", func(n *node) bool { return n.text == s })
	if !path.IsAbs(target) || m.Target == "/" {
		b.bad(at, "mount at an absolute path below /", "services.%s.tmpfs %q is no target of a mount", service, head(target))
	}
	var rest []string
	for o := range strings.SplitSeq(options, ",") {
		name, value, _ := strings.Cut(o, "=")
		var err error
		switch name {
		case "":
		case "ro":
			m.ReadOnly = true
		case "size":
			m.Size, err = units.RAMInBytes(value)
		case "mode":
			var mode uint64
			mode, err = strconv.ParseUint(value, 8, 32)
			m.Mode = uint32(mode)
		default:
			rest = append(rest, o)
		}
		if err != nil {
			b.bad(at, "write size=64m or mode=1777", "services.%s.tmpfs %q is no %s", service, head(value), name)
		}
	}
	m.Options = strings.Join(rest, ",")
	return m
}

// absent says that the commit holds nothing at a path relative to the app.
func (a *appReader) absent(name string) bool {
	p := path.Join(a.from.path, name)
	if path.IsAbs(name) || !a.inside(p) {
		return false
	}
	kind, _ := a.tree.look(p)
	return kind == missing
}

// mountedVolumes looks at what each entry asks of the host.
func mountedVolumes(k *keyCheck) {
	for _, it := range k.key.val.items {
		at := keyCheck{app: k.app, chain: k.chain, key: pair{place: it.place, val: it}, fs: k.fs, read: k.read, root: k.root}
		if it.kind == scalar {
			at.shortVolume(it.text)
			continue
		}
		at.volume(types.ServiceVolumeConfig{
			Type: textOf(it.get("type")), Source: textOf(it.get("source")), Target: textOf(it.get("target")),
		})
	}
}

var volumeOptions = map[string]bool{"": true, "ro": true, "rw": true, "nocopy": true}

func (k *keyCheck) shortVolume(s string) {
	v, err := format.ParseVolume(s)
	if err != nil {
		k.bad("write source:target or source:target:ro", "%q is no mount", head(s))
		return
	}
	if v.Bind != nil && v.Bind.Propagation != "" {
		k.deny("%q shares mounts between the container and the host", head(s))
		return
	}
	if v.Source == "" && windowsPath.MatchString(v.Target) {
		k.bad("give the volume a longer name than one letter", "%q is a drive of Windows to Compose", head(s))
		return
	}
	_, options, _ := strings.Cut(strings.TrimPrefix(s, v.Source+":"+v.Target), ":")
	for o := range strings.SplitSeq(options, ",") {
		if !volumeOptions[o] {
			k.refuse("option %s of %q is not carried out by this release", "remove the option", head(o), head(s))
			return
		}
	}
	k.volume(v)
}

func (k *keyCheck) volume(v types.ServiceVolumeConfig) {
	if v.Target == "" || !path.IsAbs(v.Target) || path.Clean(v.Target) == "/" {
		k.bad("mount at an absolute path below /", "%q is no target of a mount", head(v.Target))
	}
	switch v.Type {
	case types.VolumeTypeBind:
		k.bind(v.Source)
	case types.VolumeTypeVolume, types.VolumeTypeTmpfs, "":
	default:
		k.fs.add(ring.Unsupported, k.key.place, "use a volume, a file of the commit or a tmpfs", "%s type %s is not carried out by this release", k.name(), head(v.Type))
	}
}

var windowsPath = regexp.MustCompile(`^([a-zA-Z]:|\\\\)`)

func (k *keyCheck) bind(source string) {
	switch {
	case path.IsAbs(source) && strings.HasSuffix(source, ".sock"):
		k.deny("%s gives the container a socket of the host, which may be the host itself", head(source))
	case path.IsAbs(source), strings.HasPrefix(source, "~"), windowsPath.MatchString(source):
		k.fs.add(ring.PolicyDenied, k.key.place,
			"use a path relative to the Compose file, or a named volume; no policy of this release grants a path of the host",
			"%s %s gives the container a path of the host", k.name(), head(source))
	case source == "":
		k.bad("add a source", "a bind mount has no source")
	case !k.read.inside(path.Join(k.root, source)):
		k.fs.put(outside(source, k.key.place))
	}
}

func createHostPath(k *keyCheck) {
	if k.key.val.asksNothing() {
		k.refuse("false is not carried out by this release: a data folder is created on first use", "remove it")
	}
}
