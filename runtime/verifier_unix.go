//go:build unix

package runtime

import (
	"os/exec"
	"syscall"
)

// inOwnGroup has a program end with all that it started.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
