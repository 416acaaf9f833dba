package gitsync

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/gitring/gitring/ring"
)

// openFor is how long a mirror stays open after it was opened: readers come in
// bursts, and an idle daemon has no use for the indexes of a large repository.
const openFor = 10 * time.Second

// objectCache bounds what an open mirror keeps of objects it read, in bytes.
const objectCache = 8 << 20

// mirror is the local copy of one branch: a bare repository with the whole
// history, one ref and no work tree. It is a cache: nothing in it is trusted
// without its hash, and a damaged one is built anew beside and swapped.
//
// It opens itself when it is read and is closed by rest. Safe for use by several
// goroutines; only one at a time may fill, rebuild or pack it.
type mirror struct {
	dir string
	ref plumbing.ReferenceName
	lim Limits
	// careful is set on a mirror that replaces a damaged one: every object is
	// hashed on its way in.
	careful bool
	// under is the mirror that a quarantine borrows from; nil of a mirror.
	under *mirror

	// mu guards what is below and every use of sto: go-git's storage is not safe
	// for two at once, and a swap must not happen under a reader.
	mu      sync.Mutex
	sto     *filesystem.Storage // nil while closed
	closing *time.Timer         // calls rest; nil while closed
	damaged error               // why it has to be built anew; nil when it is fine
}

// newMirror touches nothing on disk.
func newMirror(dir, source string, lim Limits) *mirror {
	return &mirror{dir: dir, ref: plumbing.ReferenceName("refs/gitring/" + source), lim: lim}
}

// open must be called with mu held.
func (m *mirror) open() (*filesystem.Storage, error) {
	if m.sto != nil {
		return m.sto, nil
	}
	if err := m.recover(); err != nil {
		return nil, err
	}
	_, err := os.Stat(filepath.Join(m.dir, "objects", "pack"))
	sto := filesystem.NewStorageWithOptions(osfs.New(m.dir), cache.NewObjectLRU(objectCache),
		filesystem.Options{KeepDescriptors: true})
	if errors.Is(err, os.ErrNotExist) {
		if err := m.create(sto); err != nil {
			return nil, err
		}
	}
	// The index of every pack is read here, so that a broken one is found now.
	if err := sto.HasEncodedObject(plumbing.ZeroHash); err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, m.spoil(fmt.Errorf("cannot open mirror %s: %w: %w", m.dir, err, errDamaged))
	}
	m.sto, m.closing = sto, time.AfterFunc(openFor, m.rest)
	return sto, nil
}

// recover finishes a swap that a crash cut in two: the old copy is better than
// none.
func (m *mirror) recover() error {
	if _, err := os.Lstat(m.dir); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	err := os.Rename(m.dir+".old", m.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot open mirror: %w", err)
	}
	return nil
}

func (m *mirror) create(sto *filesystem.Storage) error {
	if err := os.MkdirAll(filepath.Join(m.dir, "objects", "pack"), 0o700); err != nil {
		return fmt.Errorf("cannot make mirror: %w", err)
	}
	if m.careful {
		if err := os.WriteFile(m.hashedFile(), nil, 0o600); err != nil {
			return fmt.Errorf("cannot make mirror: %w", err)
		}
	}
	if _, err := git.Init(sto, nil); err != nil && !errors.Is(err, git.ErrRepositoryAlreadyExists) {
		return fmt.Errorf("cannot make mirror %s: %w", m.dir, err)
	}
	return nil
}

// hashedFile marks a mirror whose every object was hashed on its way in. One that
// was copied from a folder is not: its own readers hash what they read, and git,
// which merges, does not.
func (m *mirror) hashedFile() string { return filepath.Join(m.dir, "gitring-hashed") }

func (m *mirror) hashed() bool {
	_, err := os.Lstat(m.hashedFile())
	return err == nil
}

// sweep removes what a crash left half done. Only for the one who fills it,
// before it does.
func (m *mirror) sweep() {
	_ = os.RemoveAll(m.dir + ".new") // whatever stays is in nobody's way
	_ = os.RemoveAll(m.dir + incomingEnds)
}

// spoil notes that the mirror has to be built anew and returns err. Must be
// called with mu held.
func (m *mirror) spoil(err error) error {
	if m.damaged == nil {
		m.damaged = err
	}
	return err
}

// spoiled is told when a reader found something else than it asked for.
func (m *mirror) spoiled(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.spoil(err)
}

// damage is why the mirror has to be built anew, as far as was noticed; nil
// when it is fine.
func (m *mirror) damage() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.damaged
}

// rest gives memory and descriptors back; the next reader opens it again.
func (m *mirror) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.close()
}

// close must be called with mu held.
func (m *mirror) close() {
	if m.sto != nil {
		_ = m.sto.Close() // nothing was written through it
		m.closing.Stop()
		m.sto, m.closing = nil, nil
	}
}

// tip is the branch as last fetched; "" before the first time.
func (m *mirror) tip() ring.SHA {
	m.mu.Lock()
	defer m.mu.Unlock()
	sto, err := m.open()
	if err != nil {
		return ""
	}
	ref, err := sto.Reference(m.ref)
	if err != nil || ref.Type() != plumbing.HashReference {
		return ""
	}
	return ring.SHA(ref.Hash().String())
}

func (m *mirror) setTip(tip plumbing.Hash) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	sto, err := m.open()
	if err != nil {
		return err
	}
	if err := sto.SetReference(plumbing.NewHashReference(m.ref, tip)); err != nil {
		return fmt.Errorf("cannot write %s of mirror: %w", m.ref, err)
	}
	return nil
}

// has reports whether an object is here. Packs arrive whole, so what an object
// leads to is then here too.
func (m *mirror) has(sha plumbing.Hash) bool {
	return m.under != nil && m.under.has(sha) || m.hasItself(sha)
}

