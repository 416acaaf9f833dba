//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// ownersOf are the user and the group that a file belongs to, where the system has such.
func ownersOf(st fs.FileInfo) (uid, gid int, ok bool) {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(sys.Uid), int(sys.Gid), true
}
