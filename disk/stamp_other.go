//go:build !linux

package disk

import (
	"io/fs"
	"time"
)

// StampOf knows none on this system: who asks reads the file.
func StampOf(fs.FileInfo) (Stamp, bool) { return Stamp{}, false }

// Stamp is of Linux.
type Stamp struct{}

// Settled reports that nothing is known.
func (Stamp) Settled(time.Time) bool { return false }
