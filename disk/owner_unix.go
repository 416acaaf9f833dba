//go:build unix

package disk

import (
	"io/fs"
	"syscall"
)

// OwnersOf are the user and the group that a file belongs to, where the system has such.
func OwnersOf(st fs.FileInfo) (uid, gid int, ok bool) {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(sys.Uid), int(sys.Gid), true
}
