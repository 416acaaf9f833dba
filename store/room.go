//go:build linux

package store

import (
	"fmt"
	"os"
	"syscall"
)

// hasRoom says no where a file system is full. SQLite maps the index of its WAL
// into memory, and a page of it that the file system cannot hold is a SIGBUS, which
// ends the process before anything could be said of it.
func hasRoom(dir string, need uint64) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("cannot look at the file system of %s: %w", dir, err)
	}
	blocks := fs.Bavail
	if os.Geteuid() == 0 {
		blocks = fs.Bfree // what is kept back is kept for root
	}
	if free := blocks * uint64(fs.Bsize); free < need {
		return fmt.Errorf("cannot open the database: the file system of %s is full, %d KiB are free and %d KiB are needed; make room there", dir, free>>10, need>>10)
	}
	return nil
}
