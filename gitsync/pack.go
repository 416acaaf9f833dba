package gitsync

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// errLimit is wrapped when a remote sends more than Limits allow.
var errLimit = errors.New("more than the limit")

// indexPack writes the index of a pack beside it and returns the pack's sum,
// which it checked.
func indexPack(f *os.File, m *measured, lim Limits) (sum plumbing.Hash, err error) {
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
	if m.byName() {
		m.resolve(index.FindOffset)
		if err := m.weigh(lim); err != nil {
			return sum, err
		}
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
