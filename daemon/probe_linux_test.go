package daemon

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kernel's own list of mounts says which let no program run.
func TestAFolderOfFrontsOnAMountWithNoexecIsFound(t *testing.T) {
	b, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	options := map[string]string{} // by mount point; a later mount hides an earlier one
	for line := range strings.Lines(string(b)) {
		if parts := strings.Fields(line); len(parts) > 3 {
			options[parts[1]] = "," + parts[3] + ","
		}
	}
	for _, at := range []string{"/", "/proc", "/sys", "/dev/shm", "/tmp", "/run"} {
		if said, ok := options[at]; ok {
			got := probeFronts(at)
			require.Empty(t, got.Err)
			require.Equal(t, strings.Contains(said, ",noexec,"), got.NoExec, "%s: %s", at, said)
		}
	}
	require.NotEmpty(t, probeFronts(t.TempDir()+"/none").Err, "a folder that is not there is not well")
}
