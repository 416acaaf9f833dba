//go:build !linux

package daemon

// inMemory knows no memory file system here.
func inMemory(string) (bool, error) { return false, nil }

// mayChown is asked where files are placed, which is on Linux.
func mayChown() bool { return false }
