package daemon

import "syscall"

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
