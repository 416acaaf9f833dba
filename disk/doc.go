// Package disk is what several do with files and folders of this host.
//
//	durable        what is to outlive a power cut
//	owned          files that nobody else can have written, or read
//	follow_unix    how links are not followed
//	follow_other   nothing, where there are none of that kind
//	owner_unix     whose a file is
//	owner_other    nobody's, where there are no users
package disk
