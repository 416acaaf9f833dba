package gitsync

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitring/gitring/wording"
)

// order is what a fetch is asked to bring.
type order struct {
	wants  []plumbing.Hash
	haves  []plumbing.Hash // for a server to leave out
	here   holder          // what need not come
	clone  bool            // nothing is here yet
	copies bool            // object files may come as they are, unhashed
}

// holder says which objects are at hand.
type holder interface{ has(plumbing.Hash) bool }

// incoming is a folder beside a mirror that a fetch fills. Nothing reads it until
// the fetch has ended well and mirror.take moves the files, so whoever fetches
// needs no right to write to a mirror.
type incoming struct {
	dir string
	lim Limits
}

// incomingEnds is what the folder's name has after the mirror's. No source can
// have that sign in its name.
const incomingEnds = "~incoming"

// openIncoming makes the folder, or empties it.
func openIncoming(dir string, lim Limits) (*incoming, error) {
	in := &incoming{dir, lim}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make a folder for what is fetched: %w", err)
	}
	if err := in.clear(); err != nil {
		return nil, fmt.Errorf("cannot empty the folder for what is fetched: %w", err)
	}
	return in, nil
}

// clear empties the folder and leaves it: a process may be tied to it.
func (in *incoming) clear() error {
	list, err := os.ReadDir(in.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := os.RemoveAll(filepath.Join(in.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// addPack takes a pack in, whole or not at all: write sends it to a temporary
// file, it is measured, indexed (which hashes every object), and only then has
// the name of a pack. There is no fsync: after a power cut the mirror is found
// damaged and built anew. An empty pack is none.
func (in *incoming) addPack(ctx context.Context, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(in.dir, "tmp_pack_")
	if err != nil {
		return fmt.Errorf("cannot store pack: %w", err)
	}
	defer func() {
		_ = f.Close()
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := write(&bounded{ctx: ctx, w: f, lim: in.lim}); err != nil {
		return err
	}
	m, err := measurePack(ctx, f, in.lim)
	if err != nil {
		return fmt.Errorf("cannot store pack: %w", err)
	}
	if len(m.pieces) == 0 {
		return os.Remove(f.Name())
	}
	sum, err := indexPack(f, m, in.lim)
	if err != nil {
		return fmt.Errorf("cannot store pack: %w", err)
	}
	name := filepath.Join(in.dir, "pack-"+sum.String())
	if err := os.Rename(f.Name()+".idx", name+".idx"); err != nil {
		return fmt.Errorf("cannot store pack: %w", err)
	}
	if err := os.Rename(f.Name(), name+".pack"); err != nil {
		return fmt.Errorf("cannot store pack: %w", err)
	}
	return nil
}

// bounded is a writer that ends with its context and at its limits: what the head
// of a pack says of its objects is enough to end a download early.
type bounded struct {
	ctx   context.Context
	w     io.Writer
	lim   Limits
	taken int64
	head  []byte
}

func (b *bounded) Write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.taken += int64(len(p)); b.taken > b.lim.Received {
		return 0, fmt.Errorf("cannot take the pack: it is larger than the %s allowed: %w", wording.ExactSize(b.lim.Received), errLimit)
	}
	if room := 12 - len(b.head); room > 0 {
		b.head = append(b.head, p[:min(room, len(p))]...)
		if len(b.head) == 12 && bytes.HasPrefix(b.head, []byte("PACK")) {
			if n := binary.BigEndian.Uint32(b.head[8:]); int64(n) > int64(b.lim.Objects) {
				return 0, fmt.Errorf("cannot take the pack: %w", tooMany(n, b.lim))
			}
		}
	}
	return b.w.Write(p)
}

// receive lets bring fill the folder and takes over what came.
func (m *mirror) receive(ctx context.Context, dir string, wants []plumbing.Hash, bring func(context.Context, order, *incoming) error) error {
	m.mu.Lock()
	_, err := m.open() // makes the mirror
	m.mu.Unlock()
	if err != nil {
		return err
	}
	in, err := openIncoming(dir, m.lim)
	if err != nil {
		return err
	}
	defer func() { _ = in.clear() }() // the next one does it, too
	clone := m.tip() == ""
	o := order{wants: wants, haves: m.haves(), here: m, clone: clone, copies: clone && !m.careful && !m.hashed()}
	if err := bring(ctx, o, in); err != nil {
		return err
	}
	return m.take(in)
}

// addPack is for packs that are made here.
func (m *mirror) addPack(ctx context.Context, write func(io.Writer) error) error {
	dir := m.dir + incomingEnds
	defer func() { _ = os.RemoveAll(dir) }() // whatever stays is in nobody's way
	return m.receive(ctx, dir, nil, func(ctx context.Context, _ order, in *incoming) error { return in.addPack(ctx, write) })
}

var (
	packForm   = regexp.MustCompile(`^pack-[0-9a-f]{40}\.(pack|idx)$`)
	objectForm = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// take moves what was fetched into the mirror. Whoever filled the folder is not
// believed: only regular files with the names of packs and objects are taken, and
// what is in them counts for nothing until it was read and hashed.
func (m *mirror) take(in *incoming) error {
	packs, rest, err := in.files()
	if err != nil {
		return fmt.Errorf("cannot take over what was fetched: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.close() // the indexes are read again by the next reader
	// Packs come last: one without its index would be a fault, an index without a
	// pack is not looked at.
	for _, name := range append(rest, packs...) {
		if err := m.takeFile(in.dir, name); err != nil {
			return fmt.Errorf("cannot take over what was fetched: %w", err)
		}
	}
	return nil
}

// files lists what may be taken: packs, and everything else.
func (in *incoming) files() (packs, rest []string, err error) {
	dir, err := os.Open(in.dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = dir.Close() }()
	const step = 1000 // more than the packs of a fetch, with an index each, beside its loose objects
	for {
		list, err := dir.ReadDir(step)
		for _, e := range list {
			switch name := e.Name(); {
			case strings.HasSuffix(name, ".pack") && packForm.MatchString(name):
				packs = append(packs, name)
			case packForm.MatchString(name), objectForm.MatchString(name):
				rest = append(rest, name)
			}
		}
		switch {
		case len(packs)+len(rest)-step > in.lim.Objects:
			return nil, nil, fmt.Errorf("there are more than %d files: %w", in.lim.Objects, errLimit)
		case errors.Is(err, io.EOF):
			return packs, rest, nil
		case err != nil:
			return nil, nil, err
		}
	}
}

// takeFile moves one file and looks at it where nobody else can exchange it any
// more.
func (m *mirror) takeFile(from, name string) error {
	to := filepath.Join(m.packDir(), name)
	if objectForm.MatchString(name) {
		to = filepath.Join(m.dir, "objects", name[:2], name[2:])
		if err := os.Mkdir(filepath.Dir(to), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := os.Rename(filepath.Join(from, name), to); err != nil {
		return err
	}
	in, err := os.Lstat(to)
	if err == nil && !in.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		_ = os.RemoveAll(to)
	}
	return err
}
