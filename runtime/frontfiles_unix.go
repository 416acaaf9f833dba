//go:build unix

package runtime

import "syscall"

// mostFiles is how many descriptors a container of this host can surely have: as many as we
// may. An engine in a container of its own cannot raise its limit, and would start nothing.
func mostFiles() int64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || l.Max > 1<<30 {
		return 0
	}
	return int64(l.Max) //nolint:gosec,unconvert // below 1<<30; of another type elsewhere
}
