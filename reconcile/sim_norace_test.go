//go:build !race

package reconcile

// scenarios are as many as a developer needs to believe a change.
const scenarios = 20_000
