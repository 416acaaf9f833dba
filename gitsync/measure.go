package gitsync

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// Bounds of what reading one object may need beyond its own size. Git itself
// stays far below them: it makes no delta longer than half of what it saves.
const (
	// maxStructure is for a commit, a tag or a tree and all the deltas and bases it
	// is made of. Those are read before any signature was checked.
	maxStructure = 64 << 20
	// deltaSlack is how much longer than what it makes a delta may be.
	deltaSlack = 64 << 10
)

// piece is one object of a pack as it lies there.
type piece struct {
	kind   plumbing.ObjectType
	length int64         // inflated, of a delta the delta's own
	target int64         // what it makes
	base   int           // index of the piece a delta is on; -1 when it has none or it is not known
	ref    plumbing.Hash // the same by name
}

// measured is what one walk over a pack found.
type measured struct {
	pieces []piece
	at     map[int64]int // offset to index
}

// measurePack walks a pack once without keeping anything of it but sizes: what
// follows holds whole objects in memory, and a few kilobytes can inflate to
// gigabytes, at once or by deltas upon deltas.
func measurePack(ctx context.Context, f io.ReadSeeker, lim Limits) (*measured, error) {
	m := &measured{at: map[int64]int{}}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	s := packfile.NewScanner(f)
	_, count, err := s.Header()
	if errors.Is(err, packfile.ErrEmptyPackfile) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	if int64(count) > int64(lim.Objects) {
		return nil, tooMany(count, lim)
	}
	for range count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := m.next(s, lim); err != nil {
			return nil, err
		}
	}
	return m, m.weigh(lim)
}

func tooMany(count uint32, lim Limits) error {
	return fmt.Errorf("it holds %d objects, at most %d are allowed: %w", count, lim.Objects, errLimit)
}

func tooBig(size, limit int64) error {
	return fmt.Errorf("an object has %d bytes, at most %d are allowed: %w", size, limit, errLimit)
}

func (m *measured) next(s *packfile.Scanner, lim Limits) error {
	head, err := s.NextObjectHeader()
	if err != nil {
		return err
	}
	if head.Length > lim.Object {
		return tooBig(head.Length, lim.Object)
	}
	var begin first
	if _, _, err := s.NextObject(&begin); err != nil {
		return err
	}
	p := piece{kind: head.Type, length: head.Length, target: head.Length, base: -1}
	if head.Type.IsDelta() {
		p.target = begin.target()
		p.ref = head.Reference
		if base, ok := m.at[head.OffsetReference]; ok && head.Type == plumbing.OFSDeltaObject {
			p.base = base
		}
	}
	if p.target > lim.Object {
		return tooBig(p.target, lim.Object)
	}
	if p.kind.IsDelta() && p.length > p.target+deltaSlack {
		return fmt.Errorf("a delta of %d bytes makes only %d: %w", p.length, p.target, errLimit)
	}
	m.at[head.Offset] = len(m.pieces)
	m.pieces = append(m.pieces, p)
	return nil
}

// weigh holds every object to what reading it needs: the deltas of its chain, and
// the largest base together with what is made of it.
func (m *measured) weigh(lim Limits) error {
	for i := range m.pieces {
		deltas, pair, depth := int64(0), int64(0), 0
		p := &m.pieces[i]
		for p.base >= 0 && depth <= len(m.pieces) {
			base := &m.pieces[p.base]
			deltas += p.length
			pair = max(pair, p.target+base.target)
			p, depth = base, depth+1
		}
		limit := 3 * lim.Object
		if p.kind == plumbing.CommitObject || p.kind == plumbing.TreeObject || p.kind == plumbing.TagObject {
			limit = maxStructure
		}
		if need := max(deltas+pair, p.target); need > limit {
			return fmt.Errorf("to read one %s needs %d bytes, at most %d are allowed: %w", p.kind, need, limit, errLimit)
		}
		if depth > len(m.pieces) {
			return errors.New("deltas go round in a circle")
		}
	}
	return nil
}

// resolve finds the bases that deltas name by hash, once the pack has an index.
func (m *measured) resolve(offset func(plumbing.Hash) (int64, error)) {
	for i := range m.pieces {
		p := &m.pieces[i]
		if p.kind != plumbing.REFDeltaObject {
			continue
		}
		if at, err := offset(p.ref); err == nil {
			if base, ok := m.at[at]; ok {
				p.base = base
			}
		}
	}
}

// byName reports whether weigh did not see all: some deltas name their base by hash.
func (m *measured) byName() bool {
	for i := range m.pieces {
		if m.pieces[i].kind == plumbing.REFDeltaObject {
			return true
		}
	}
	return false
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

// measureFile is measurePack of a pack that comes as it is. How many objects it
// has is its owner's affair.
func measureFile(ctx context.Context, path string, lim Limits) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lim.Objects = int(^uint(0) >> 1)
	_, err = measurePack(ctx, f, lim)
	return err
}
