package main

import (
	"errors"
	"fmt"
	"syscall"
)

// prctl(2): the set of capabilities that programs inherit, and the word that empties it.
const (
	prCapAmbient         = 47
	prCapAmbientClearAll = 4
)

// dumpNothing has this process, and each that it starts, leave no core: secrets are in their
// memory. Not everybody runs the daemon by its unit, which says so too.
func dumpNothing() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("cannot turn core dumps off: %w", err)
	}
	return nil
}

// keepCapabilities takes from every process that this one starts what the unit gave the
// daemon: it may give files away, and git, ssh and others may not.
func keepCapabilities() error {
	_, _, no := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, prCapAmbient, prCapAmbientClearAll, 0, 0, 0, 0)
	if no == 0 || errors.Is(no, syscall.EINVAL) { // a kernel before 4.3 knows none
		return nil
	}
	return fmt.Errorf("cannot keep a capability from child processes: %w", no)
}
