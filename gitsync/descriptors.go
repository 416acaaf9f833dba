//go:build linux

package gitsync

import (
	"math"
	"os"
	"strconv"

	kernel "golang.org/x/sys/unix"
)

// keepDescriptors keeps what this process was itself started with (a socket of
// systemd, a terminal's log) from those it starts. All that it opens is kept
// anyway: Go says close-on-exec of each.
func keepDescriptors() {
	const first = 3
	if kernel.CloseRange(first, math.MaxUint32, kernel.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	list, err := os.ReadDir("/proc/self/fd") // a kernel before 5.11
	if err != nil {
		return
	}
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			kernel.CloseOnExec(fd)
		}
	}
}
