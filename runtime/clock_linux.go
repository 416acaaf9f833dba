package runtime

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot goes on while the machine sleeps, and nobody sets it.
func sinceBoot() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		return time.Since(started)
	}
	return time.Duration(at.Nano())
}
