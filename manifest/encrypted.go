package manifest

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// Secrets opens encrypted files of a commit. Equal arguments give equal answers, as long as
// SecretsPrint of the Settings is the same.
type Secrets interface {
	// Encrypted reports whether a file is encrypted, by what it holds.
	Encrypted(body []byte) bool
	// Open opens a file for an app. A refusal says neither commit nor app, and a file only
	// where that is another one; it holds no value. OfFile tells those that are of the file.
	Open(f SecretFile) (*OpenedFile, *ring.Refusal)
	// Provided is what a provider of the host has for a reference, as far as that is known. A
	// refusal says neither commit nor app nor file.
	Provided(r SecretRef) (ProvidedValue, *ring.Refusal)
}

// SecretFile is an encrypted file of a commit, with the app that asks for it.
type SecretFile struct {
	Source, App string
	Folder      string // of the app, inside the commit
	Path        string // of the file itself, inside the commit: where a symlink to it leads
	Body        []byte
	// Another reports whether it lies in the folder of an app inside the app's own.
	Another bool
}

// OpenedFile is what an app gets of an encrypted file.
type OpenedFile struct {
	From ring.SealedFrom
	// Lines reports whether the file may have lines NAME=value: its form is not another one.
	Lines bool
	// Plain is what programs read. It is nil where Closed.
	Plain []byte
	// MAC is the keyed hash of a value at a key path; of the whole file for none.
	MAC func(path []string, value string) string
	// Closed reports whether nobody opened the file here. Names are then the variables in it, as
	// far as that is readable, and MACOf what stands for the MAC of one.
	Closed bool
	// Unopened is what a plan notes of a closed file, such as "not opened here"; "" is nothing.
	Unopened string
	Names    []string
	MACOf    func(name string) string
	// Known are what a plan says of the values, by name; nil where nobody knows that much.
	// Then MACOf is not asked.
	Known map[string]SealedValue
}

// ForKey is a name in an encrypted file by which the file says which apps it serves. It is
// handed to no container.
const ForKey = "gitring_for"

// closedValue stands for a value that nobody opened: it is not empty, and nobody's.
const closedValue = "\x00not opened here"

// closedWord is closedValue for one of which is known that it is one word.
const closedWord = "\x00sealed"

// noOpener stands where nobody gave an opener, as those do who only look for folders: what may
// be encrypted is refused.
type noOpener struct{}

// marksOfCiphertext stand in each file that SOPS or age wrote.
var marksOfCiphertext = []string{"ENC[AES256_GCM,data:", "age-encryption.org/v1", "BEGIN AGE ENCRYPTED FILE"}

func (noOpener) Encrypted(body []byte) bool {
	return slices.ContainsFunc(marksOfCiphertext, func(mark string) bool { return bytes.Contains(body, []byte(mark)) })
}

func (noOpener) Open(SecretFile) (*OpenedFile, *ring.Refusal) {
	return nil, &ring.Refusal{
		Code: ring.SecretKey, OfFile: true, Says: "is encrypted, and nothing opens it here",
		Hint: "put the values into the host's env folder (env.dir), and take the encrypted file out of what is mounted or read",
	}
}

// Provided asks nobody.
func (noOpener) Provided(r SecretRef) (ProvidedValue, *ring.Refusal) {
	return ProvidedValue{MAC: ring.NotOpened(r.Name)}, nil
}

// encrypted reports whether a file of the commit is encrypted.
func (r *reader) encrypted(body []byte) bool {
	return r.settings.Secrets.Encrypted(body)
}

// notHere refuses an encrypted file where gitring reads none.
func (r *reader) notHere(p string, body []byte, at place) *fault {
	if !r.encrypted(body) {
		return nil
	}
	if at.file == "" {
		at = place{file: p}
	}
	return &fault{
		code: ring.SecretForm, place: at, says: p + " is encrypted, and what it says shapes the plan",
		hint: "keep it readable, and put the values into an encrypted env file or secret",
	}
}

