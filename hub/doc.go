// Package hub keeps what hosts report of themselves, and answers people and programs that look at
// all of them. It holds no key, no token of a host and no address of one, and it dials nobody: to
// lose it, or to have it taken over, changes nothing that runs.
//
//	hub       all rows, and which of them are shown
//	row       one token's host: what it told last
//	take      a report is judged and kept
//	days      the journal of a row, one file a day
//	recent    the newest lines of all, for streams
//	answers   the pages of a host, of what is kept of it
//	told      crashes and runs of jobs, as far as the journal tells
//	metrics   what Prometheus reads
package hub
