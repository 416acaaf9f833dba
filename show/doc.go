// Package show is how people read what a daemon knows: a status, a plan, how far an
// update is, why a service is as it is. It takes values and writes them on a screen; it
// asks nobody.
//
//	status     a status, from its sources to its instances
//	words      the few states of the JSON, in finer words for people
//	rows       services as rows, the worst first
//	columns    the columns of a service, and which have room
//	progress   how far an update is, while somebody waits
//	plan       what a commit would change
//	explained  why a service is as it is
//	fleet      a whole host in one row
//	trust      whom a source trusts
//	proof      whether a proof holds, and what nobody can check
package show
