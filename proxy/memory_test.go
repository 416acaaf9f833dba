package proxy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A host can give its fronts more memory, or less: one that knows of no bound is killed at it.
func TestAFrontKeepsWithinTheMemoryOfItsContainer(t *testing.T) {
	dir := t.TempDir()
	v2, v1 := filepath.Join(dir, "memory.max"), filepath.Join(dir, "memory.limit_in_bytes")
	require.EqualValues(t, 256<<20, memoryOf([]string{v2, v1}), "nothing is said")
	require.NoError(t, os.WriteFile(v1, []byte("67108864\n"), 0o600))
	require.EqualValues(t, 64<<20, memoryOf([]string{v2, v1}))
	require.NoError(t, os.WriteFile(v2, []byte("max\n"), 0o600))
	require.EqualValues(t, 64<<20, memoryOf([]string{v2, v1}))
	require.NoError(t, os.WriteFile(v1, []byte("9223372036854771712\n"), 0o600))
	require.EqualValues(t, 256<<20, memoryOf([]string{v2, v1}), "that is how v1 says that there is none")
	require.NoError(t, os.WriteFile(v2, []byte("1073741824\n"), 0o600))
	require.EqualValues(t, 1<<30, memoryOf([]string{v2, v1}))

	for memory, budget := range map[int64]int64{256 << 20: 150 << 20, 64 << 20: 30 << 20, 16 << 20: 2 << 20, 1 << 30: 630 << 20} {
		require.EqualValues(t, budget, New(Options{Memory: memory}).budget)
	}
	require.EqualValues(t, 150<<20, New(Options{}).budget)
}