// openSecret opens an encrypted file for the app. at is where the file is asked for.
func (a *appReader) openSecret(p string, body []byte, at place) (*OpenedFile, *fault) {
	if a.nameLost {
		return nil, untold // whose it is cannot be judged
	}
	o, r := a.settings.Secrets.Open(SecretFile{Source: a.settings.Source, App: a.name, Folder: a.from.path, Path: p, Body: body, Another: a.ofAnother(p)})
	if r != nil {
		f := &fault{code: r.Code, place: place{file: p, line: r.Line}, says: r.Of(p).Says, hint: r.Hint}
		if r.Line == 0 && at.file != "" && r.Code != ring.SecretMAC {
			f.place = at
		}
		if !r.OfFile && (r.Code == ring.SecretMAC || f.place.file != p) {
			f.says = p + ": " + f.says // of something in it
		}
		return nil, f
	}
	if o.Unopened != "" {
		a.noteOnce(p + ": " + o.Unopened)
	}
	return o, nil
}

// ofAnother reports whether the folder of another app lies between the app's own and a file:
// whoever writes the outer app need not be allowed to write the inner one.
func (a *appReader) ofAnother(p string) bool {
	for dir := path.Dir(p); dir != a.from.path && dir != "."; dir = path.Dir(dir) {
		if a.folders[dir] || contains(a.reader.elsewhere, dir) {
			return true
		}
	}
	return false
}

// sealedFile is what stands for a value of an encrypted file.
func (a *appReader) sealedFile(o *OpenedFile, p, name, mac string) ring.Sealed {
	return ring.Sealed{From: o.From, App: a.name, File: p, Name: name, MAC: mac}
}

// closed is a value that nobody opened.
func (a *appReader) closed(o *OpenedFile, p, name string) value {
	if o.Known == nil {
		return value{plain: closedValue, sealed: a.sealedFile(o, p, name, o.MACOf(name)).String()}
	}
	v := o.Known[name]
	if v.MAC == "" {
		return value{}
	}
	s := a.sealedFile(o, p, name, v.MAC)
	a.plain[s] = v.stand()
	return value{plain: v.stand(), sealed: s.String()}
}

// wholeOf is an encrypted file as one value.
func (a *appReader) wholeOf(o *OpenedFile, p string) value {
	if o.Closed {
		return a.closed(o, p, "")
	}
	plain := string(o.Plain)
	if plain == "" {
		return value{}
	}
	s := a.sealedFile(o, p, "", o.MAC(nil, plain))
	a.plain[s] = plain
	return value{plain: plain, sealed: s.String()}
}

// secretEnv sets the variables of an encrypted env file. What such a file says of other
// variables is as in the host's env folder: earlier ones of the file, and the
// configuration's interpolation.
func (a *appReader) secretEnv(v *variables, p string, body []byte, raw bool) []*fault {
	at := place{file: p}
	o, f := a.openSecret(p, body, at)
	if f != nil {
		v.unsure = true
		return []*fault{f}
	}
	if !o.Lines {
		v.unsure = true
		return []*fault{{
			code: ring.SecretForm, place: at, says: p + " is encrypted in a form that has no lines NAME=value, and it is read as an env file",
			hint: "encrypt it as dotenv: give the plain file a name that ends in .env before you encrypt it",
		}}
	}
	if o.Closed {
		for _, name := range o.Names {
			if name != ForKey {
				v.set(name, a.closed(o, p, name), at)
			}
		}
		v.lenient = v.lenient || len(o.Names) == 0
		return nil
	}
	of, faults := hiddenVariables(saidAll(a.settings.Interpolation), sealLimits, p, o.Plain, raw)
	for name, plain := range of {
		if name == ForKey {
			continue
		}
		if plain == "" {
			v.set(name, value{}, at)
			continue
		}
		s := a.sealedFile(o, p, name, o.MAC([]string{name}, plain))
		a.hidden[hiddenValue{name, plain}] = true
		a.plain[s] = plain
		v.set(name, value{plain: plain, sealed: s.String()}, at)
	}
	v.unsure = v.unsure || faults != nil
	return faults
}

