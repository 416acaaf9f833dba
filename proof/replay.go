package proof

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/secrets"
)

// replay opens no file: it gives what a plan says of the values in it.
type replay struct{ known manifest.SealedValues }

// Encrypted reports whether a file is encrypted, by what it holds.
func (r replay) Encrypted(body []byte) bool {
	_, is := secrets.FormOf(body)
	return is
}

// Open tells the names of a file and the keyed hashes of its values.
func (r replay) Open(f manifest.SecretFile) (*manifest.OpenedFile, *ring.Refusal) {
	read, err := secrets.Read(f.Body)
	if err != nil {
		return nil, &ring.Refusal{Code: ring.SecretForm, Says: "it cannot be read: " + err.Error()}
	}
	known := r.known[f.App][f.Path]
	if known == nil {
		known = map[string]manifest.SealedValue{}
	}
	out := &manifest.OpenedFile{
		From: ring.FromSOPS, Lines: slices.Contains([]secrets.Form{secrets.Env, secrets.Binary, secrets.Age}, read.Form),
		Closed: true, Known: known,
	}
	if read.Form == secrets.Age {
		out.From = ring.FromAge
	}
	if read.Form == secrets.Env {
		known = named(read, known)
		out.Known = known
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if name != "" {
			out.Names = append(out.Names, name)
		}
	}
	return out, nil
}

// named are the variables that an encrypted file names for everybody to read, and no other.
// One of which nothing is said is not empty.
func named(read *secrets.File, said map[string]manifest.SealedValue) map[string]manifest.SealedValue {
	out := map[string]manifest.SealedValue{}
	if v, ok := said[""]; ok {
		out[""] = v
	}
	for _, at := range read.Names() {
		name := strings.TrimSpace(strings.TrimPrefix(at[0], "export "))
		if len(at) != 1 || name == manifest.ForKey {
			continue
		}
		v, ok := said[name]
		if !ok {
			v = manifest.SealedValue{MAC: ring.NotOpened(name)}
		}
		out[name] = v
	}
	return out
}

// Provided is what a plan says of a value that a provider said.
func (r replay) Provided(ref manifest.SecretRef) (manifest.ProvidedValue, *ring.Refusal) {
	if v, ok := r.known[ref.App][ref.Ref][ref.Name]; ok {
		return manifest.ProvidedValue{Stand: &v}, nil
	}
	return manifest.ProvidedValue{MAC: ring.NotOpened(ref.Name)}, nil
}

// Listener notes what a plan says of the values of encrypted files while they are opened.
type Listener struct {
	manifest.Secrets

	mu    sync.Mutex // guards Known
	Known manifest.SealedValues
}

// Listen notes what inner opens; inner is not nil.
func Listen(inner manifest.Secrets) *Listener {
	return &Listener{Secrets: inner, Known: manifest.SealedValues{}}
}

// Open opens a file, and notes what is asked of its values.
func (l *Listener) Open(f manifest.SecretFile) (*manifest.OpenedFile, *ring.Refusal) {
	o, r := l.Secrets.Open(f)
	if r != nil || o.Closed {
		return o, r
	}
	l.put(f, "", manifest.SealedValue{})
	if of, ok := manifest.SecretVariables(o.Plain, nil, false); ok {
		for name, plain := range of {
			if plain == "" && name != manifest.ForKey { // no hash is asked of nothing
				l.put(f, name, manifest.SealedValue{})
			}
		}
	}
	mac := o.MAC
	o.MAC = func(path []string, value string) string {
		hash, name := mac(path, value), ""
		if len(path) > 0 {
			name = path[0]
		}
		l.put(f, name, manifest.SealedOpened(hash, value))
		return hash
	}
	return o, nil
}

// Provided asks for a value, and notes what a plan says of it.
func (l *Listener) Provided(ref manifest.SecretRef) (manifest.ProvidedValue, *ring.Refusal) {
	v, r := l.Secrets.Provided(ref)
	if r == nil && v.Known {
		of := manifest.SealedValue{}
		if v.Plain != "" {
			of = manifest.SealedOpened(v.MAC, v.Plain)
		}
		l.put(manifest.SecretFile{App: ref.App, Path: ref.Ref}, ref.Name, of)
	}
	return v, r
}

func (l *Listener) put(f manifest.SecretFile, name string, v manifest.SealedValue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.Known[f.App][f.Path][name]; v.MAC != "" || old.MAC == "" {
		l.Known.Put(f.App, f.Path, name, v)
	}
}
