package gitsync

import (
	"errors"

	"github.com/gitring/gitring/ring"
)

// What one verification may read: each commit of the longest range several times,
// with folders, and besides that one comparison of the largest trees.
const (
	readsOfCommit = 100
	readsBesides  = 100_000
)

// errEffort is wrapped when a verification has read enough.
var errEffort = errors.New("more objects than one verification may read")

// effort are objects, of which only so many are read. Every rule alone is bounded
// by the range; commits that each name another far away make their product of it,
// and whoever may push would keep the daemon busy for hours.
type effort struct {
	Objects
	left int
}

func (t *Trust) effort(o Objects) *effort {
	return &effort{o, readsBesides + readsOfCommit*t.cfg.MaxRange}
}

// Raw counts what is read.
func (e *effort) Raw(sha ring.SHA) (string, []byte, error) {
	if e.left--; e.left < 0 {
		return "", nil, errEffort
	}
	return e.Objects.Raw(sha)
}
