package proxy

import (
	"errors"
	"os"
)

// nobodyListens reports whether a socket is one that no process has any more.
func nobodyListens(err error) bool { return errors.Is(err, os.ErrNotExist) }
