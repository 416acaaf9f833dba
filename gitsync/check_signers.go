package gitsync

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/gitring/gitring/ring"
)

// CheckSigners reads the file of signers_in_repo in a tree as a commit with it is
// read; nil where it is in order, or not there. Who may have changed it is for the
// commit's signature to say.
func CheckSigners(tree fs.FS, file string) *ring.Refusal {
	cannot := func(m Mistake) *ring.Refusal {
		r := trustFile("", file, m)
		r.Says = "the signers cannot be read: " + m.Says
		return r
	}
	f, err := tree.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return cannot(Mistake{1, err.Error(), ""})
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return cannot(Mistake{1, "it is no regular file", ""})
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSignersFile+1))
	if err != nil {
		return cannot(Mistake{1, fmt.Sprintf("reading stopped: %v", err), ""})
	}
	if _, m := parseRepoSigners(file, b); m != nil {
		return cannot(*m)
	}
	return nil
}
