package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// placedList is the list of files with values of encrypted files, as they stand in plans:
// sealed. It lies in <state>/secrets.json and is replaced whole, so that they can be placed
// before the engine starts with nothing but this list, the ciphertext and the keys.
type placedList struct {
	file string
	kept *cipherStore // for files in clear of the same content

	mu  sync.Mutex // guards all
	all map[string]placedContent
}

// placedContent is one content with such a file in it.
type placedContent struct {
	// Disk reports whether it lies on the disk, and not in memory.
	Disk bool `json:"disk,omitempty"`
	// Spare reports whether only an undo may need it: its values lie nowhere until then.
	Spare bool         `json:"spare,omitempty"`
	Files []placedFile `json:"files"`
}

type placedFile struct {
	Path string          `json:"path"`
	Exec bool            `json:"exec,omitempty"`
	As   *ring.FileOwner `json:"as,omitempty"`
	// Sealed is the text with its values sealed; "" for a file of the commit in clear, which
	// is kept by its hash Sum.
	Sealed string `json:"sealed,omitempty"`
	Sum    string `json:"sum,omitempty"`
}

const listMark = ".secrets-"

func openPlacedList(file string, kept *cipherStore) (*placedList, error) {
	l := &placedList{file: file, kept: kept, all: map[string]placedContent{}}
	body, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of secrets: %w", err)
	}
	if err := json.Unmarshal(body, &l.all); err != nil {
		return nil, fmt.Errorf("cannot read the list of secrets %s: %w", file, err)
	}
	return l, nil
}

// add has a content in the list, on disk.
func (l *placedList) add(c ring.Content, onDisk bool) error {
	p := placedContent{Disk: onDisk}
	for _, f := range c.Files {
		body, err := f.Read()
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", f.Path, err)
		}
		to := placedFile{Path: f.Path, Exec: f.Exec, As: f.As}
		if f.Sealed {
			to.Sealed = string(body)
		} else {
			to.Sum = sumOf(body)
			if err := l.kept.blob(body); err != nil {
				return err
			}
		}
		p.Files = append(p.Files, to)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if was, ok := l.all[c.Hash]; ok && was.Disk == onDisk && !was.Spare {
		return nil
	}
	l.all[c.Hash] = p
	return l.save()
}

// save writes the list; mu is held.
func (l *placedList) save() error {
	body, err := json.Marshal(l.all)
	if err == nil {
		err = disk.WriteWhole(l.file, listMark, body, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot write the list of secrets: %w", err)
	}
	return nil
}

func (l *placedList) has(hash string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.all[hash]
	return ok
}

// inMemory reports whether a content of the list lies in memory.
func (l *placedList) inMemory(hash string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.all[hash]
	return ok && !c.Disk
}

// isPlaced reports whether a content of the list lies in its place, on the disk or not.
func (l *placedList) isPlaced(hash string, onDisk bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.all[hash]
	return ok && !c.Spare && c.Disk == onDisk
}

// spare has contents placed no more that are not kept. They stay in the list.
func (l *placedList) spare(kept func(hash string) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := false
	for hash, c := range l.all {
		if !c.Spare && !kept(hash) {
			c.Spare, changed = true, true
			l.all[hash] = c
		}
	}
	if !changed {
		return nil
	}
	return l.save()
}

func (l *placedList) keep(hashes map[string]bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.all)
	maps.DeleteFunc(l.all, func(hash string, _ placedContent) bool { return !hashes[hash] })
	if len(l.all) == before {
		return nil
	}
	return l.save()
}

