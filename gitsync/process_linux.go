package gitsync

import (
	"fmt"
	"io/fs"
	"syscall"
)

// How the kernel ends the process that fetches.
const (
	fileTooLarge = syscall.SIGXFSZ
	deniedCall   = syscall.SIGSYS
)

// endsWithUs puts a process into a group of its own, and ends it when the daemon ends.
func endsWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// inodeOf tells a file from another at the same path, and from itself before a change.
func inodeOf(in fs.FileInfo) string {
	st, ok := in.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" %d %d %v", st.Ino, st.Uid, st.Ctim)
}
