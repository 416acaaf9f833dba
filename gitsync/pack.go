package gitsync

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// errLimit is wrapped when a remote sends more than Limits allow.
var errLimit = errors.New("more than the limit")

// addPack takes a pack in, whole or not at all: write sends it to a temporary
// file, it is measured, indexed (which hashes every object), and only then has
// a name the store reads. There is no fsync: after a power cut the mirror is
// found damaged and built anew. An empty pack is none.
func (m *mirror) addPack(ctx context.Context, write func(io.Writer) error) (err error) {
	m.mu.Lock()
	_, err = m.open() // makes the folder
	m.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(m.packDir(), "tmp_pack_")
	if err != nil {
		return fmt.Errorf("cannot store pack: %w", err)
	}
	defer func() {
		_ = f.Close()
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := write(&bounded{ctx: ctx, w: f, left: m.lim.Received}); err != nil {
		return err
	}
	count, err := measurePack(ctx, f, m.lim)
	if err != nil {
		return fmt.Errorf("cannot store pack: %w", err)
	}
	if count == 0 {
		return os.Remove(f.Name())
	}
	sum, err := indexPack(f)
	if err != nil {
		return fmt.Errorf("cannot store pack: %w", err)
	}
	return m.publish(f.Name(), sum)
}

// publish gives a pack and its index their names. The index comes first: a pack
// without one would be a fault, an index without a pack is not looked at.
func (m *mirror) publish(file string, sum plumbing.Hash) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.close() // the indexes are read again by the next reader
	name := filepath.Join(m.packDir(), "pack-"+sum.String())
	if err := os.Rename(file+".idx", name+".idx"); err != nil {
		return fmt.Errorf("cannot store pack: %w", err)
	}
	if err := os.Rename(file, name+".pack"); err != nil {
		return fmt.Errorf("cannot store pack: %w", err)
	}
	return nil
}

// bounded is a writer that ends with its context and at its limit.
type bounded struct {
	ctx  context.Context
	w    io.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, fmt.Errorf("cannot take the pack: it is larger than allowed: %w", errLimit)
	}
	return b.w.Write(p)
}

// measurePack walks a pack once without keeping anything of it: what follows
// holds whole objects in memory, and a few kilobytes can inflate to gigabytes.
func measurePack(ctx context.Context, f *os.File, lim Limits) (int, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	s := packfile.NewScanner(f)
	_, count, err := s.Header()
	if errors.Is(err, packfile.ErrEmptyPackfile) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if int64(count) > int64(lim.Objects) {
		return 0, fmt.Errorf("it holds %d objects, at most %d are allowed: %w", count, lim.Objects, errLimit)
	}
	for range count {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		head, err := s.NextObjectHeader()
		if err != nil {
			return 0, err
		}
		if head.Length > lim.Object {
			return 0, tooBig(head.Length, lim.Object)
		}
		var begin first
		if _, _, err := s.NextObject(&begin); err != nil {
			return 0, err
		}
		if size := begin.target(); head.Type.IsDelta() && size > lim.Object {
			return 0, tooBig(size, lim.Object)
		}
	}
	return int(count), nil
}

func tooBig(size, limit int64) error {
	return fmt.Errorf("an object has %d bytes, at most %d are allowed: %w", size, limit, errLimit)
}

// first keeps the first bytes written to it: of a delta, the sizes of its base
// and of what it makes.
type first struct {
	b []byte
}

func (f *first) Write(p []byte) (int, error) {
	if room := 2*binary.MaxVarintLen64 - len(f.b); room > 0 {
		f.b = append(f.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// target is the size of what a delta makes; 0 when it cannot be read.
func (f *first) target() int64 {
	_, n := binary.Uvarint(f.b)
	if n <= 0 {
		return 0
	}
	size, n := binary.Uvarint(f.b[n:])
	if n <= 0 {
		return 0
	}
	return int64(min(size, 1<<62))
}

// indexPack writes the index of a pack beside it and returns the pack's sum,
// which it checked.
func indexPack(f *os.File) (sum plumbing.Hash, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return sum, err
	}
	w := new(idxfile.Writer)
	p, err := packfile.NewParser(packfile.NewScanner(f), w)
	if err != nil {
		return sum, err
	}
	if sum, err = p.Parse(); err != nil {
		return sum, err
	}
	index, err := w.Index()
	if err != nil {
		return sum, err
	}
	out, err := os.OpenFile(f.Name()+".idx", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o400)
	if err != nil {
		return sum, err
	}
	if _, err = idxfile.NewEncoder(out).Encode(index); err == nil {
		err = out.Close()
	} else {
		_ = out.Close()
	}
	if err != nil {
		_ = os.Remove(out.Name())
	}
	return sum, err
}

// encode writes objects of a storage as a pack. A window of 0 makes no deltas.
func encode(w io.Writer, from objectStorage, list []plumbing.Hash, window uint) error {
	if _, err := packfile.NewEncoder(w, from, false).Encode(list, window); err != nil {
		return fmt.Errorf("cannot pack: %w", err)
	}
	return nil
}
