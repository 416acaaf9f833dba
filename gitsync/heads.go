package gitsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/gitring/gitring/ring"
)

// Bounds of what messages, which anybody writes, can make this host fetch. A
// branch that was not looked at for weeks is caught up with over several looks.
const (
	maxHeadsOfLook = 16
	maxHeadsOfTip  = 128
)

// errHeads is wrapped when the quarantine does not hold what it should; the cure
// is to empty it.
var errHeads = errors.New("the quarantine of heads is damaged")

// errLater is wrapped when one look has asked the remote for enough.
var errLater = errors.New("the rest follows at the next look")

// heads are the heads of pull requests that landings of one tip name, in a
// quarantine beside the mirror: a second store that borrows the mirror's objects
// and is thrown away once the tip was judged. What is in it counts for nothing
// but the signatures that are found there. It belongs to Run's goroutine.
type heads struct {
	mirror *mirror
	store  *mirror
	lim    Limits
	remote func(plumbing.ReferenceName, Limits) (remote, error)
	tip    ring.SHA          // that they are for
	found  map[Pull]ring.SHA // as first seen for this tip, wherever the ref went since
	never  map[Pull]string   // why one is not fetched for this tip
	absent map[Pull]bool     // when last asked
	more   bool              // this look ended before all were asked for
	all    bool              // a person asked for the whole history: no bound but bytes
	asked  int               // of the remote, in this look
	bytes  int64             // received for this tip
	most   int               // commits of a range
}

func (f *Follower) newHeads() *heads {
	lim := f.cfg.Limits
	store := newMirror(f.mirror.dir+".heads", "", lim)
	store.under = f.mirror
	store.careful = true // every object is hashed on its way in
	h := &heads{mirror: f.mirror, store: store, lim: lim, most: f.cfg.Trust.MaxRange}
	h.remote = func(ref plumbing.ReferenceName, lim Limits) (remote, error) {
		return f.remoteOf(ref, lim)
	}
	return h
}

// begin is a new look at tip.
func (h *heads) begin(tip ring.SHA) {
	if h.tip != tip || h.found == nil {
		h.empty()
		h.tip, h.found, h.never = tip, map[Pull]ring.SHA{}, map[Pull]string{}
	}
	if !h.more { // all are known: those that were absent may have come
		h.absent = map[Pull]bool{}
	}
	h.more, h.asked = false, 0
}

// empty lets go of everything; what stays on disk is in nobody's way.
func (h *heads) empty() {
	h.store.rest()
	_ = os.RemoveAll(h.store.dir)
	h.tip, h.found, h.never, h.bytes, h.more = "", nil, nil, 0, false
}

// rest gives memory and descriptors back.
func (h *heads) rest() { h.store.rest() }

// Raw is an object of the mirror, else of the quarantine. The latter is hashed
// here, so that it is known which of the two is at fault; its readers hash again.
func (h *heads) Raw(sha ring.SHA) (string, []byte, error) {
	kind, body, err := h.mirror.Raw(sha)
	if !errors.Is(err, ErrMissing) || len(h.found) == 0 {
		return kind, body, err
	}
	kind, body, err = h.store.Raw(sha)
	if errors.Is(err, ErrMissing) && !h.store.hasItself(plumbing.NewHash(string(sha))) {
		return "", nil, err
	}
	if err == nil {
		if sum, _ := objectHash(kind, body); sum != sha {
			err = fmt.Errorf("cannot read object %s: its content has another hash", sha)
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", said{err}, errHeads) // not ErrMissing: the mirror is fine
	}
	return kind, body, nil
}

// head fetches the head of a pull request, from exactly the ref where the forge
// keeps it.
func (h *heads) head(ctx context.Context, pull Pull) (ring.SHA, error) {
	if sha := h.found[pull]; sha != "" && h.store.has(plumbing.NewHash(string(sha))) {
		return sha, nil
	}
	if why := h.never[pull]; why != "" {
		return "", &Unavailable{why}
	}
	switch {
	case h.absent[pull]:
		return "", fmt.Errorf("the remote has no %s: %w", pull.Ref(), ErrMissing)
	case !h.all && len(h.found)+len(h.never)+len(h.absent) >= maxHeadsOfTip:
		return "", &Unavailable{fmt.Sprintf("at most %d pull requests are looked up for one push", maxHeadsOfTip)}
	case !h.all && h.asked >= maxHeadsOfLook:
		h.more = true
		return "", fmt.Errorf("cannot fetch more than %d heads of pull requests at once: %w", maxHeadsOfLook, errLater)
	}
	h.asked++
	return h.fetch(ctx, pull)
}

func (h *heads) fetch(ctx context.Context, pull Pull) (ring.SHA, error) {
	ctx, cancel := context.WithTimeout(ctx, h.lim.Update)
	defer cancel()
	lim := h.lim
	if lim.Received -= h.bytes; lim.Received <= 0 {
		return "", h.refuse(pull, errLimit)
	}
	far, err := h.remote(plumbing.ReferenceName(pull.Ref()), lim)
	if err != nil {
		return "", err
	}
	defer far.rest()
	v, err := far.look(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot look for %s: %w", pull.Ref(), said{err})
	}
	defer v.close()
	if v.tip.IsZero() {
		h.absent[pull] = true
		return "", fmt.Errorf("the remote has no %s: %w", pull.Ref(), ErrMissing)
	}
	if !h.store.has(v.tip) {
		h.store.lim = lim
		err = v.fetch(ctx, h.store, v.tip)
		h.bytes += h.grown()
		if errors.Is(err, errLimit) {
			return "", h.refuse(pull, err)
		}
		if err == nil {
			err = h.whole(ctx, v.tip)
		}
		if err != nil {
			return "", fmt.Errorf("cannot fetch %s: %w", pull.Ref(), said{err})
		}
	}
	sha := ring.SHA(v.tip.String())
	h.found[pull] = sha
	return sha, nil
}

// refuse remembers a head that is too large, so that it is not downloaded at
// every look.
func (h *heads) refuse(pull Pull, err error) error {
	h.never[pull] = fmt.Sprintf("%s is larger than the limits of a fetch allow: %s", pull.Ref(), said{err})
	return &Unavailable{h.never[pull]}
}

// grown is what the last fetch added on disk.
func (h *heads) grown() int64 {
	total := int64(0)
	_ = filepath.WalkDir(h.store.packDir(), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if in, err := d.Info(); err == nil {
				total += in.Size()
			}
		}
		return nil // what cannot be measured is bounded by the number of heads
	})
	return max(0, total-h.bytes)
}

