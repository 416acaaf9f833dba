package gitsync

import (
	"context"
	"fmt"
	"time"
)

// Limits bound what a remote can make this host receive, keep and wait for.
// A zero field is its default (docs/design/trust.md#limits).
type Limits struct {
	Received int64 // bytes of one fetch; 512 MiB
	Objects  int   // of one fetch; 200,000
	Object   int64 // bytes of one object, inflated; 256 MiB
	Blob     int64 // bytes of one file that a tree hands out; 64 MiB
	Adverts  int64 // bytes of a remote's list of refs; 64 MiB

	// Of the process that fetches.
	Memory      int64 // bytes, RLIMIT_DATA; 1 GiB
	Target      int64 // bytes above which it collects harder, GOMEMLIMIT; three quarters of Memory
	File        int64 // bytes of one file that it writes, RLIMIT_FSIZE; twice Received
	Descriptors int   // that it may have open, RLIMIT_NOFILE; 256

	Update time.Duration // one look at a remote that was cloned before; 120 s
	Clone  time.Duration // one look that clones the whole history; 30 min
	Idle   time.Duration // silence on a connection; 30 s

	Packs      int           // a mirror with that many is packed together; 10, each costs a look 1 ms
	PokeEvery  time.Duration // pokes lead to at most one look in that time; 1 s
	MaxBackoff time.Duration // between two tries at a remote that fails; 15 min
}

// errTook is a remote that needed more than Update or Clone.
type errTook struct{ limit time.Duration }

func (e *errTook) Error() string {
	return fmt.Sprintf("it took longer than %s, which is the limit", e.limit)
}

// Unwrap says that it is a deadline.
func (e *errTook) Unwrap() error { return context.DeadlineExceeded }

// DefaultLimits are the defaults of all of them.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

func (l Limits) withDefaults() Limits {
	or(&l.Received, 512<<20)
	or(&l.Objects, 200_000)
	or(&l.Object, 256<<20)
	or(&l.Blob, 64<<20)
	or(&l.Adverts, 64<<20)
	or(&l.Memory, 1<<30)
	or(&l.Target, l.Memory/4*3)
	or(&l.File, 2*l.Received)
	or(&l.Descriptors, 256)
	or(&l.Update, 120*time.Second)
	or(&l.Clone, 30*time.Minute)
	or(&l.Idle, 30*time.Second)
	or(&l.Packs, 10)
	or(&l.PokeEvery, time.Second)
	or(&l.MaxBackoff, 15*time.Minute)
	return l
}

func or[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
