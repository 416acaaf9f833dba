//go:build !linux

package store

import (
	"errors"
	"os"
)

// The store is the daemon's, which runs on Linux only.
var errLinux = errors.New("only the daemon has a state directory, and it runs on Linux")

func flock(*os.File) error { return errLinux }

func holder(string) string { return "pid unknown" }

func hasRoom(string, uint64) error { return errLinux }