// whole says that everything a head leads to is here or in the mirror. A pack
// with a hole would look like a damaged mirror later.
func (h *heads) whole(ctx context.Context, head plumbing.Hash) error {
	return wholeIn(ctx, h.store, head, h.lim.Objects)
}

// wholeIn is whole for any quarantine.
func wholeIn(ctx context.Context, store *mirror, head plumbing.Hash, most int) error {
	if !store.has(head) {
		return fmt.Errorf("the remote did not send %s", head)
	}
	// A storage of its own: the quarantine's may close under a long walk.
	sto := filesystem.NewStorageWithOptions(osfs.New(store.dir), cache.NewObjectLRU(objectCache), filesystem.Options{KeepDescriptors: true})
	defer func() { _ = sto.Close() }() // nothing was written through it
	list, err := missing(ctx, sto, store.under, []plumbing.Hash{head}, most)
	if errors.Is(err, ErrMissing) {
		return fmt.Errorf("the remote did not send all that %s leads to", head)
	}
	for _, sha := range list {
		if !store.hasItself(sha) {
			return fmt.Errorf("the remote did not send %s, which %s leads to", sha, head)
		}
	}
	return err
}

// aids are what forge-merge may use during one look.
func (w *watch) aids(ctx context.Context) Aids {
	type pair struct{ ours, theirs ring.SHA }
	type merged struct {
		tree ring.SHA
		err  error
	}
	done := map[pair]merged{}
	past := w.past(ctx, w.mirror, w.anchor.Began.SHA)
	return Aids{
		Standing: past.standing, Carriers: past.carriers,
		Head: func(pull Pull) (ring.SHA, error) { return w.heads.head(ctx, pull) },
		Merge: func(ours, theirs ring.SHA) (ring.SHA, error) {
			if w.address.scheme == "file" && !w.mirror.hashed() {
				return "", fmt.Errorf("cannot merge: the objects of the mirror were copied and never hashed: %w", errDamaged)
			}
			m, ok := done[pair{ours, theirs}]
			if !ok {
				began := time.Now()
				w.child.rest() // nobody else may write to what is hashed now and read by git
				m.tree, m.err = w.heads.merge(ctx, ours, theirs)
				done[pair{ours, theirs}] = m
				w.log.DebugContext(ctx, "merged again what the forge landed", "source", w.cfg.Name, "commit", theirs, "took", time.Since(began).Round(time.Millisecond))
			}
			return m.tree, m.err
		},
	}
}

// merge lets git read the quarantine and the mirror, and write beside them.
func (h *heads) merge(ctx context.Context, ours, theirs ring.SHA) (ring.SHA, error) {
	if err := rehash(h, ours, theirs, max(h.most, DefaultMaxRange)); err != nil {
		return "", err
	}
	if err := os.MkdirAll(h.store.dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot merge: %w", err)
	}
	return mergeIn(ctx, h.store.dir, ours, theirs, filepath.Join(h.store.dir, "objects"), filepath.Join(h.mirror.dir, "objects"))
}
