package gitsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// growth is how much beside the largest pack is never too much.
const growth = 256 << 20

// errGrown says that packing together is not enough: much of what is here was
// perhaps forced away since, and only a new clone lets go of it.
var errGrown = errors.New("it has grown to more than twice its size")

// repack builds, beside, a mirror of the largest pack as it is and one more of
// everything else, and swaps. It needs neither network nor much memory: a fetch
// is small, and packing a large history again would take minutes.
func (m *mirror) repack(ctx context.Context) error {
	packs, err := m.packsBySize()
	if err != nil || len(packs) < 2 {
		return err
	}
	rest := int64(0)
	for _, p := range packs[1:] {
		rest += p.size
	}
	if rest > packs[0].size+growth {
		return fmt.Errorf("cannot pack the mirror: %w", errGrown)
	}
	tip := m.tip()
	next, err := m.beside()
	if err != nil {
		return err
	}
	next.careful = m.hashed()
	next.lim.Received, next.lim.Objects = math.MaxInt64, math.MaxInt // it came under the limits
	if err := next.setTip(plumbing.NewHash(string(tip))); err != nil {
		return err
	}
	for _, ending := range []string{".idx", ".pack"} {
		name := packs[0].name + ending
		if err := linkFile(filepath.Join(next.packDir(), name), filepath.Join(m.packDir(), name)); err != nil {
			return fmt.Errorf("cannot pack the mirror: %w", err)
		}
	}
	// A storage of its own: the mirror's is for readers, who need not wait.
	sto := filesystem.NewStorageWithOptions(osfs.New(m.dir), cache.NewObjectLRU(objectCache), filesystem.Options{KeepDescriptors: true})
	defer func() { _ = sto.Close() }()
	list, err := m.outside(packs, sto)
	if err != nil {
		return err
	}
	if err := next.addPack(ctx, func(w io.Writer) error { return encode(w, sto, list, 10) }); err != nil {
		return err
	}
	return m.swap(next)
}

type packOnDisk struct {
	name string
	size int64
}

// packsBySize has the largest first.
func (m *mirror) packsBySize() ([]packOnDisk, error) {
	names, err := m.packNames()
	if err != nil {
		return nil, err
	}
	var list []packOnDisk
	for _, n := range names {
		in, err := os.Stat(filepath.Join(m.packDir(), n+".pack"))
		if err != nil {
			return nil, fmt.Errorf("cannot pack the mirror: %w", err)
		}
		list = append(list, packOnDisk{n, in.Size()})
	}
	slices.SortFunc(list, func(a, b packOnDisk) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name)) })
	return list, nil
}

// outside lists the objects that are not in the first pack.
func (m *mirror) outside(packs []packOnDisk, sto *filesystem.Storage) ([]plumbing.Hash, error) {
	large, err := m.index(packs[0].name)
	if err != nil {
		return nil, err
	}
	seen := map[plumbing.Hash]bool{}
	var list []plumbing.Hash
	add := func(sha plumbing.Hash) error {
		inside, err := large.Contains(sha)
		if err == nil && !inside && !seen[sha] {
			seen[sha] = true
			list = append(list, sha)
		}
		return err
	}
	if err := sto.ForEachObjectHash(add); err != nil {
		return nil, fmt.Errorf("cannot pack the mirror: %w", err)
	}
	for _, p := range packs[1:] {
		index, err := m.index(p.name)
		if err != nil {
			return nil, err
		}
		if err := eachHash(index, add); err != nil {
			return nil, fmt.Errorf("cannot pack the mirror: %w", err)
		}
	}
	return list, nil
}

func (m *mirror) index(pack string) (*idxfile.MemoryIndex, error) {
	f, err := os.Open(filepath.Join(m.packDir(), pack+".idx"))
	if err != nil {
		return nil, fmt.Errorf("cannot pack the mirror: %w", err)
	}
	defer func() { _ = f.Close() }()
	index := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(f).Decode(index); err != nil {
		return nil, fmt.Errorf("cannot pack the mirror: %w", err)
	}
	return index, nil
}

func eachHash(index idxfile.Index, do func(plumbing.Hash) error) error {
	entries, err := index.Entries()
	if err != nil {
		return err
	}
	defer func() { _ = entries.Close() }()
	for {
		e, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(e.Hash); err != nil {
			return err
		}
	}
}

// linkFile gives a file a second name, or a copy where that cannot be.
func linkFile(to, from string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	return copyFile(to, from)
}
