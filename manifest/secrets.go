package manifest

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// objectKind is configs or secrets: files that services are given read-only.
type objectKind struct {
	key  string // at the top level and in a service
	one  string
	base string // where a relative target starts
}

var (
	configKind = objectKind{"configs", "config", "/"}
	secretKind = objectKind{"secrets", "secret", "/run/secrets"}
)

// objects are the mounts that configs and secrets of a service ask for.
func (b *builderOf) objects(c types.ServiceConfig) []ring.Mount {
	var out []ring.Mount
	for _, at := range c.Configs {
		out = append(out, b.object(configKind, c.Name, types.FileReferenceConfig(at))...)
	}
	for _, at := range c.Secrets {
		out = append(out, b.object(secretKind, c.Name, types.FileReferenceConfig(at))...)
	}
	return out
}

// object is one file at its target; none where it is refused.
func (b *builderOf) object(k objectKind, service string, ref types.FileReferenceConfig) []ring.Mount {
	at := b.entryPlace(service, k.key, func(n *node) bool { return n.text == ref.Source || textOf(n.get("source")) == ref.Source })
	o, known, declared := b.declaredObject(k, ref.Source)
	if !declared && b.lost(k.key, ref.Source) {
		return nil // told
	}
	if !declared {
		b.bad(at, undeclared(ref.Source, k.key, known), "services.%s takes %s %s, which is not declared", service, k.one, head(ref.Source))
		return nil
	}
	target := ref.Target
	if target == "" {
		target = ref.Source
	}
	if !path.IsAbs(target) {
		target = path.Join(k.base, target)
	}
	if path.Clean(target) == "/" {
		b.bad(at, "mount at an absolute path below /", "services.%s.%s: %q is no target of a mount", service, k.key, head(ref.Target))
		return nil
	}
	if path.IsAbs(o.File) { // a file of the host, as a bind mount of it would be
		from := b.place(k.key, ref.Source, "file")
		b.hostFiles[service+" "+path.Clean(target)] = ring.Place{File: from.file, Line: from.line}
		return []ring.Mount{{Kind: ring.MountBind, Source: path.Clean(o.File), Target: path.Clean(target), ReadOnly: true}}
	}
	owner := fileOwner(ref)
	if b.settings.Swarm && b.settings.NoChown { // a swarm is sent the bytes, which the daemon has to read
		owner = nil
	}
	h, f := b.objectContent(k, ref.Source, o, ref.Mode != nil && *ref.Mode&0o111 != 0, owner)
	if f != nil {
		b.faults.put(f)
		return nil
	}
	switch files := b.contents[h.hash].Files; {
	case len(files) == 0 || files[0].As == nil:
		b.noteOwner(k, service, ref)
	case b.settings.NoChown:
		b.note("%s: %s %s keeps the daemon's owner, and every user of the container may read it: gitring may not give files away here (CAP_CHOWN)", service, k.one, ref.Source)
	}
	return []ring.Mount{{Kind: ring.MountContent, Source: h.hash, File: h.file, Target: path.Clean(target), ReadOnly: true}}
}

func (b *builderOf) declaredObject(k objectKind, name string) (o types.FileObjectConfig, known []string, ok bool) {
	if k == configKind {
		c, ok := b.project.Configs[name]
		return types.FileObjectConfig(c), sortedKeys(b.project.Configs), ok
	}
	s, ok := b.project.Secrets[name]
	return types.FileObjectConfig(s), sortedKeys(b.project.Secrets), ok
}

// fileOwner is whose a file is to be, as Compose says it; nil where it says nothing, or
// nothing that is a number.
func fileOwner(ref types.FileReferenceConfig) *ring.FileOwner {
	if ref.UID == "" && ref.GID == "" && ref.Mode == nil {
		return nil
	}
	uid, wrongUID := strconv.ParseUint(or2(ref.UID, "0"), 10, 31)
	gid, wrongGID := strconv.ParseUint(or2(ref.GID, "0"), 10, 31)
	if wrongUID != nil || wrongGID != nil {
		return nil
	}
	to := &ring.FileOwner{UID: int(uid), GID: int(gid), Mode: 0o444}
	if ref.Mode != nil {
		to.Mode = uint32(*ref.Mode) & 0o777
	}
	return to
}

