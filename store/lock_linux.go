package store

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// flock locks a file for this process, or says EWOULDBLOCK.
func flock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// holder is the process that listens on a unix socket, as the kernel knows it.
func holder(name string) string {
	c, err := net.Dial("unix", name)
	if err != nil {
		return "pid unknown"
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return "pid unknown"
	}
	says := "pid unknown"
	_ = raw.Control(func(fd uintptr) {
		if u, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			says = fmt.Sprintf("pid %d, uid %d", u.Pid, u.Uid)
		}
	})
	return says
}
