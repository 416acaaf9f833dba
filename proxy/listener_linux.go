package proxy

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// endListener kills the process that listens on a socket of this front. It is connected to
// while that is asked, so the number is of no other process.
func endListener(socket string) (pid int, err error) {
	c, err := net.DialTimeout("unix", socket, controlTime)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var who *syscall.Ucred
	if e := raw.Control(func(fd uintptr) { who, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED) }); e != nil {
		return 0, e
	}
	if err != nil {
		return 0, err
	}
	if pid = int(who.Pid); pid <= 1 || pid == os.Getpid() {
		return 0, fmt.Errorf("cannot end process %d", pid)
	}
	return pid, syscall.Kill(pid, syscall.SIGKILL)
}