// noteOwner tells what a mounted file cannot carry: it is for every user of the
// container to read, as Compose has it for a mounted file.
func (b *builderOf) noteOwner(k objectKind, service string, ref types.FileReferenceConfig) {
	var not []string
	if ref.UID != "" && ref.UID != "0" {
		not = append(not, "uid")
	}
	if ref.GID != "" && ref.GID != "0" {
		not = append(not, "gid")
	}
	if m := ref.Mode; m != nil && *m != 0o444 && *m != 0o555 {
		not = append(not, fmt.Sprintf("mode %04o", int64(*m)))
	}
	if len(not) > 0 {
		b.note("%s: %s of %s %s is not carried out: the file is root's, and every user of the container may read it", service, strings.Join(not, ", "), k.one, ref.Source)
	}
}

// objectContent is what a config or secret holds: a file of the commit or of the
// host's env folder, a declared variable, or a text of the Compose file.
func (b *builderOf) objectContent(k objectKind, name string, o types.FileObjectConfig, exec bool, as *ring.FileOwner) (held, *fault) {
	at := func(key string) place { return b.place(k.key, name, key) }
	switch {
	case o.File != "":
		return b.objectFile(k, name, o.File, at("file"), exec, as)
	case o.Environment != "":
		vars := b.varsOf(k.key, name, "environment")
		if !vars.known(o.Environment) {
			return held{}, untold
		}
		val, ok := vars.value(o.Environment)
		if !ok {
			f := undefined(o.Environment, at("environment"))
			f.hint = inEnv
			return held{}, f
		}
		return b.made(val.sealed, at("environment"), exec, as)
	}
	return b.made(o.Content, at("content"), exec, as)
}

// varsOf are the variables that the file sees which says a key of the app: one
// that is included has its own.
func (b *builderOf) varsOf(chain ...string) *variables {
	for i := len(b.files) - 1; i >= 0; i-- {
		if n, took, _ := b.files[i].root.at(chain); took == len(chain) && !n.null() && b.files[i].vars != nil {
			return b.files[i].vars
		}
	}
	return b.vars
}

func (b *builderOf) objectFile(k objectKind, name, file string, at place, exec bool, as *ring.FileOwner) (held, *fault) {
	before := len(b.faults.list)
	p, ok := b.inCommit(b.from.path, file, at)
	if !ok {
		f := b.faults.list[before]
		b.faults.list = b.faults.list[:before]
		return held{}, &f
	}
	h, f := b.hold(p, at)
	host, own, has := b.hostFile(p)
	if f != nil && f.code == ring.SecretForm {
		if !has {
			return held{}, b.gitCryptOfHost(f, p)
		}
		f = nil
	}
	if f != nil {
		return held{}, f
	}
	if h.held {
		return b.openedHeld(h, p, at, as)
	}
	if has {
		val, f := host.whole(own)
		if f != nil {
			return held{}, f
		}
		return b.made(val.sealed, at, exec, as)
	}
	return held{}, b.elsewhere(at, p, "commit it", fmt.Sprintf("the commit does not hold %s, the file of %s %s", p, k.one, name))
}

// made is a content of one file that is not one of the commit.
func (b *builderOf) made(text string, at place, exec bool, as *ring.FileOwner) (held, *fault) {
	file := ring.ValueFile
	switch {
	case ring.HasSealed(text):
	case as.ForAll(), b.settings.Swarm: // what a daemon gave away it may not read, and a swarm is sent its bytes
		as = nil // as every file that commits mount
	default:
		file = ring.GivenFile
	}
	hash, f := b.madeContent([]ring.ContentFile{{
		Path: file, Exec: exec, Sealed: ring.HasSealed(text), As: as,
		Read: func() ([]byte, error) { return []byte(text), nil },
	}}, at)
	return held{held: true, hash: hash, file: file}, f
}