func (m *mirror) hasItself(sha plumbing.Hash) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	sto, err := m.open()
	return err == nil && sto.HasEncodedObject(sha) == nil
}

// Raw is the object as stored. It does not compare hashes; its callers do.
func (m *mirror) Raw(sha ring.SHA) (string, []byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sto, err := m.open()
	if err != nil {
		return "", nil, err
	}
	if err := m.fits(sha); err != nil {
		return "", nil, err
	}
	kind, body, err := rawOf(sto, sha)
	if err != nil && !errors.Is(err, ErrMissing) {
		return "", nil, m.spoil(fmt.Errorf("%w: %w", err, errDamaged))
	}
	return kind, body, err
}

// fits holds an object that came as a file of its own to what one of a pack was
// held to when it came: it is read whole.
func (m *mirror) fits(sha ring.SHA) error {
	if !plumbing.IsHash(string(sha)) {
		return nil // no file has that name
	}
	f, err := os.Open(filepath.Join(m.dir, "objects", string(sha[:2]), string(sha[2:])))
	if err != nil {
		return nil // it lies in a pack, or is missing, which its reader says
	}
	defer func() { _ = f.Close() }()
	r, err := objfile.NewReader(f)
	if err != nil {
		return nil // its reader says so
	}
	defer func() { _ = r.Close() }()
	kind, size, err := r.Header()
	limit := m.lim.Object
	if kind != plumbing.BlobObject {
		limit = min(limit, maxStructure)
	}
	if err == nil && size > limit {
		return fmt.Errorf("cannot read %s %s: it has %d bytes, at most %d are allowed: %w", kind, sha, size, limit, errTooBig)
	}
	return nil
}

// size is the length of an object's content as the store says it.
func (m *mirror) size(sha ring.SHA) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sto, err := m.open()
	if err != nil {
		return 0, err
	}
	n, err := sto.EncodedObjectSize(plumbing.NewHash(string(sha)))
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound):
		return 0, fmt.Errorf("cannot read object %s: %w", sha, ErrMissing)
	case err != nil:
		return 0, m.spoil(fmt.Errorf("cannot read object %s: %w: %w", sha, err, errDamaged))
	}
	return n, nil
}

// rawStorage is what of go-git's storage reading needs.
type rawStorage interface {
	EncodedObject(plumbing.ObjectType, plumbing.Hash) (plumbing.EncodedObject, error)
}

// rawOf copies an object's bytes out of go-git as they are stored; nothing is
// decoded and encoded again.
func rawOf(sto rawStorage, sha ring.SHA) (string, []byte, error) {
	if !plumbing.IsHash(string(sha)) {
		return "", nil, fmt.Errorf("cannot read object %q: not a full id: %w", sha, ErrMissing)
	}
	obj, err := sto.EncodedObject(plumbing.AnyObject, plumbing.NewHash(string(sha)))
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		if s, ok := sto.(*storage); ok && s.lacking() != "" {
			return "", nil, fmt.Errorf("cannot read object %s: %w: %s", sha, ErrMissing, s.lacking())
		}
		return "", nil, fmt.Errorf("cannot read object %s: %w", sha, ErrMissing)
	}
	if err != nil {
		return "", nil, fmt.Errorf("cannot read object %s: %w", sha, err)
	}
	r, err := obj.Reader()
	if err != nil {
		return "", nil, fmt.Errorf("cannot read object %s: %w", sha, err)
	}
	defer func() { _ = r.Close() }()
	body, err := io.ReadAll(r)
	if err != nil {
		return "", nil, fmt.Errorf("cannot read object %s: %w", sha, err)
	}
	return obj.Type().String(), body, nil
}

// haves names commits the mirror has, for a remote to leave out: the tip, and
// some way down from it in case the branch was forced back.
func (m *mirror) haves() []plumbing.Hash {
	const most = 64
	if m.under != nil {
		return m.under.haves()
	}
	tip := m.tip()
	if tip == "" {
		return nil
	}
	list := []plumbing.Hash{plumbing.NewHash(string(tip))}
	seen := map[plumbing.Hash]bool{list[0]: true}
	for i := 0; i < len(list) && len(list) < most; i++ {
		kind, body, err := m.Raw(ring.SHA(list[i].String()))
		if err != nil || kind != "commit" {
			continue
		}
		for _, p := range linksOf(body).parents {
			if !seen[p] && m.has(p) {
				seen[p] = true
				list = append(list, p)
			}
		}
	}
	return list
}

// swap puts the finished mirror next in this one's place.
func (m *mirror) swap(next *mirror) error {
	next.rest()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.close()
	old := m.dir + ".old"
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("cannot swap mirror: %w", err)
	}
	if err := os.Rename(m.dir, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot swap mirror: %w", err)
	}
	if err := os.Rename(next.dir, m.dir); err != nil {
		return fmt.Errorf("cannot swap mirror: %w", err)
	}
	m.damaged = nil
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("cannot remove the old mirror: %w", err)
	}
	return nil
}

// beside is an empty mirror next to this one, for rebuilding.
func (m *mirror) beside() (*mirror, error) {
	next := newMirror(m.dir+".new", "", m.lim)
	next.ref = m.ref
	if err := os.RemoveAll(next.dir); err != nil {
		return nil, fmt.Errorf("cannot rebuild mirror: %w", err)
	}
	return next, nil
}

// packNames are the packs on disk, without their endings.
func (m *mirror) packNames() ([]string, error) {
	files, err := os.ReadDir(m.packDir())
	if err != nil {
		return nil, fmt.Errorf("cannot list packs: %w", err)
	}
	var names []string
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".pack"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (m *mirror) packDir() string { return filepath.Join(m.dir, "objects", "pack") }
