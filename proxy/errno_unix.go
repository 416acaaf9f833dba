//go:build !windows

package proxy

import (
	"errors"
	"os"
	"syscall"
)

// nobodyListens reports whether a socket is one that no process has any more.
func nobodyListens(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist)
}
