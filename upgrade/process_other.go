//go:build !linux

package upgrade

import (
	"errors"
	"syscall"
)

var errLinux = errors.New("cannot upgrade here: the daemon runs on Linux only")

// Lock fails where no daemon can run.
func Lock(string) (release func(), err error) { return nil, errLinux }

func asUser(Unit) (*syscall.SysProcAttr, error) { return nil, errLinux }

func apart() *syscall.SysProcAttr { return nil }
