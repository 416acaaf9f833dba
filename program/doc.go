// Package program runs a program of the host, for what it prints or for how it ends: without a
// shell, with no environment but what is said, bounded in time and in what counts of its output.
// What it leaves running ends with it.
package program