// each calls do for each file with values in the list.
func (l *placedList) each(do func(hash string, f placedFile) error) error {
	l.mu.Lock()
	all := maps.Clone(l.all)
	l.mu.Unlock()
	for hash, c := range all {
		for _, f := range c.Files {
			if f.Sealed == "" {
				continue
			}
			if err := do(hash, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// contents are those of the list that are placed in memory, or on disk.
func (l *placedList) contents(onDisk bool) []ring.Content {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []ring.Content
	for _, hash := range slices.Sorted(maps.Keys(l.all)) {
		if l.all[hash].Disk != onDisk || l.all[hash].Spare {
			continue
		}
		c := ring.Content{Hash: hash}
		for _, f := range l.all[hash].Files {
			c.Files = append(c.Files, ring.ContentFile{
				Path: f.Path, Exec: f.Exec, As: f.As, Sealed: f.Sealed != "",
				Read: func() ([]byte, error) {
					if f.Sealed != "" {
						return []byte(f.Sealed), nil
					}
					return l.kept.read(f.Sum)
				},
			})
		}
		out = append(out, c)
	}
	return out
}

// needs are the blobs that the list needs, and the MACs of values in it.
func (l *placedList) needs() (blobs, macs map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	blobs, macs = map[string]bool{}, map[string]bool{}
	for _, c := range l.all {
		for _, f := range c.Files {
			if f.Sum != "" {
				blobs[f.Sum] = true
			}
			macsIn(f.Sealed, macs)
		}
	}
	return blobs, macs
}

// macsIn adds the MACs of values of encrypted files in a text.
func macsIn(text string, macs map[string]bool) {
	for _, s := range ring.SealedIn(text) {
		if s.From != ring.FromEnvFolder && s.Opened() {
			macs[s.MAC] = true
		}
	}
}

// places are the folders in which files with values lie: those of the env folder on disk,
// those of encrypted files where the configuration says.
type places struct {
	disk   store.Place
	memory store.Place // zero where at_rest is disk
	before store.Place // in memory too: where at_rest is disk now, and once was not
	list   *placedList
}

// unitLinks are where systemd notes that the files are placed before the engine starts.
var unitLinks = []string{
	"/etc/systemd/system/docker.service.wants/gitring-secrets.service",
	"/usr/lib/systemd/system/docker.service.wants/gitring-secrets.service",
}

// atRest is where files of encrypted files lie. Without the unit that places them before
// the engine starts a host without gitring would be worse off than one with Compose.
func atRest(c *config.Config) string {
	if c.Secrets.AtRest != "" {
		return c.Secrets.AtRest
	}
	if unitEnabled() {
		return config.AtRestMemory
	}
	return config.AtRestDisk
}

// unplaced reports whether files with secrets lie in memory and nothing places them there
// before the engine starts.
func (d *Daemon) unplaced() bool {
	return d.cfg.Secrets.Used() && atRest(d.cfg) == config.AtRestMemory && !unitEnabled()
}

// unitEnabled reports whether files with secrets are placed before the engine starts.
func unitEnabled() bool {
	return slices.ContainsFunc(unitLinks, func(link string) bool {
		_, err := os.Lstat(link)
		return err == nil
	})
}

// listOf is where the list of files with secrets lies.
func listOf(state string) string { return filepath.Join(state, "secrets.json") }

func secretsOnDisk(state string) string { return filepath.Join(state, "secrets") }

// newPlaces are the places of a host. Nothing is made yet.
func newPlaces(c *config.Config, kept *cipherStore) (p places, err error) {
	p.disk = store.PlaceAt(secretsOnDisk(c.State))
	if atRest(c) == config.AtRestMemory && c.Secrets.Used() {
		p.memory = store.PlaceAt(c.Secrets.Dir)
	} else if claimedBy(c.Secrets.Dir, c.State) {
		p.before = store.PlaceAt(c.Secrets.Dir)
	}
	p.list, err = openPlacedList(listOf(c.State), kept)
	return p, err
}

// begin makes the places ready to be written to. One in memory has to be in memory.
func (p places) begin() error {
	if err := p.list.kept.sweep(); err != nil {
		return fmt.Errorf("cannot sweep the encrypted files that are kept: %w", err)
	}
	if err := p.disk.Sweep(); err != nil {
		return err
	}
	if err := p.ready(); err != nil || p.memory == (store.Place{}) {
		return err
	}
	return p.memory.Sweep()
}

// ready makes the place in memory, and holds it to that. It is asked before each write: what
// was mounted there at the start may be gone.
func (p places) ready() error {
	if p.memory == (store.Place{}) {
		return nil
	}
	if err := makeMemoryDir(p.memory.Dir()); err != nil {
		return err
	}
	return claim(p.memory.Dir(), filepath.Dir(p.list.file))
}

// claimFile says whose a folder of secrets is: it holds the path of a state directory. The
// daemon removes what none of its plans names, and may not do so to that of another one.
const claimFile = ".state"

// claimedBy reports whether a folder of secrets is that of a state directory.
func claimedBy(dir, state string) bool {
	of, err := os.ReadFile(filepath.Join(dir, claimFile))
	return err == nil && string(of) == state
}

func claim(dir, state string) error {
	name := filepath.Join(dir, claimFile)
	of, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := disk.WriteWhole(name, listMark, []byte(state), 0o600); err != nil {
			return fmt.Errorf("cannot note whose secrets.dir is: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("cannot tell whose secrets.dir is: %w", err)
	case string(of) != state:
		return &ring.HostError{
			Says: fmt.Sprintf("secrets.dir %s is that of the daemon with the state %s", dir, of),
			Hint: "name another folder in secrets.dir of this one, or remove " + name + " where there is no such daemon any more",
		}
	}
	return nil
}

// makeMemoryDir makes the folder of secrets, which nobody else may enter, and holds it to
// its promise: what is written there reaches no disk.
func makeMemoryDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &ring.HostError{Says: fmt.Sprintf("cannot make secrets.dir: %v", err), Hint: "name a folder below /run in secrets.dir, or write secrets: {at_rest: disk}", Err: err}
	}
	if err := disk.OwnFolder(dir, os.Geteuid()); err != nil { // before anything is changed: a link leads elsewhere
		return &ring.HostError{Says: "cannot trust secrets.dir: " + err.Error(), Hint: "remove it, and name a folder that others cannot replace, such as " + config.DefaultSecretsDir, Err: err}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return &ring.HostError{Says: fmt.Sprintf("cannot close secrets.dir to others: %v", err), Hint: "it is for the user that gitring runs as: chown it", Err: err}
	}
	is, err := inMemory(dir)
	if err != nil {
		return fmt.Errorf("cannot tell what file system %s lies on: %w", dir, err)
	}
	if !is {
		return &ring.HostError{
			Says: "SecretsOnDisk: secrets.dir " + dir + " is on no memory file system",
			Hint: "name a folder on tmpfs such as " + config.DefaultSecretsDir + ", or write secrets: {at_rest: disk}",
		}
	}
	return nil
}

// of is the place of a content with values.
func (p places) of(c ring.Content) store.Place {
	if p.memory != (store.Place{}) && fromCommit(c) {
		return p.memory
	}
	return p.disk
}

// elsewhere are copies of contents that lie where at_rest had them before it was changed, by
// their folders. Containers that were made before still mount them.
func (p places) elsewhere() (map[string]store.Place, error) {
	out := map[string]store.Place{}
	for _, at := range []store.Place{p.disk, p.before} {
		if at == (store.Place{}) || at == p.disk && (p.memory == (store.Place{}) || p.list == nil) {
			continue
		}
		hashes, err := at.Hashes()
		if err != nil {
			return nil, err
		}
		for _, hash := range hashes {
			if at == p.before || p.list.inMemory(hash) {
				out[filepath.Join(at.Dir(), hash)] = at
			}
		}
	}
	return out, nil
}

// hasValues reports whether a file of a content has a value sealed in it.
func hasValues(c ring.Content) bool {
	return slices.ContainsFunc(c.Files, func(f ring.ContentFile) bool { return f.Sealed })
}

// fromCommit reports whether a content has a value of an encrypted file or a provider.
func fromCommit(c ring.Content) bool {
	for _, f := range c.Files {
		if !f.Sealed {
			continue
		}
		body, err := f.Read()
		if err != nil {
			return true
		}
		if slices.ContainsFunc(ring.SealedIn(string(body)), func(s ring.Sealed) bool { return s.From != ring.FromEnvFolder }) {
			return true
		}
	}
	return false
}

// each calls do for each content that is placed, and where.
func (p places) each(do func(c ring.Content, at store.Place)) {
	for _, onDisk := range []bool{false, true} {
		at := p.memory
		if onDisk || at == (store.Place{}) {
			at = p.disk
		}
		for _, c := range p.list.contents(onDisk) {
			do(c, at)
		}
	}
}

// place writes what the list has in memory, and is missing there.
func (p places) place(ctx context.Context, opened func(ring.Content) ring.Content) error {
	var all []error
	p.each(func(c ring.Content, at store.Place) { all = append(all, at.Write(ctx, opened(c))) })
	return errors.Join(all...)
}

// PlaceSecrets writes the files of encrypted files of which the list of the last daemon
// says that containers mount them. It asks no engine, network or database. Half-written
// folders stay: a daemon that runs may be writing them.
func PlaceSecrets(ctx context.Context, c *config.Config) (placed int, err error) {
	if err := ownState(c.State); err != nil {
		return 0, err
	}
	if _, err := os.Lstat(listOf(c.State)); errors.Is(err, fs.ErrNotExist) {
		return 0, nil // no daemon ran yet, or none had such a file
	}
	e, err := newEnvFolder(c)
	if err != nil {
		return 0, err
	}
	s, err := newSecretFiles(c, e.key)
	if err != nil {
		return 0, err
	}
	p, err := newPlaces(c, s.kept)
	if err != nil {
		return 0, err
	}
	if err := p.ready(); err != nil {
		return 0, err
	}
	open := func(v ring.Sealed) (string, error) { return openSealed(e, s, v) }
	err = p.place(ctx, func(c ring.Content) ring.Content { return openedContent(c, open) })
	for _, c := range append(p.list.contents(false), p.list.contents(true)...) {
		if p.memory != (store.Place{}) && p.memory.Has(c.Hash) || p.disk.Has(c.Hash) {
			placed += len(c.Files)
		}
	}
	return placed, err
}

// ownState refuses to write for another user: the daemon could not use what root made.
func ownState(dir string) error {
	st, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no daemon ran yet
	}
	if err != nil {
		return fmt.Errorf("cannot look at the state directory: %w", err)
	}
	if uid, _, ok := disk.OwnersOf(st); ok && uid != os.Geteuid() {
		return &ring.HostError{
			Says: fmt.Sprintf("cannot place secrets: %s belongs to user %d, and this is user %d", dir, uid, os.Geteuid()),
			Hint: "systemctl start gitring-secrets, which runs it as the daemon's user",
		}
	}
	return nil
}

// openSealed is the value behind a sealed one, wherever it is from.
func openSealed(e *envFolder, s *secretFiles, v ring.Sealed) (string, error) {
	if v.From == ring.FromEnvFolder {
		return e.open(v)
	}
	return s.value(v)
}
