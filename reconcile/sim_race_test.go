//go:build race

package reconcile

// The race detector makes a scenario ten times slower, and there is no
// goroutine in one: a few show that the players share nothing.
const scenarios = 500
