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
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// contents are those of one plan, by hash.
type contents map[string]ring.Content

// contentStore keeps the folder of contents equal to what plans name: what a plan needs
// is written before the loop hears of the plan, what a hand took away is written
// again, and what nothing needs any more goes.
type contentStore struct {
	store *store.Store
	// mounted is what containers mount now; an error is not "nothing".
	mounted func(ctx context.Context) (map[string]bool, error)
	// open gives sealed values, which some files hold.
	open func(ring.Sealed) (string, error)
	// places are where files with values lie.
	places places
	// planned are the apps of the newest plans; nil where nobody asks.
	planned func() []ring.App
	// written are where contents with values were written last, by hash.
	written sync.Map
	// emptied is since when a folder with values is another one, by hash.
	emptied sync.Map

	// A removal never runs beside a write, or what was just written could go:
	// mu is held over all of either, and guards offered.
	mu sync.Mutex
	// offered are, by source, the contents of the plan that the loop has, and of
	// one on its way there.
	offered map[string][]contents
	// needed are, by source, the MACs of values that the newest plan has, before it is
	// offered; mu guards it.
	needed map[string]map[string]bool
	// undoing are the contents that an undo has written again and that no fact names
	// yet, by hash, with how many undos need them; mu guards it.
	undoing map[string]int
}

func newContentStore(s *store.Store, mounted func(context.Context) (map[string]bool, error), open func(ring.Sealed) (string, error)) *contentStore {
	state := filepath.Dir(s.ContentDir())
	return &contentStore{
		store: s, mounted: mounted, open: open, offered: map[string][]contents{}, undoing: map[string]int{}, needed: map[string]map[string]bool{},
		places: places{disk: store.PlaceAt(secretsOnDisk(state))},
	}
}

// at is the folder of a content: where it was written, or where it lies.
func (s *contentStore) at(hash string) string {
	if dir, ok := s.written.Load(hash); ok {
		return filepath.Join(dir.(string), hash)
	}
	for _, p := range []store.Place{s.places.memory, s.places.disk} {
		if p != (store.Place{}) && p.Has(hash) {
			return filepath.Join(p.Dir(), hash)
		}
	}
	return filepath.Join(s.store.ContentDir(), hash)
}

// writeOne has a content where it belongs.
func (s *contentStore) writeOne(ctx context.Context, c ring.Content) error {
	if !hasValues(c) {
		return s.store.WriteContent(ctx, c)
	}
	p := s.places.of(c)
	if s.places.list != nil && fromCommit(c) {
		s.noteEmptied(c.Hash, p)
		if err := s.places.list.add(c, p == s.places.disk); err != nil {
			return err
		}
	}
	if p == s.places.memory {
		if err := s.places.ready(); err != nil {
			return err
		}
	}
	if err := p.Write(ctx, openedContent(c, s.open)); err != nil {
		return err
	}
	s.written.Store(c.Hash, p.Dir())
	return nil
}

// errNotKept is of a plan with values whose ciphertext was removed since they were read.
var errNotKept = errors.New("cannot keep what a plan has of encrypted files: it was removed since it was read")

// keep has on disk what the values of a plan are opened from, and nothing removes that before
// the next plan of the source is kept.
func (s *contentStore) keep(source string, apps []ring.App, files contents, opened []openedFile, at time.Time) error {
	if s.places.list == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.places.list.kept.keepOpened(opened, at); err != nil {
		return err
	}
	macs := map[string]bool{}
	for i := range apps {
		macsOfApp(&apps[i], macs)
	}
	for _, c := range files {
		for _, f := range c.Files {
			if !f.Sealed {
				continue
			}
			body, err := f.Read()
			if err != nil {
				return fmt.Errorf("cannot read %s: %w", f.Path, err)
			}
			macsIn(string(body), macs)
		}
	}
	s.needed[source] = macs
	if !s.places.list.kept.hold(macs) {
		return errNotKept
	}
	return nil
}

// put writes the contents of a plan that is about to be offered, and keeps them
// from then on; those of the plan before stay until taken.
func (s *contentStore) put(ctx context.Context, source string, c contents) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(ctx, c); err != nil {
		return err
	}
	s.offered[source] = append(s.offered[source], c)
	return nil
}

