package manifest

import (
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/compose-spec/compose-go/v2/format"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// mounts are the volumes and tmpfs of a service, by target.
func (b *builderOf) mounts(c types.ServiceConfig) []ring.Mount {
	var out []ring.Mount
	x := b.extras[c.Name]
	used := map[string]bool{}
	for _, v := range c.Volumes {
		switch v.Type {
		case types.VolumeTypeVolume:
			out = append(out, b.volume(c.Name, v))
		case types.VolumeTypeTmpfs:
			out = append(out, longTmpfs(v))
		case types.VolumeTypeBind:
			p := path.Join(b.from.path, v.Source)
			used[p] = true
			if m, ok := b.bind(c.Name, v, x.mountOf(p)); ok {
				out = append(out, m)
			}
		}
	}
	for _, t := range c.Tmpfs {
		out = append(out, b.shortTmpfs(c.Name, t))
	}
	for _, m := range x.mounts {
		if !used[m.path] && !b.lost("services", c.Name, "volumes") {
			b.bad(m.place, "write the source as it stands in volumes", "services.%s x-gitring mounts: no volume has the source %s", c.Name, head(m.written))
		}
	}
	b.consistencies(c)
	out = append(out, b.objects(c)...)
	return b.placed(c.Name, out)
}

// placed puts mounts in order, with one for each target.
func (b *builderOf) placed(service string, out []ring.Mount) []ring.Mount {
	sort.SliceStable(out, func(i, j int) bool { return out[i].Target < out[j].Target })
	for i := 1; i < len(out); i++ {
		if out[i].Target == out[i-1].Target {
			b.bad(b.mountPlace(service, out[i].Target), "keep one of them", "services.%s mounts two things at %s", service, head(out[i].Target))
		}
	}
	b.mountpoints(service, out)
	b.uponLive(service, out)
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
		m.NoCopy, m.Subpath = v.Volume.NoCopy, v.Volume.Subpath
	}
	if m.Subpath != "" {
		b.note("%s: %s of the volume at %s needs Docker 26 (API 1.45); the folder has to be in the volume", service, m.Subpath, v.Target)
	}
	if v.Bind != nil && v.Bind.SELinux != "" {
		b.note("%s: %s of %s means nothing, the engine labels a volume by itself", service, v.Bind.SELinux, v.Target)
	}
	if v.Source == "" && m.Subpath != "" {
		b.bad(b.mountPlace(service, v.Target), "name the volume with source: and declare it under volumes:", "services.%s mounts a part of a volume without a name", service)
	}
	if v.Source == "" {
		m.Source = ring.AnonymousVolume(service, v.Target)
		return m
	}
	_, b.volumes[v.Source] = b.project.Volumes[v.Source] // one that is not is told
	return m
}

// mountpoints makes what other mounts are mounted upon: a folder of the commit is
// read-only, so the engine could not make it there.
func (b *builderOf) mountpoints(service string, mounts []ring.Mount) {
	under := map[int][]ring.ContentFile{}
	for i, m := range mounts {
		outer := enclosing(mounts, i)
		if outer < 0 || mounts[outer].Kind != ring.MountContent {
			continue
		}
		rel := strings.TrimPrefix(m.Target, mounts[outer].Target+"/")
		if has(b.contents[mounts[outer].Source], rel) {
			continue
		}
		f := ring.ContentFile{Path: rel, Read: func() ([]byte, error) { return nil, nil }}
		switch {
		case m.Kind == ring.MountBind: // a file or a folder: only the host knows
			b.bad(b.mountPlace(service, m.Target), "commit an empty file or folder there, whichever is mounted", "services.%s mounts %s upon what the commit does not hold at %s", service, head(m.Source), head(m.Target))
			continue
		case m.Kind != ring.MountContent || m.File == "":
			f.Path = path.Join(rel, ".gitkeep")
		}
		under[outer] = append(under[outer], f)
	}
	for i := range mounts {
		if len(under[i]) == 0 {
			continue
		}
		files := append(slices.Clone(b.contents[mounts[i].Source].Files), under[i]...)
		hash, f := b.madeContent(files, b.mountPlace(service, mounts[i].Target))
		if f != nil {
			b.faults.put(f)
			continue
		}
		mounts[i].Source = hash
	}
}

// enclosing is the mount right around the one at i, -1 when there is none.
func enclosing(mounts []ring.Mount, i int) int {
	found := -1
	for j, m := range mounts {
		if j != i && strings.HasPrefix(mounts[i].Target, m.Target+"/") && (found < 0 || len(m.Target) > len(mounts[found].Target)) {
			found = j
		}
	}
	return found
}

// has reports whether a content holds a file or folder.
func has(c ring.Content, name string) bool {
	return slices.ContainsFunc(c.Files, func(f ring.ContentFile) bool {
		return f.Path == name || strings.HasPrefix(f.Path, name+"/")
	})
}

// consistencies notes the options that mean something on a Mac.
func (b *builderOf) consistencies(c types.ServiceConfig) {
	for _, f := range b.files {
		n, _, _ := f.root.at([]string{"services", c.Name, "volumes"})
		for _, it := range n.items {
			word := textOf(it.get("consistency"))
			if it.kind == scalar {
				_, word = cutLast(it.text)
			}
			for o := range strings.SplitSeq(word, ",") {
				if contains(consistencyWords, o) {
					b.note("%s: %s of a mount means nothing on Linux", c.Name, o)
					return
				}
			}
		}
	}
}

