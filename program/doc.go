// Package program runs a program of the host for what it prints: without a shell, with no
// environment but what is said, bounded in time and in what it may print. What it leaves
// running ends with it.
package program
