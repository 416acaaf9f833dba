//go:build !unix

package gitsync

import "io/fs"

// owner is nobody: this system has no user of that kind, so only what any owner may
// hold is read.
func owner(fs.FileInfo) int { return -1 }
