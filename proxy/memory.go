package proxy

import (
	"os"
	"strconv"
	"strings"
)

// defaultMemory is what a front has where its host says nothing else.
const defaultMemory = 256 << 20

// cgroupFiles are where a container reads its own bound, of cgroup v2 and v1.
var cgroupFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// memoryOf is the bound that the first of these files tells; defaultMemory where none does,
// and where it is so large that it is none.
func memoryOf(files []string) int64 {
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(body)), 10, 64); err == nil && n > 0 && n < 1<<40 {
			return n
		}
	}
	return defaultMemory
}

// An idle front has idleMemory. Of what is above it connections may cost five parts in eight
// by what was measured, and the rest is for the moments between two collections.
const (
	idleMemory  = 16 << 20
	leastBudget = 2 << 20
)

// budgetOf is what connections may cost in a front of so much memory.
func budgetOf(memory int64) int64 { return max(leastBudget, (memory-idleMemory)*5/8) }
