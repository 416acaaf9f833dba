package runtime

import "time"

// How long a lease holds. A holder that renewed it makes calls for leaseActs. Who follows
// waits leaseDead from when it saw the renewal, which is later than the renewal was sent. So
// there is a time in which nobody acts, and none in which two do.
const (
	leaseActs = 30 * time.Second
	leaseDead = 45 * time.Second
	// leaseFresh is how young a renewal is that a look does not renew: looks come several times
	// a second while something happens, and each renewal is written by every manager.
	leaseFresh = 5 * time.Second
)

// leaseStep is what a manager does about the lease after it looked at it.
type leaseStep int

const (
	leaseFollow leaseStep = iota // another one has it
	leaseMake                    // there is none
	leaseWrite                   // it is renewed, or taken
)

// instant is a time of this machine alone, by two clocks. Up goes on while the machine sleeps,
// and is not set by anybody; wall tells a pause in which the machine itself stood still.
type instant struct{ up, wall time.Duration }

// since is how long ago another instant was, by whichever clock says more.
func (m instant) since(other instant) time.Duration {
	return max(m.up-other.up, m.wall-other.wall)
}

// lease is what one manager knows of the lease of a cluster. Clocks of other machines say
// nothing here: others are only seen to have written, or not. The zero value is one that
// never looked.
type lease struct {
	index   uint64  // of the newest one that was seen
	first   instant // when that index was first seen here
	held    bool
	renewed instant // when the newest renewal that succeeded was sent
}

// see is what follows from a look: index is 0 where there is none, and mine is whether it names
// this manager, also from before a restart.
func (l *lease) see(index uint64, mine bool, now instant) leaseStep {
	if index != l.index {
		l.index, l.first = index, now
	}
	switch {
	case index == 0:
		l.held = false
		return leaseMake
	case mine:
		return leaseWrite
	}
	l.held = false
	// Only the clock that nobody sets: a wall clock set forward would end the wait.
	if now.up-l.first.up >= leaseDead {
		return leaseWrite
	}
	return leaseFollow
}

// wrote is told of a write that succeeded, by when it was sent.
func (l *lease) wrote(sent instant) { l.held, l.renewed = true, sent }

// isFresh reports whether the lease was renewed a moment ago: nobody can have taken it since.
func (l *lease) isFresh(now instant) bool { return l.held && now.since(l.renewed) < leaseFresh }

// acts reports whether this manager may make calls that change the cluster.
func (l *lease) acts(now instant) bool { return l.held && now.since(l.renewed) < leaseActs }
