package manifest

import (
	"path"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// bind is a path: absolute the host's, else a file or folder of the commit, or
// the app's data.
func (b *builderOf) bind(service string, v types.ServiceVolumeConfig, mode *mountMode) (ring.Mount, bool) {
	m := ring.Mount{Target: v.Target, ReadOnly: v.ReadOnly}
	create := true
	if v.Bind != nil {
		m.Propagation, m.SELinux = unless(types.PropagationRPrivate, v.Bind.Propagation), v.Bind.SELinux
		create = bool(v.Bind.CreateHostPath)
	}
	if path.IsAbs(v.Source) {
		m.Kind, m.Source, m.Create = ring.MountBind, path.Clean(v.Source), create
		return m, b.noColon(service, m)
	}
	r := &pathMount{builderOf: b, service: service, source: v.Source, path: path.Join(b.from.path, v.Source), mode: mode, create: create, mount: m}
	r.at = b.mountPlace(service, v.Target)
	if !b.inside(r.path) { // refused before, by its place; here nothing may rely on that
		b.faults.put(outside(v.Source, r.at))
		return ring.Mount{}, false
	}
	return r.decide()
}

// noColon refuses a path that the engine would cut: the form in which it makes a
// missing folder is source:target.
func (b *builderOf) noColon(service string, m ring.Mount) bool {
	for _, p := range []string{m.Source, m.Target} {
		if m.Create && strings.Contains(p, ":") {
			b.bad(b.mountPlace(service, m.Target), "make the folder on the host, and say bind: {create_host_path: false}", "services.%s volumes: the engine takes no colon in %s", service, head(p))
			return false
		}
	}
	return true
}

// pathMount is one mount of a path relative to the app.
type pathMount struct {
	*builderOf
	service, source string
	path            string // inside the commit
	mode            *mountMode
	create          bool
	at              place
	mount           ring.Mount // what the form says of it
}

// decide is the rule of mounts: what the commit holds is content, but a folder
// may be said to be data or seeded; what it does not hold is data.
func (r *pathMount) decide() (ring.Mount, bool) {
	h, f := r.hold(r.path, r.at)
	if f != nil {
		r.faults.put(f)
		return ring.Mount{}, false
	}
	said := ""
	if r.mode != nil {
		said = r.mode.mode
	}
	switch {
	case h.file != "" && said != "" && said != modeContent:
		return r.no("mount the folder it is in, or remove it from x-gitring mounts", "%s is a file of the commit, which is always read-only", r.path)
	case !h.held && (said == modeContent || said == modeSeed):
		return r.no("commit it, or write data", "the commit does not hold %s", r.path)
	case !h.held:
		made := "created on first use and never removed"
		if !r.create {
			made = "which must be there: create_host_path is false"
		}
		r.note("%s: %s %s, %s", r.service, r.source, ring.FolderNote(r.path), made)
		m := r.data()
		m.MustExist = !r.create
		return m, true
	case said == modeData || said == modeSeed:
		if some, _ := r.extras[r.service].reload.covers(r.path); some {
			return r.no("take it out of one of the two", "%s is reloaded in place, so it cannot be %s", r.source, said)
		}
	}
	switch {
	case said == modeData:
		r.heldNotes("what the commit holds in " + r.path + " is not written there")
		return r.data(), true
	case said == modeSeed:
		r.heldNotes("")
		m := r.data()
		m.Kind, m.Seed = ring.MountSeed, h.hash
		return m, true
	}
	if m, is, ok := r.live(h); is {
		return m, ok
	}
	opened, f := r.openedHeld(h, r.path, r.at, nil)
	if f != nil {
		r.faults.put(f)
		return ring.Mount{}, false
	}
	if opened.hash != h.hash && r.mount.SELinux != "" {
		r.faults.put(&fault{
			code: ring.SecretForm, place: r.at, says: r.path + " is encrypted, and the engine would make a folder in its place where it is missing, for " + r.mount.SELinux,
			hint: "take " + r.mount.SELinux + " out, or give it to the service as a secret",
		})
		return ring.Mount{}, false
	}
	return r.content(opened), true
}

func (r *pathMount) no(hint, says string, args ...any) (ring.Mount, bool) {
	r.bad(r.mode.place, hint, "services."+r.service+" x-gitring mounts: "+says, args...)
	return ring.Mount{}, false
}

func (r *pathMount) data() ring.Mount {
	m := r.mount
	m.Kind, m.Source = ring.MountData, r.path
	return m
}

func (r *pathMount) content(h held) ring.Mount {
	switch {
	case r.mount.ReadOnly || r.mode != nil:
	case h.file != "":
		r.note("%s: %s is mounted read-only from the commit, as every file of it is", r.service, r.path)
	default:
		r.note("%s: %s is mounted read-only from the commit; x-gitring mounts: {%s: data} makes it writable data", r.service, r.path, r.source)
	}
	r.ownFolder()
	m := r.mount
	if m.SELinux != "" {
		m.SELinux = types.SELinuxShared // one copy is for every instance that mounts it
	}
	m.Kind, m.Source, m.File, m.ReadOnly = ring.MountContent, h.hash, h.file, true
	return m
}

// heldNotes tell of a held folder that is data by x-gitring.
func (r *pathMount) heldNotes(says string) {
	if says != "" {
		r.note("%s: %s", r.service, says)
	}
	if r.mount.ReadOnly {
		r.note("%s: %s is the app's data by x-gitring mounts, although it is marked read-only", r.service, r.path)
	}
	if r.mode.mode == modeSeed {
		r.ownFolder()
	}
}

// ownFolder notes that the app's manifests are mounted with the rest.
func (r *pathMount) ownFolder() {
	if r.path == "." || r.path == r.from.path || strings.HasPrefix(r.from.path, r.path+"/") {
		r.note("%s: %s holds the Compose files and .env too, which are mounted with the rest; a change of any file in it is a new version", r.service, r.path)
	}
}
