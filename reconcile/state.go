package reconcile

import "github.com/gitring/gitring/ring"

// State is where a service is on its way to the version that is wanted. It follows from
// what is remembered, from the verdict and from what is waited for; nothing stores it.
// stateOf has the order: the first that applies is the one.
type State int

// The states of a service that runs until it is replaced. Jobs have runs instead.
const (
	// Steady: the rollout is over, and its version is kept at full count.
	Steady State = iota
	// Held: a person has the service in their hands, or Compose has it.
	Held
	// Paused: a person stopped the rollout where it is.
	Paused
	// Blocked: the version may not start, and that does not end by itself.
	Blocked
	// Pending: the first version may not start yet.
	Pending
	// Waiting: the version may not start yet, and the last good one serves.
	Waiting
	// Stopped: the version failed, and what runs stays as it is.
	Stopped
	// Restoring: the version failed, and the last good one is brought back.
	Restoring
	// Restored: the version failed, and the last good one is back.
	Restored
	// Starting: instances of the version are brought in.
	Starting
	// Watching: the version serves whole, and is watched before it is good.
	Watching
)

// stateOf is the state of a service that runs until it is replaced.
func stateOf(t *Pass, v *service) State {
	switch {
	case !t.heldBy(v.id).None():
		return Held
	case !v.pausedBy.None() && v.failed == nil && !v.rollout.Done:
		return Paused
	case v.waits.Dead:
		return Blocked
	case !v.waits.None() && v.good == nil && v.waits.Code != ring.WhyStateOlder: // there what runs serves on
		return Pending
	case !v.waits.None():
		return Waiting
	}
	return rolloutState(v)
}

// rolloutState is the state of a rollout that nobody holds and nothing keeps from
// beginning.
func rolloutState(v *service) State {
	switch {
	case v.failedInPlace():
		return Stopped
	case v.isRestoring() && v.rollout.Done:
		return Restored
	case v.isRestoring():
		return Restoring
	case v.rollout.Done:
		return Steady
	case v.isWatched():
		return Watching
	}
	return Starting
}
