// Package report tells a hub how this host is: its status, and the lines of the journal that the hub
// lacks. It goes outwards alone. Of the answer a host reads one cursor and no other byte, so whoever
// has the hub can make a host send again, and nothing else.
//
//	report    when to tell, and how often again
//	send      one report, and what of the answer counts
package report
