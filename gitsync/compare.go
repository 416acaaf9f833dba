package gitsync

import (
	"errors"
	"fmt"

	"github.com/gitring/gitring/ring"
)

// maxCompared bounds how many commits may lie between two that are compared.
const maxCompared = 100_000

// Parting is how two commits lie to each other: what each has that the other has
// not. One that has nothing of its own is the other, or an ancestor of it.
type Parting struct {
	// Base is the newest commit that both have; "" where they have none, or one of
	// several where merges went both ways.
	Base ring.SHA
	// A and B count the commits that one has alone; FirstA and FirstB are the oldest
	// of them, "" where there is none.
	A, B           int
	FirstA, FirstB ring.SHA
}

// Apart reports whether each has commits that the other has not.
func (p Parting) Apart() bool { return p.A > 0 && p.B > 0 }

// Part compares two commits of a repository. Nothing is verified: it is about what
// was trusted already. The error wraps ErrMissing where a commit is not there.
func Part(o Objects, a, b ring.SHA) (Parting, error) {
	var out Parting
	onlyA, err := onlyIn(o, b, a)
	if err != nil {
		return out, err
	}
	onlyB, err := onlyIn(o, a, b)
	if err != nil {
		return out, err
	}
	if out.A = len(onlyA); out.A > 0 {
		out.FirstA = onlyA[0]
	}
	if out.B = len(onlyB); out.B > 0 {
		out.FirstB = onlyB[0]
	}
	switch {
	case out.A == 0:
		out.Base = a
	case out.B == 0:
		out.Base = b
	default:
		common, refusal, err := bases(o, a, b, maxCompared)
		if err := errors.Join(err, asError(refusal)); err != nil {
			return out, err
		}
		if len(common) > 0 {
			out.Base = common[0]
		}
	}
	return out, nil
}

// onlyIn are the commits that head has and base has not, the oldest first.
func onlyIn(o Objects, base, head ring.SHA) ([]ring.SHA, error) {
	ids, _, refusal, err := apart(o, base, head, maxCompared)
	if err := errors.Join(err, asError(refusal)); err != nil {
		return nil, fmt.Errorf("cannot compare %s and %s: %w", base.Short(), head.Short(), err)
	}
	return ids, nil
}

func asError(r *ring.Refusal) error {
	if r == nil {
		return nil
	}
	return r
}
