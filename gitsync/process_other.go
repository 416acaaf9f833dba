//go:build !linux

package gitsync

import (
	"errors"
	"io/fs"
	"syscall"
)

// The process that fetches runs on Linux only; elsewhere gitring is a client. What stands
// here lets the client be built, and refuses the rest.
const (
	fileTooLarge = syscall.Signal(25)
	deniedCall   = syscall.Signal(31)
)

func endsWithUs() *syscall.SysProcAttr { return nil }

func inodeOf(fs.FileInfo) string { return "" }

func keepDescriptors() {}

func confine(*beginning) (told, error) {
	return told{}, errors.New("cannot confine the process that fetches: only Linux can")
}
