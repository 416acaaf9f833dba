package gitsync

import (
	"fmt"

	"github.com/gitring/gitring/ring"
)

// Object is one object of Git as it is stored: commit, tree or blob.
type Object struct {
	Kind string
	Body []byte
}

// ID is what the object hashes to. collides reports whether it was made to have the id of
// another one.
func (o Object) ID() (id ring.SHA, collides bool) { return objectHash(o.Kind, o.Body) }

// Given are objects that somebody handed over. Nothing is believed of them but what their
// bytes hash to, so an object that is not there is missing, whatever is said of it.
type Given struct {
	objects map[ring.SHA]Object
	asked   map[ring.SHA]bool
}

// NewGiven names each object by its own bytes. The refusal is of one that was made to have
// the id of another.
func NewGiven(all []Object) (*Given, *ring.Refusal) {
	g := &Given{objects: make(map[ring.SHA]Object, len(all)), asked: map[ring.SHA]bool{}}
	for _, o := range all {
		id, collides := o.ID()
		if collides {
			return nil, sha1Collision(id)
		}
		g.objects[id] = o
	}
	return g, nil
}

// Raw is an object; the error wraps ErrMissing when it was not handed over.
func (g *Given) Raw(sha ring.SHA) (string, []byte, error) {
	o, ok := g.objects[sha]
	if !ok {
		return "", nil, &MissingError{sha}
	}
	g.asked[sha] = true
	return o.Kind, o.Body, nil
}

// Has reports whether an object was handed over.
func (g *Given) Has(sha ring.SHA) bool {
	_, ok := g.objects[sha]
	return ok
}

// Unasked is how many objects nobody asked for so far.
func (g *Given) Unasked() int { return len(g.objects) - len(g.asked) }

func (g *Given) size(sha ring.SHA) (int64, error) { return sizeOf(g, sha) }

func (g *Given) spoiled(error) {}

// Commit is a commit with its tree. Whether it is trusted is what v says.
func (g *Given) Commit(v ring.Verified) (*ring.Commit, error) {
	return commitOf(g, v, Limits{}.withDefaults())
}

// MissingError says which object is not there. It wraps ErrMissing.
type MissingError struct{ SHA ring.SHA }

func (m *MissingError) Error() string { return fmt.Sprintf("no object %s", m.SHA) }

// Unwrap says that it is absent.
func (m *MissingError) Unwrap() error { return ErrMissing }

func sizeOf(o Objects, sha ring.SHA) (int64, error) {
	_, body, err := o.Raw(sha)
	return int64(len(body)), err
}

// mostRecorded bounds what is noted of a store.
const mostRecorded = 256 << 20

// Recorded is a store that notes each object as it is read for the first time. Whoever is
// handed those objects can read the same again.
type Recorded struct {
	Objects
	known map[ring.SHA]bool
	list  []Object
	bytes int
}

// Record begins to note what is read of a store.
func Record(o Objects) *Recorded { return &Recorded{Objects: o, known: map[ring.SHA]bool{}} }

// Raw notes an object.
func (r *Recorded) Raw(sha ring.SHA) (string, []byte, error) {
	kind, body, err := r.Objects.Raw(sha)
	if err != nil || r.known[sha] {
		return kind, body, err
	}
	if r.bytes += len(body); r.bytes > mostRecorded {
		return "", nil, fmt.Errorf("cannot note object %s: more than %d bytes are read: %w", sha, mostRecorded, errLimit)
	}
	r.known[sha] = true
	r.list = append(r.list, Object{Kind: kind, Body: body})
	return kind, body, nil
}

// List is what was read, in order.
func (r *Recorded) List() []Object { return r.list }

// Has reports whether an object was read.
func (r *Recorded) Has(sha ring.SHA) bool { return r.known[sha] }

func (r *Recorded) size(sha ring.SHA) (int64, error) { return sizeOf(r, sha) }

func (r *Recorded) spoiled(error) {}

// Commit is a commit with its tree, whose files are noted as they are read.
func (r *Recorded) Commit(v ring.Verified) (*ring.Commit, error) {
	return commitOf(r, v, Limits{}.withDefaults())
}
