package program

import (
	"os/exec"
	"syscall"
)

// endAsOne puts the program into a group of its own, which ends as one when it is cancelled,
// and with the daemon.
func endAsOne(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup ends what the program left running.
func endGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // there is mostly nothing left
}
