package notify

import (
	"os/exec"
	"syscall"
)

// endWithUs puts a process into a group of its own, which ends as one: when it is
// cancelled, and the process itself when the daemon ends.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
