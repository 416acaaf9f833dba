package gitsync

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Packing the mirror anew has no limit: what it holds came under them. A sum with
// the largest number there is once made that "more than the limit", and every
// packing of a mirror a fetch of everything.
func TestNoLimitOnFilesIsNoLimit(t *testing.T) {
	in := &incoming{dir: t.TempDir(), lim: Limits{Objects: math.MaxInt}}
	name := fmt.Sprintf("pack-%040x", 1)
	for _, ending := range []string{".pack", ".idx"} {
		require.NoError(t, os.WriteFile(filepath.Join(in.dir, name+ending), nil, 0o600))
	}
	packs, rest, err := in.files()
	require.NoError(t, err)
	require.Equal(t, []string{name + ".pack"}, packs)
	require.Equal(t, []string{name + ".idx"}, rest)
}
