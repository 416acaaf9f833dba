//go:build !race

package reconcile

// scenarios are as many as a developer needs to believe a change: 4,000 of them catch every
// mutant that only a simulation can. make sim plays more.
const scenarios = 5_000