// SecretVariables are those of an opened env file, as a plan takes them from it; ok is false
// where it cannot be read as one.
func SecretVariables(plain []byte, interpolation map[string]string, raw bool) (of map[string]string, ok bool) {
	of, faults := hiddenVariables(saidAll(interpolation), sealLimits, "", plain, raw)
	return of, len(faults) == 0
}

// secretIn is the first value of an encrypted file or of a provider that stands sealed in a
// text. Values of the host's env folder are none.
func secretIn(text string) (found ring.Sealed, is bool) {
	for _, s := range ring.SealedIn(text) {
		if s.From != ring.FromEnvFolder {
			return s, true
		}
	}
	return ring.Sealed{}, false
}

// secretPlace refuses a secret in a place that shapes the plan.
func (a *appReader) secretPlace(at place, what string, s ring.Sealed) {
	a.faults.put(&fault{
		code: ring.SecretPlace, place: at, says: fmt.Sprintf("%s has %s of %s, and a secret may only stand where it reaches nothing but the container", what, or2(s.Name, "a value"), s.File),
		hint: "use it in environment, env_file, command after its first word, healthcheck.test, labels or a file",
	})
}

// openedHeld is what an app mounts of the commit, with its encrypted files sealed. Of what
// holds none it is the same.
func (a *appReader) openedHeld(h held, p string, at place, as *ring.FileOwner) (held, *fault) {
	paths := a.ciphers[h.hash]
	if len(paths) == 0 {
		return h, nil
	}
	real := a.tree.real(p).path
	files := make([]ring.ContentFile, 0, len(a.contents[h.hash].Files))
	for _, f := range a.contents[h.hash].Files {
		if !contains(paths, f.Path) {
			files = append(files, f)
			continue
		}
		full := real
		if h.file == "" {
			full = path.Join(real, f.Path)
		}
		body, err := f.Read()
		if err != nil {
			a.tree.unreadable(f.Path, err)
			return held{}, a.tree.broken
		}
		o, fault := a.openSecret(full, body, at)
		if fault != nil {
			return held{}, fault
		}
		text := a.wholeOf(o, full).sealed
		files = append(files, ring.ContentFile{
			Path: f.Path, Exec: f.Exec, Sealed: text != "", As: as,
			Read: func() ([]byte, error) { return []byte(text), nil },
		})
	}
	hash, f := a.madeContent(files, at)
	return held{held: true, hash: hash, file: h.file}, f
}

// madeContent is a content that is not one of the commit's own.
func (a *appReader) madeContent(files []ring.ContentFile, at place) (string, *fault) {
	hash, f := a.content(files, at)
	if told := a.tree.facts; told != nil && f == nil {
		told.made = append(told.made, a.contents[hash])
	}
	return hash, f
}

// noCiphers refuses what would hand ciphertext to a container: each way that opens no
// encrypted file ends here.
func (b *builderOf) noCiphers(app *ring.App) {
	for i := range app.Services {
		s := &app.Services[i]
		for _, m := range s.Spec.Mounts {
			paths := b.ciphers[contentOf(s, m)]
			if len(paths) == 0 {
				continue
			}
			how := "it is handed over as it is"
			switch m.Kind {
			case ring.MountSeed:
				how = "a seeded folder is the app's data, where no secret is written"
			case ring.MountLive:
				how = "a folder that is reloaded in place is written to the disk of the host"
			}
			b.faults.put(&fault{
				code: ring.SecretForm, place: b.mountPlace(s.Name, m.Target), says: fmt.Sprintf("services.%s mounts %s, which is encrypted, and %s", s.Name, paths[0], how),
				hint: "give it to the service as a secret (secrets: {x: {file: …}}), or mount it by itself",
			})
		}
	}
}

// judgedLabels are the beginnings of labels that the policy judges by their values.
var judgedLabels = []string{"traefik.", "caddy", "ofelia.", "chadburn.", "io.portainer.", "com.docker.", "gitring."}

// judgedVariables are those that the policy judges, or that a front takes.
var judgedVariables = []string{"LD_", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "VIRTUAL_", "LETSENCRYPT_"}

