//go:build unix

package gitsync

import (
	"io/fs"
	"syscall"
)

// owner is -1 where the system has no such thing, which nobody trusts.
func owner(st fs.FileInfo) int {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(sys.Uid)
	}
	return -1
}