var consistencyWords = []string{"consistent", "cached", "delegated"}

// mountedVolumes looks at the form of each entry.
func mountedVolumes(k *keyCheck) {
	for _, it := range k.key.val.items {
		at := keyCheck{app: k.app, chain: k.chain, key: pair{place: it.place, val: it}, fs: k.fs, read: k.read, root: k.root}
		if it.kind == scalar {
			at.shortVolume(it.text)
			continue
		}
		if !mistyped(it, "target", volumeKeys) && !mistyped(it, "source", volumeKeys) && !mistyped(it, "type", volumeKeys) {
			at.volume(types.ServiceVolumeConfig{
				Type: textOf(it.get("type")), Source: textOf(it.get("source")), Target: textOf(it.get("target")),
			})
		}
	}
}

var volumeKeys = []string{"bind", "consistency", "image", "read_only", "source", "target", "tmpfs", "type", "volume"}

// mountOptions of the short form. nocopy is of volumes, propagation of paths.
var mountOptions = append(append([]string{"ro", "rw", "nocopy", "z", "Z"}, consistencyWords...), format.Propagations...)

// nearOption is the way out where a mount has an option that there is not.
func nearOption(o string) string {
	if n := ring.Nearest(o, mountOptions); n != "" {
		return "did you mean " + n + "?"
	}
	return "take it out, or write ro, rw, nocopy, z, Z or a propagation such as rslave"
}

func (k *keyCheck) shortVolume(s string) {
	v, err := format.ParseVolume(s)
	if err != nil {
		k.bad("write source:target or source:target:ro", "%q is no mount", head(s))
		return
	}
	if v.Source == "" && windowsPath.MatchString(v.Target) {
		k.bad("give the volume a longer name than one letter", "%q is a drive of Windows to Compose", head(s))
		return
	}
	_, options, _ := strings.Cut(strings.TrimPrefix(s, v.Source+":"+v.Target), ":")
	for o := range strings.SplitSeq(options, ",") {
		switch {
		case o == "":
		case !contains(mountOptions, o):
			k.bad(nearOption(o), "%q: %q is no option of a mount", head(s), head(o))
		case o == "nocopy" && v.Type == types.VolumeTypeBind:
			k.bad("remove nocopy: a path of the host is never filled from the image", "%q: nocopy is of volumes", head(s))
		case contains(format.Propagations, o) && v.Type == types.VolumeTypeVolume:
			k.bad("remove "+o, "%q: %s is of paths, not of volumes", head(s), o)
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
	case types.VolumeTypeImage:
		k.mountType(v.Type, "needs a newer engine's API (1.48)", "copy the files into the image, or use a volume")
	case types.VolumeTypeNamedPipe:
		k.mountType(v.Type, "is Windows'", "remove it")
	case types.VolumeTypeCluster:
		k.mountType(v.Type, "is Swarm's", "use a volume")
	} // any other is refused by the schema's own words
}

func (k *keyCheck) mountType(kind, says, hint string) {
	k.fs.add(ring.Unsupported, k.key.place, hint, "%s type %s %s", k.name(), kind, says)
}

var windowsPath = regexp.MustCompile(`^([a-zA-Z]:|\\\\)`)

// bind looks at a path. An absolute one is the host's, and for policy to decide.
func (k *keyCheck) bind(source string) {
	switch {
	case path.IsAbs(source):
	case strings.HasPrefix(source, "~"):
		k.bad("write the folder's absolute path on the host, or a path relative to the Compose file", "%s is in somebody's home, and a commit has none", head(source))
	case windowsPath.MatchString(source):
		k.bad("write a path of Linux, or one relative to the Compose file", "%s is a path of Windows", head(source))
	case source == "":
		k.bad("add a source", "a bind mount has no source")
	case remote.MatchString(source), !k.read.inside(path.Join(k.root, source)):
		f := outside(source, k.key.place)
		f.says = strings.Join(k.chain[:min(3, len(k.chain))], ".") + " " + f.says
		f.hint = "keep what is mounted under the source's path (.. is fine while it stays there), or name a folder of the host by its absolute path, which the policy has to let"
		k.fs.put(f)
	}
}

func propagationWord(k *keyCheck) {
	if p := k.text(); p != "" && !contains(format.Propagations, p) {
		k.bad("write one of "+strings.Join(format.Propagations, ", "), "%q is no propagation", head(p))
	}
}

// partOfVolume holds a subpath to what the engine takes.
func partOfVolume(k *keyCheck) {
	if p := k.text(); p != "" && !within(".", path.Clean(p)) {
		k.bad("write a path inside of the volume, without ..", "%q is no path inside of a volume", head(p))
	}
}

// recursive is for what is mounted below the source; the default needs nothing.
func recursive(k *keyCheck) {
	if r := k.text(); r != "" && r != "enabled" {
		k.refuse("%s needs a newer engine's API (1.44)", "remove it", head(r))
	}
}
