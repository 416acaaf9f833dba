package daemon

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// The numbers of memory file systems (statfs(2)).
const (
	tmpfsMagic = 0x01021994
	ramfsMagic = 0x858458f6
)

// inMemory reports whether a folder lies on a memory file system.
func inMemory(dir string) (bool, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return false, err
	}
	return uint32(st.Type) == tmpfsMagic || uint32(st.Type) == ramfsMagic, nil
}

// capChown is the number of the capability to give files away (capabilities(7)).
const capChown = 0

// mayChown reports whether this process may give files to other users.
func mayChown() bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return os.Geteuid() == 0
	}
	for line := range strings.Lines(string(status)) {
		if of, ok := strings.CutPrefix(line, "CapEff:"); ok {
			all, err := strconv.ParseUint(strings.TrimSpace(of), 16, 64)
			return err == nil && all&(1<<capChown) != 0
		}
	}
	return false
}
