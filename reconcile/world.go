// Package reconcile decides what happens on the host, and is the one loop that
// makes it happen.
//
// Diff is the heart: from what is wanted, what is seen, what is remembered and
// the time it makes the next steps, the facts to remember, the status, and the
// moment to look again. It asks the same question at every look; a rolling
// update is what comes of asking it again and again. Loop carries out.
//
// The road through the files: world (what goes in and out), diff (one look),
// stage (next plan -> in force), guard, service (target and rollout of one
// service), rolling, recreate, restart, job, depend, tidy (orphans, networks),
// status, posts, changes; then loop and step, the only files with a clock.
package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// World is everything that a decision depends on, besides now. Diff changes
// nothing in it.
type World struct {
	Host    string
	Gitring string // version, for the status
	Sources []Source
	Facts   ring.Facts
	Seen    ring.Seen
	// Health is by container ID; an instance that is not in it is unknown,
	// which is neither ready nor failed.
	Health map[string]ring.Health
	// Busy are the steps in flight and Tries the ones that failed, by target.
	Busy  map[string]ring.Action
	Tries map[string]ring.Try
	// Images are the pins known to be on this host.
	Images map[string]bool
}

// Source is one source as the daemon knows it now.
type Source struct {
	Name, Branch string
	// Trust is a standing warning about how far commits are verified.
	Trust string
	// Reached is when the remote last answered; a plan may remove or lower
	// counts until FreshFor later.
	Reached  time.Time
	FreshFor time.Duration
	Checking bool
	Tip      ring.SHA
	Refusal  *ring.Refusal // of the tip, by trust
	Reason   string
	// Commit is the newest trusted commit, Next its plan. Nil: nothing trusted.
	Commit *ring.Commit
	Next   *ring.Plan
}

// fresh is the gate of ROLLOUT.md section 2.2.
func (s *Source) fresh(now time.Time) bool {
	return !s.Reached.IsZero() && now.Sub(s.Reached) <= s.FreshFor
}

// Decision is what one look comes to. Facts and Events are on disk before the
// first of Actions starts.
type Decision struct {
	Actions []ring.Action
	Facts   []ring.Fact
	Events  []ring.Event
	// Probes are the instances to watch, with the checks of their own version.
	Probes []ring.Probe
	Status ring.Status
	// Wake is when to look again if nothing happens before; zero is never.
	Wake time.Time
}