// taken says that the loop has the plan that was put last. What it put in force
// of the ones before is in the facts by now.
func (s *contentStore) taken(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.offered[source]
	s.offered[source] = all[max(0, len(all)-1):]
}

// mend writes again what is missing of the contents that a source's plans name:
// of the newest one, which is at hand, and of what is in force or was good at an
// earlier commit, which read gives.
func (s *contentStore) mend(ctx context.Context, source string, read func(ctx context.Context, sha ring.SHA) (contents, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := contents{}
	for _, c := range s.offered[source] {
		maps.Copy(known, c)
	}
	if err := s.write(ctx, known); err != nil {
		return err
	}
	facts, err := s.store.Facts(ctx)
	if err != nil {
		return err
	}
	var all []error
	for sha, mounts := range earlier(&facts, source) {
		mounts = slices.DeleteFunc(mounts, func(m ring.Mount) bool { _, ok := known[m.Source]; return ok || s.there(m) })
		if len(mounts) == 0 {
			continue
		}
		if err := s.restore(ctx, sha, mounts, read); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// there reports whether an instance with this mount can be created. What is missing
// deeper inside a folder only its commit knows.
func (s *contentStore) there(m ring.Mount) bool {
	_, err := os.Lstat(filepath.Join(s.at(m.Source), m.File))
	return err == nil
}

// restore writes contents of one earlier commit.
func (s *contentStore) restore(ctx context.Context, sha ring.SHA, mounts []ring.Mount, read func(ctx context.Context, sha ring.SHA) (contents, error)) error {
	of, err := read(ctx, sha)
	if err != nil {
		return fmt.Errorf("cannot read the files of commit %s again: %w", sha.Short(), err)
	}
	for _, m := range mounts {
		c, ok := of[m.Source]
		if !ok {
			return fmt.Errorf("cannot write content %.8s again: commit %s, read with the configuration of today, has it no more", m.Source, sha.Short())
		}
		if err := s.writeOne(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// openedContent is a content whose sealed values are open, for the disk only: the
// folder is below the state, which nobody else may enter. What a commit's own files
// hold is left as it is, whatever it looks like.
func openedContent(c ring.Content, open func(ring.Sealed) (string, error)) ring.Content {
	c.Files = slices.Clone(c.Files)
	for i, f := range c.Files {
		if !f.Sealed {
			continue
		}
		c.Files[i].Read = func() ([]byte, error) {
			b, err := f.Read()
			if err != nil {
				return nil, err
			}
			text, err := ring.Open(string(b), open)
			return []byte(text), err
		}
	}
	return c
}

func (s *contentStore) write(ctx context.Context, all contents) error {
	for _, hash := range slices.Sorted(maps.Keys(all)) {
		if err := s.writeOne(ctx, all[hash]); err != nil {
			return err
		}
	}
	return nil
}

// prune removes every content that no plan and no container needs. Facts come
// before containers: one that is created in between is of a plan in these facts,
// or of one that was offered.
func (s *contentStore) prune(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	facts, err := s.store.Facts(ctx)
	if err != nil {
		return err
	}
	mounted, err := s.mounted(ctx)
	if err != nil {
		return err
	}
	opened, err := s.withValues()
	if err != nil {
		return err
	}
	keep := s.named(&facts, opened)
	maps.Copy(keep, mounted)
	if s.places.list != nil {
		if err := s.places.list.spare(func(hash string) bool { return keep[hash] }); err != nil {
			return err
		}
	}
	all := []error{s.store.KeepContent(keep), s.places.disk.Keep(keep)}
	if s.places.memory != (store.Place{}) {
		all = append(all, s.places.memory.Keep(keep))
	}
	return errors.Join(append(all, s.pruneKept(&facts))...)
}

// withValues are the contents here that hold a value, by hash: those of the places of
// values, and what an earlier release wrote among the others.
func (s *contentStore) withValues() (map[string]bool, error) {
	opened, err := s.store.OpenedContents()
	if err != nil {
		return nil, err
	}
	if opened == nil {
		opened = map[string]bool{}
	}
	for _, p := range []store.Place{s.places.disk, s.places.memory} { // not before: see elsewhere
		if p == (store.Place{}) {
			continue
		}
		hashes, err := p.Hashes()
		if err != nil {
			return nil, err
		}
		for _, h := range hashes {
			opened[h] = true
		}
	}
	return opened, nil
}

// remove takes a content with values from wherever it lies.
func (s *contentStore) remove(hash string) error {
	s.written.Delete(hash)
	if s.places.list != nil { // first: a start places what the list has
		if err := s.places.list.spare(func(other string) bool { return other != hash }); err != nil {
			return err
		}
	}
	all := []error{s.store.RemoveContent(hash), s.places.disk.Remove(hash)}
	if s.places.memory != (store.Place{}) {
		all = append(all, s.places.memory.Remove(hash))
	}
	return errors.Join(all...)
}

// placedValues adds the values of an app's files that nothing opens any more: a container
// that was made before goes on with them. shut are those of which no key opens the ciphertext,
// and opens reports whether a value of the env folder is still what it was.
func (s *contentStore) placedValues(app string, shut map[string]bool, opens func(ring.Sealed) bool, values map[string]string) error {
	if err := s.replacedValues(values); err != nil || s.places.list == nil {
		return err
	}
	return s.places.list.each(func(hash string, f placedFile) error {
		all := ring.SealedIn(f.Sealed)
		lost := slices.IndexFunc(all, func(v ring.Sealed) bool {
			if v.From == ring.FromEnvFolder {
				return (v.App == app || strings.HasPrefix(v.App, manifest.SharedFolder+"/")) && !opens(v)
			}
			return v.App == app && shut[v.MAC]
		})
		if lost < 0 {
			return nil
		}
		body, err := os.ReadFile(filepath.Join(s.at(hash), f.Path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // no container mounts it
		case err != nil:
			return fmt.Errorf("cannot read what was placed of %s: %w", nameOf(all[lost]), err)
		}
		inside := ring.Inside(f.Sealed, string(body))
		if len(inside) != len(all) {
			return fmt.Errorf("cannot tell the value of %s in a text: nothing opens it any more", nameOf(all[lost]))
		}
		for i, value := range inside {
			values[value] = nameOf(all[i])
		}
		return nil
	})
}

// replacedValues adds the files of the env folder's values that no newest plan has and that a
// container may mount still. What such a file was made of is not kept: it is struck out whole,
// and line by line.
func (s *contentStore) replacedValues(values map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	hashes, err := s.places.disk.Hashes()
	if err != nil {
		return err
	}
	for _, hash := range hashes {
		if s.places.list != nil && s.places.list.has(hash) || s.isOffered(hash) {
			continue
		}
		body, err := os.ReadFile(filepath.Join(s.places.disk.Dir(), hash, ring.ValueFile))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it is no such file
		case err != nil:
			return fmt.Errorf("cannot read what was placed before: %w", err)
		default:
			values[string(body)] = "a value that was replaced"
		}
	}
	return nil
}

// isOffered reports whether a plan that the loop has mounts a content; mu is held.
func (s *contentStore) isOffered(hash string) bool {
	for _, plans := range s.offered {
		if slices.ContainsFunc(plans, func(c contents) bool { _, has := c[hash]; return has }) {
			return true
		}
	}
	return false
}

// pruneKept removes from the list, and of the ciphertext, what no plan names that an undo
// may bring back.
func (s *contentStore) pruneKept(facts *ring.Facts) error {
	if s.places.list == nil {
		return nil
	}
	if err := s.places.list.keep(s.named(facts, nil)); err != nil {
		return err
	}
	blobs, macs := s.places.list.needs()
	for _, in := range facts.Apps {
		macsOfApp(&in.App, macs)
	}
	for _, g := range facts.Good {
		macsOfApp(&ring.App{Services: []ring.Service{g.Service}}, macs)
	}
	for _, p := range facts.Past {
		macsOfApp(&p.App, macs)
	}
	for _, needed := range s.needed {
		maps.Copy(macs, needed)
	}
	if s.planned != nil {
		for _, app := range s.planned() {
			macsOfApp(&app, macs)
		}
	}
	return s.places.list.kept.prune(func(e *cipherEntry) bool {
		for _, all := range e.MACs {
			if slices.ContainsFunc(all, func(mac string) bool { return macs[mac] }) {
				return true
			}
		}
		return false
	}, blobs)
}

// sealedMAC finds the MAC of each value of an encrypted file in an app as JSON.
var sealedMAC = regexp.MustCompile(`\\u001b(?:sops|age|exec):[^:\\]*:[^:\\]*:[^:\\]*:([0-9a-f]{32})\\u001b`)

func macsOfApp(app *ring.App, macs map[string]bool) {
	text, err := json.Marshal(app)
	if err != nil {
		return
	}
	for _, m := range sealedMAC.FindAllSubmatch(text, -1) {
		macs[string(m[1])] = true
	}
}

// pruneElsewhere removes the copies that lie where at_rest was before, as soon as no container
// mounts them from there.
func (s *contentStore) pruneElsewhere(ctx context.Context) (again bool, err error) {
	copies, err := s.places.elsewhere()
	if err != nil || len(copies) == 0 {
		return false, err
	}
	mounted, err := s.mounted(ctx)
	if err != nil {
		return true, err
	}
	var all []error
	for dir, at := range copies {
		hash := filepath.Base(dir)
		newer := filepath.Join(s.places.disk.Dir(), hash)
		if at == s.places.disk {
			newer = filepath.Join(s.places.memory.Dir(), hash)
		}
		// Where the path of a mount is neither, the folder has another name for the engine.
		if mounted[dir] || mounted[hash] && !mounted[newer] {
			again = true
			continue
		}
		all = append(all, at.Remove(hash))
	}
	return again, errors.Join(all...)
}

// pruneOpened removes the contents that hold a value of the host as soon as no
// container mounts them and no plan needs them. again reports whether it has to be
// asked again although no fact changes: a container still mounts one that no plan needs.
func (s *contentStore) pruneOpened(ctx context.Context) (again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again, err = s.pruneElsewhere(ctx)
	if err != nil {
		return true, err
	}
	opened, err := s.withValues()
	if err != nil || len(opened) == 0 {
		return again, err
	}
	facts, err := s.store.Facts(ctx)
	if err != nil {
		return again, err
	}
	legacy, err := s.store.OpenedContents()
	if err != nil {
		return again, err
	}
	named := s.named(&facts, opened)
	maps.DeleteFunc(opened, func(hash string, _ bool) bool { return named[hash] })
	// What an earlier release wrote among the others has its place elsewhere by now.
	maps.DeleteFunc(legacy, func(hash string, _ bool) bool { return !s.places.disk.Has(hash) })
	if len(opened)+len(legacy) == 0 {
		return again, nil
	}
	mounted, err := s.mounted(ctx)
	if err != nil {
		return true, err
	}
	var all []error
	for _, hash := range slices.Sorted(maps.Keys(opened)) {
		if mounted[hash] {
			again = true
			continue
		}
		all = append(all, s.remove(hash))
	}
	for _, hash := range slices.Sorted(maps.Keys(legacy)) {
		if mounted[hash] {
			again = true
			continue
		}
		all = append(all, s.store.RemoveContent(hash))
	}
	err = errors.Join(all...)
	return again || err != nil, err
}

// named are the contents that a plan in force, next, last good or being undone
// needs, by hash. A plan that an undo may bring back needs its own too, but for those
// of opened: the value in them is the host's, and may have been replaced since.
func (s *contentStore) named(facts *ring.Facts, opened map[string]bool) map[string]bool {
	keep := map[string]bool{}
	for _, mounts := range earlier(facts, "") {
		for _, m := range mounts {
			keep[m.Source] = true
		}
	}
	stands := map[string]bool{} // the rows that an undo has asked for
	for _, o := range facts.Overrides {
		if o.Kind == ring.OverrideUndo {
			stands[o.Past] = true
		}
	}
	for key, p := range facts.Past { // an undo asks nobody for its files
		for i := range p.App.Services {
			for _, file := range contentsOf(&p.App.Services[i]) {
				hash, _, _ := strings.Cut(file, string(filepath.Separator))
				if !opened[hash] || stands[key] {
					keep[hash] = true
				}
			}
		}
	}
	for _, row := range facts.Loads { // what comes back when a reload fails
		for _, lies := range []map[string]string{row.Live, row.Next} {
			for _, hash := range lies {
				keep[hash] = true
			}
		}
	}
	for _, plans := range s.offered {
		for _, c := range plans {
			for h := range c {
				keep[h] = true
			}
		}
	}
	for hash := range s.undoing {
		keep[hash] = true
	}
	return keep
}

// missing are the contents of an app that are not here, as they are named below the
// folder of contents.
func (s *contentStore) missing(app *ring.App) (out []string, err error) {
	for i := range app.Services {
		for _, file := range contentsOf(&app.Services[i]) {
			hash, rest, _ := strings.Cut(file, string(filepath.Separator))
			_, err := os.Lstat(filepath.Join(s.at(hash), rest))
			if errors.Is(err, fs.ErrNotExist) {
				out = append(out, file)
			} else if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// errOther is of a content that a commit has no more, as it is read today.
var errOther = errors.New("read with the values and the configuration of today, the commit has other files")

// back has the contents of an earlier plan here, and keeps them until done is
// called: those with a value of the host were removed when nothing needed them, and
// are written again from the commit where the value is the same. The error wraps
// errOther where it is not.
func (s *contentStore) back(ctx context.Context, app *ring.App, read func(ctx context.Context, sha ring.SHA) (contents, error)) (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing, err := s.missing(app)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		of, err := read(ctx, app.Commit)
		if err != nil {
			return nil, fmt.Errorf("cannot read the files of commit %s again: %w", app.Commit.Short(), err)
		}
		again := contents{}
		for _, file := range missing {
			hash, _, _ := strings.Cut(file, string(filepath.Separator))
			c, ok := of[hash]
			if !ok {
				return nil, fmt.Errorf("%s: %w", file, errOther)
			}
			again[hash] = c
		}
		if err := s.write(ctx, again); err != nil {
			return nil, err
		}
	}
	var held []string
	for i := range app.Services {
		for _, file := range contentsOf(&app.Services[i]) {
			hash, _, _ := strings.Cut(file, string(filepath.Separator))
			held = append(held, hash)
			s.undoing[hash]++
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, hash := range held {
			if s.undoing[hash]--; s.undoing[hash] == 0 {
				delete(s.undoing, hash)
			}
		}
	}, nil
}

// earlier are the contents that apps in force and last good services mount, by
// the commit they came with; of every source for "".
func earlier(f *ring.Facts, source string) map[ring.SHA][]ring.Mount {
	out := map[ring.SHA][]ring.Mount{}
	add := func(app *ring.App, sha ring.SHA, s *ring.Service) {
		if source != "" && app.Source != source {
			return
		}
		for _, m := range s.Spec.Mounts {
			switch m.Kind {
			case ring.MountContent:
				out[sha] = append(out[sha], m)
			case ring.MountSeed: // a kept instance that is started again is seeded with its own
				out[sha] = append(out[sha], ring.Mount{Kind: ring.MountContent, Source: m.Seed})
			case ring.MountLive:
				if hash := s.Reload.Content()[m.Source]; hash != "" {
					out[sha] = append(out[sha], ring.Mount{Kind: ring.MountContent, Source: hash})
				}
			}
		}
	}
	for _, in := range f.Apps {
		for i := range in.App.Services {
			add(&in.App, in.App.Commit, &in.App.Services[i])
		}
	}
	for _, g := range f.Good {
		add(&g.App, g.Commit, &g.Service)
	}
	return out
}

// mountedBy leaves only the contents that some app mounts: those of an app that
// the policy refused are not written.
func mountedBy(apps []ring.App, all contents) contents {
	out := contents{}
	for _, a := range apps {
		for _, s := range a.Services {
			for _, m := range s.Spec.Mounts {
				for _, hash := range []string{m.Source, m.Seed, s.Reload.Content()[m.Source]} {
					if c, ok := all[hash]; ok {
						out[hash] = c
					}
				}
			}
		}
	}
	return out
}
