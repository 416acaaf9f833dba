// Package upgrade puts a new program of gitring in the place of the one that runs, on trial:
// where it fails, the old one comes back with its database.
//
//	release   a file and its signature become a program
//	host      whether this host can be upgraded so, and what to run where it cannot
//	rehearsal what a program says that it would do, and what of that is a roll
//	journal   what is under way, on disk, so that a later run can finish it
//	steps     stop, copy, swap, start; and the way back
//	watch     probation
//	trial     how a program knows that it is on trial
//	systemd   the service manager, by systemctl
//	process_linux one upgrade at a time, and a process of the daemon's user
//	process_other elsewhere there is no daemon
package upgrade
