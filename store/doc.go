// Package store keeps what must survive a restart: facts, the journal, the
// outbox, anchors, streaks, contents and job marks, in the state directory.
//
// There is one writer. When a method that writes returns nil, what it was given
// is on disk; when it returns an error, nothing of it is to be seen.
//
// The directory and the database:
//
//	store       a state directory is opened, and what was found wrong with it
//	lock        one gitring at a time
//	lock_linux  the lock itself, and who holds it
//	lock_other  refused where the client alone is built
//	database    its handles, its pragmas, and whether it is whole
//	migrate     how an older one becomes of today
//	room        whether the disk has any
//	unreadable  rows that cannot be read, and what then
//	leftout     those that are for people alone, and are left out
//	backup      an archive of all that is kept
//	restore     and back, never behind what is here
//	rehearsal   a copy to try another release on, and the database of before one
//	whole       files that are the old or the new, never a part
//
// What a decision remembers:
//
//	facts       read whole, and recorded with their events and posts
//	records     facts that are for people alone: crashes, runs
//	journal     the lines of events, each chained to the one before
//	journalend  its end as it was written, for a proof
//	anchor      up to where a source is trusted; in a file, too
//	commits     when each was first seen
//	jobmark     that a job ran; in a file, too
//	content     files of commits that instances mount
//
// What checks say:
//
//	streak      how often in a row
//	results     the last answers
//
// What is still to be said:
//
//	outbox      posts for forges
//	delivery    messages for receivers
//
// What goes:
//
//	retention   how much of each fact is kept
//	trim        what is older, in small steps
package store
