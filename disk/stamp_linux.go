package disk

import (
	"io/fs"
	"syscall"
	"time"
)

// StampOf is the stamp of a file; false where the system has none.
func StampOf(st fs.FileInfo) (Stamp, bool) {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return Stamp{}, false
	}
	return Stamp{
		device: uint64(sys.Dev), inode: sys.Ino, owner: sys.Uid, mode: sys.Mode, size: sys.Size,
		written: sys.Mtim, changed: sys.Ctim,
	}, true
}

// Stamp is what a file's entry says of it. A file that was changed has another one, unless it was
// changed within a tick of the clock: see Settled.
type Stamp struct {
	device, inode    uint64
	owner, mode      uint32
	size             int64
	written, changed syscall.Timespec
}

// settledAfter is far above a tick of any clock that stamps files.
const settledAfter = 2 * time.Second

// Settled reports whether the file was last changed well before a moment, so that each change after
// that moment shows.
func (s Stamp) Settled(at time.Time) bool {
	return time.Unix(s.changed.Unix()).Before(at.Add(-settledAfter))
}
