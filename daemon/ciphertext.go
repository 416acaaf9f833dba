package daemon

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
)

// cipherStore keeps the encrypted files that plans were made of, as they are: so that a
// version can be made again without the forge, and after its key is gone from newer
// ciphertext of the same values. It lies in <state>/ciphertext: <sha256> is a file as it
// was encrypted, <id>.json says what an app's plan took from it. No value is in it.
type cipherStore struct {
	dir string

	mu  sync.Mutex // guards all
	all []*cipherEntry
}

// cipherEntry is one encrypted file as one app used it.
type cipherEntry struct {
	// From is where the values are from; "" is an encrypted file.
	From ring.SealedFrom `json:"from,omitempty"`
	// By is the program that said the value of a provider; "" is any, as of an earlier release.
	By     string    `json:"by,omitempty"`
	Sum    string    `json:"sum"` // sha256 of the ciphertext; "" where a value is not kept
	Source string    `json:"source"`
	App    string    `json:"app"`
	File   string    `json:"file"`
	At     time.Time `json:"at"` // when it was first opened
	// MACs are those that stand in plans, by the name of the variable; "" is the whole file.
	// A file of lines has two of a name where its two readings differ.
	MACs map[string][]string `json:"macs"`
}

func (e *cipherEntry) id() string {
	of := fmt.Appendf(nil, "%q %q %q %q", e.Sum, e.Source, e.App, e.File)
	if e.From == ring.FromProvider { // one reference may be the value of several variables
		of = fmt.Appendf(of, " %q", slices.Sorted(maps.Keys(e.MACs)))
	}
	sum := sha256.Sum256(of)
	return hex.EncodeToString(sum[:])
}

// whole tells entries of the same values from others.
func (e *cipherEntry) whole() string {
	if e.From == ring.FromProvider {
		return fmt.Sprint(e.MACs)
	}
	return strings.Join(e.MACs[""], "")
}

func (e *cipherEntry) has(s ring.Sealed) bool {
	return e.App == s.App && e.File == s.File && slices.Contains(e.MACs[s.Name], s.MAC)
}

const cipherMark = ".tmp-"

// openCipherStore reads what is kept. An entry that cannot be read is left out: the commit
// has what it was made of.
func openCipherStore(dir string) (*cipherStore, error) {
	s := &cipherStore{dir: dir}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the encrypted files that are kept: %w", err)
	}
	for _, f := range entries {
		if !strings.HasSuffix(f.Name(), ".json") {
			continue
		}
		body, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("cannot read what is kept of an encrypted file: %w", err)
		}
		var e cipherEntry
		if json.Unmarshal(body, &e) == nil && e.id()+".json" == f.Name() {
			s.all = append(s.all, &e)
		}
	}
	return s, nil
}

// sweep removes what a crash left half written.
func (s *cipherStore) sweep() error {
	left, err := filepath.Glob(filepath.Join(s.dir, cipherMark+"*"))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

func sumOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// keep writes an entry with its ciphertext. One that is there keeps its time.
func (s *cipherStore) keep(e cipherEntry, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.all, func(o *cipherEntry) bool { return o.id() == e.id() })
	if i >= 0 && maps.EqualFunc(s.all[i].MACs, e.MACs, slices.Equal) {
		if _, err := os.Lstat(filepath.Join(s.dir, e.Sum)); err == nil {
			return nil
		}
	}
	if i >= 0 && !s.all[i].At.IsZero() {
		e.At = s.all[i].At
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot keep what a plan takes of %s: %w", e.File, err)
	}
	if e.Sum != "" {
		if err := s.blob(body); err != nil {
			return err
		}
	}
	text, err := json.Marshal(e)
	if err == nil {
		err = disk.WriteWhole(filepath.Join(s.dir, e.id()+".json"), cipherMark, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot keep what a plan takes of %s: %w", e.File, err)
	}
	if i >= 0 {
		s.all[i] = &e
	} else {
		s.all = append(s.all, &e)
	}
	return nil
}

// blob keeps bytes by their hash. They are ciphertext, or a file of a commit in clear.
func (s *cipherStore) blob(body []byte) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot keep an encrypted file: %w", err)
	}
	name := filepath.Join(s.dir, sumOf(body))
	if have, err := os.ReadFile(name); err == nil && bytes.Equal(have, body) {
		return nil
	}
	if err := disk.WriteWhole(name, cipherMark, body, 0o600); err != nil {
		return fmt.Errorf("cannot keep an encrypted file: %w", err)
	}
	return nil
}

// read is a blob by its hash.
func (s *cipherStore) read(sum string) ([]byte, error) {
	body, err := os.ReadFile(filepath.Join(s.dir, sum))
	if err == nil && sumOf(body) != sum {
		err = errors.New("it was changed")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read an encrypted file that is kept: %w", err)
	}
	return body, nil
}

// hold reports whether there is ciphertext of all MACs.
func (s *cipherStore) hold(macs map[string]bool) bool {
	left := maps.Clone(macs)
	for _, e := range s.find(func(*cipherEntry) bool { return true }) {
		for _, all := range e.MACs {
			for _, mac := range all {
				delete(left, mac)
			}
		}
	}
	return len(left) == 0
}

// with are the entries that hold a sealed value, the newest first.
func (s *cipherStore) with(v ring.Sealed) (found []cipherEntry) {
	return s.find(func(e *cipherEntry) bool { return e.has(v) })
}

// of is what is known of a ciphertext that an app of a source asked for at a path.
func (s *cipherStore) of(source, app, file, sum string) (cipherEntry, bool) {
	found := s.find(func(e *cipherEntry) bool { return e.Sum == sum && e.Source == source && e.App == app && e.File == file })
	if len(found) == 0 {
		return cipherEntry{}, false
	}
	return found[0], true
}

// like are other entries of the same file with the same values, the newest first.
func (s *cipherStore) like(e cipherEntry) []cipherEntry {
	return s.find(func(o *cipherEntry) bool {
		return o.Sum != e.Sum && o.Source == e.Source && o.App == e.App && o.File == e.File && e.whole() != "" && o.whole() == e.whole()
	})
}

func (s *cipherStore) find(fits func(*cipherEntry) bool) (found []cipherEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		if fits(e) {
			found = append(found, *e)
		}
	}
	slices.SortStableFunc(found, func(a, b cipherEntry) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Sum, b.Sum)) })
	return found
}

// mostAlike is how many ciphertexts of the same values are kept: each is told apart by what
// it was encrypted for, and only the newest are opened.
const mostAlike = 4

// prune leaves what named says of, and the blobs in need.
func (s *cipherStore) prune(named func(e *cipherEntry) bool, need map[string]bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.all, func(a, b *cipherEntry) int { return b.At.Compare(a.At) })
	alike := map[string]int{}
	sums := maps.Clone(need)
	if sums == nil {
		sums = map[string]bool{}
	}
	var left []*cipherEntry
	var all []error
	for _, e := range s.all {
		key := fmt.Sprintf("%q %q %q %q", e.Source, e.App, e.File, e.whole())
		if alike[key]++; named(e) && alike[key] <= mostAlike {
			left, sums[e.Sum] = append(left, e), true
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, e.id()+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
			left = append(left, e)
		}
	}
	s.all = left
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		all = append(all, err)
	}
	for _, f := range entries {
		if name := f.Name(); len(name) == sha256.Size*2 && !sums[name] {
			all = append(all, os.Remove(filepath.Join(s.dir, name)))
		}
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("cannot remove encrypted files that nothing needs: %w", err)
	}
	return nil
}
