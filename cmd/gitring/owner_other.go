//go:build !unix

package main

import "io/fs"

// ownersOf knows nobody: this system has no users and groups of that kind.
func ownersOf(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }
