package runtime

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/gitring/gitring/ring"
)

// wantedVolume is a volume that an instance mounts.
type wantedVolume struct {
	Key      string // in the app, with the slot in it
	Name     string // on the engine
	External bool   // never made
	Create   volume.CreateOptions
}

// mount adds one mount, and what must be there before it.
func (p *payload) mount(at site, a ring.Action, m ring.Mount) error {
	e := mount.Mount{Target: m.Target, ReadOnly: m.ReadOnly}
	switch m.Kind {
	case ring.MountVolume:
		v := volumeOf(at.host, a, m.Source)
		p.want(v)
		e.Type, e.Source = mount.TypeVolume, v.Name
		if m.Subpath != "" && !at.can(VolumeParts) { // admission refuses it before
			return fmt.Errorf("the engine's API is older than %s, and cannot mount %s of a volume", since(VolumeParts), m.Subpath)
		}
		if m.NoCopy || m.Subpath != "" {
			e.VolumeOptions = &mount.VolumeOptions{NoCopy: m.NoCopy, Subpath: m.Subpath}
		}
	case ring.MountContent:
		e.Type, e.ReadOnly = mount.TypeBind, true
		e.Source = filepath.Join(at.contentAt(m.Source), m.File)
		p.Contents = append(p.Contents, m)
	case ring.MountData, ring.MountSeed:
		e.Type, e.Source = mount.TypeBind, filepath.Join(p.DataRoot, m.Source)
		if !m.MustExist {
			p.Data = append(p.Data, m.Source)
		}
		if m.Kind == ring.MountSeed {
			p.Seeds = append(p.Seeds, m)
		}
	case ring.MountLive:
		e.Type, e.ReadOnly = mount.TypeBind, true
		e.Source = livePath(at.content, a, m.Source)
	case ring.MountBind:
		e.Type, e.Source = mount.TypeBind, m.Source
		if m.Create || m.SELinux != "" {
			p.Made = append(p.Made, m.Source)
			if rel, own := ownData(p.DataRoot, a.Of.Path, m.Source); own {
				p.Data = append(p.Data, rel)
			}
		}
	case ring.MountTmpfs:
		p.tmpfs(m)
		return nil
	default:
		return fmt.Errorf("mount at %s is of kind %q, which nothing is known of", m.Target, m.Kind)
	}
	if e.Type == mount.TypeBind && (m.Create || m.SELinux != "") {
		return p.bind(e, m)
	}
	if e.Type == mount.TypeBind && m.Propagation != "" {
		e.BindOptions = &mount.BindOptions{Propagation: mount.Propagation(m.Propagation)}
	}
	p.Host.Mounts = append(p.Host.Mounts, e)
	return nil
}

// ownData is an absolute path below the app's own folder as one below the data
// root: the app's data, however it is written.
func ownData(dataRoot, path, source string) (rel string, own bool) {
	source = filepath.Clean(source)
	if dataRoot == "" || !lies(source, filepath.Join(dataRoot, path)) {
		return "", false
	}
	rel, err := filepath.Rel(dataRoot, source)
	return rel, err == nil
}

// bind uses the engine's older form, the only one that makes a missing folder
// and that labels for SELinux at API 1.41.
func (p *payload) bind(e mount.Mount, m ring.Mount) error {
	if strings.Contains(e.Source, ":") || strings.Contains(e.Target, ":") {
		return fmt.Errorf("the engine takes no colon in a path here: %s at %s", e.Source, e.Target)
	}
	var opts []string
	for _, o := range []string{map[bool]string{true: "ro"}[e.ReadOnly], m.SELinux, m.Propagation} {
		if o != "" {
			opts = append(opts, o)
		}
	}
	text := e.Source + ":" + e.Target
	if len(opts) > 0 {
		text += ":" + strings.Join(opts, ",")
	}
	p.Host.Binds = append(p.Host.Binds, text)
	return nil
}

func (p *payload) tmpfs(m ring.Mount) {
	if m.Options != "" {
		p.tmpfsAsWritten(m)
		return
	}
	e := mount.Mount{Type: mount.TypeTmpfs, Target: m.Target, ReadOnly: m.ReadOnly}
	if m.Size != 0 || m.Mode != 0 {
		e.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: m.Size, Mode: fs.FileMode(m.Mode)}
	}
	p.Host.Mounts = append(p.Host.Mounts, e)
}

// tmpfsAsWritten uses the engine's older form: the newer one takes free options
// from API 1.46 on only.
func (p *payload) tmpfsAsWritten(m ring.Mount) {
	opts := []string{m.Options}
	if m.ReadOnly {
		opts = append(opts, "ro")
	}
	if m.Size != 0 {
		opts = append(opts, fmt.Sprintf("size=%d", m.Size))
	}
	if m.Mode != 0 {
		opts = append(opts, fmt.Sprintf("mode=%o", m.Mode))
	}
	if p.Host.Tmpfs == nil {
		p.Host.Tmpfs = map[string]string{}
	}
	p.Host.Tmpfs[m.Target] = strings.Join(opts, ",")
}

// volumeKey is a volume's key in the app for this slot.
func volumeKey(source string, slot int) string {
	return strings.ReplaceAll(source, ring.SlotMark, strconv.Itoa(slot))
}

// volumeOf is the volume that a mount's source names, in this slot.
func volumeOf(host string, a ring.Action, source string) wantedVolume {
	v := ring.Volume{Key: source}
	if i := slices.IndexFunc(a.Of.Volumes, func(v ring.Volume) bool { return v.Key == source }); i >= 0 {
		v = a.Of.Volumes[i]
	}
	v.Key = volumeKey(source, a.Slot)
	name := v.EngineName(a.App)
	return wantedVolume{
		Key: v.Key, Name: name, External: v.External != "",
		Create: volume.CreateOptions{
			Name: name, Driver: v.Driver, DriverOpts: v.DriverOpts, Labels: volumeLabels(host, a.Of, v.Key, v.Labels),
		},
	}
}

// want adds a volume, once.
func (p *payload) want(v wantedVolume) {
	if !slices.ContainsFunc(p.Volumes, func(o wantedVolume) bool { return o.Name == v.Name }) {
		p.Volumes = append(p.Volumes, v)
	}
}

// kept are the names, as in ring.Kept, of all that outlives the instance and
// would be made anew when it is missing: volumes, data folders, seeded folders and
// paths of the host, sorted.
func (p *payload) kept() []string {
	var names []string
	for _, v := range p.Volumes {
		names = append(names, keptVolume(v.Name))
	}
	for _, rel := range p.Data {
		names = append(names, keptData(filepath.Join(p.DataRoot, rel)))
	}
	for _, source := range p.Made {
		names = append(names, keptPath(source))
	}
	slices.SortFunc(names, cmp.Compare[string])
	return slices.Compact(names)
}

func keptVolume(name string) string { return "volume " + name }
func keptData(path string) string   { return "data " + path }
func keptPath(path string) string   { return "path " + path }
