// Package disk is what several do with files and folders of this host.
//
//	durable        what is to outlive a power cut
//	owner_unix     whose a file is
//	owner_other    nobody's, where there are no users
package disk