// secretPlaces refuses secrets in places whose values the policy judges itself, and as the
// first word of a command.
func (b *builderOf) secretPlaces(app *ring.App) {
	for i := range app.Services {
		s := &app.Services[i]
		if s.FrontOf != "" {
			continue
		}
		check := func(text string, key ...string) {
			if secret, is := secretIn(text); is {
				b.secretPlace(b.place(append([]string{"services", s.Name}, key...)...), "services."+s.Name+"."+strings.Join(key, "."), secret)
			}
		}
		for _, name := range sortedKeys(s.Spec.Labels) {
			// As the policy reads them, which is as the most lenient program does.
			if beginsWithAny(strings.ToLower(strings.TrimSpace(name)), judgedLabels) {
				check(s.Spec.Labels[name], "labels", name)
			}
		}
		for _, name := range sortedKeys(s.Spec.Environment) {
			if beginsWithAny(name, judgedVariables) {
				check(s.Spec.Environment[name], "environment", name)
			}
		}
		if s.Spec.Logging != nil {
			for _, name := range sortedKeys(s.Spec.Logging.Options) {
				if strings.Contains(name, "address") || strings.Contains(name, "url") || strings.Contains(name, "endpoint") || strings.Contains(name, "host") {
					check(s.Spec.Logging.Options[name], "logging", "options", name)
				}
			}
		}
		b.noteSecrets(s)
		check(firstOf(s.Spec.Command), "command")
		check(firstOf(s.Spec.Entrypoint), "entrypoint")
		check(firstOf(strings.Fields(s.Spec.CommandText)), "command")
		check(firstOf(strings.Fields(s.Spec.EntrypointText)), "entrypoint")
		if h := s.Spec.Healthcheck; h != nil && len(h.Test) > 1 && h.Test[0] == "CMD" {
			check(h.Test[1], "healthcheck", "test")
		}
		for key, hooks := range map[string][]ring.Hook{"post_start": s.Spec.PostStart, "pre_stop": s.Spec.PreStop} {
			for _, h := range hooks {
				check(firstOf(h.Command), key)
				for _, name := range sortedKeys(h.Environment) {
					if beginsWithAny(name, judgedVariables) {
						check(h.Environment[name], key)
					}
				}
			}
		}
	}
}

// noteSecrets tells where the engine keeps the secrets of a service that are no files.
func (b *builderOf) noteSecrets(s *ring.Service) {
	for _, value := range s.Spec.Environment {
		if _, is := secretIn(value); is {
			b.noteOnce(fmt.Sprintf("environment of %s/%s has secrets: the engine keeps them on its disk, and docker inspect shows them; mounted as a file they would be in neither", b.name, s.Name))
			break
		}
	}
	words := append(append([]string{s.Spec.CommandText, s.Spec.EntrypointText}, s.Spec.Command...), s.Spec.Entrypoint...)
	if _, is := secretIn(strings.Join(words, " ")); is {
		b.noteOnce(fmt.Sprintf("command of %s/%s: every user of the host sees it in ps", b.name, s.Name))
	}
	if b.settings.Unplaced && slices.ContainsFunc(s.Spec.Mounts, b.mountsSecret) {
		b.noteOnce(fmt.Sprintf("files of %s/%s: they are in memory, and after a reboot without gitring it does not start; systemctl enable gitring-secrets places them first", b.name, s.Name))
	}
}

// mountsSecret reports whether a mount holds a value of an encrypted file or of a provider.
func (b *builderOf) mountsSecret(m ring.Mount) bool {
	if m.Kind != ring.MountContent {
		return false
	}
	return slices.ContainsFunc(b.contents[m.Source].Files, func(f ring.ContentFile) bool {
		if !f.Sealed {
			return false
		}
		body, err := f.Read()
		if err != nil {
			return false // told where it is written
		}
		_, is := secretIn(string(body))
		return is
	})
}

func beginsWithAny(name string, all []string) bool {
	for _, start := range all {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}

func firstOf(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}
