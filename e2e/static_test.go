package e2e

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The image is from scratch and the install is a copy: the binary asks for no
// loader and no library, and both kinds of machine have one.
func TestTheBinaryIsStaticForBothKindsOfMachine(t *testing.T) {
	t.Parallel()
	needEngine(t) // else nothing was built
	isStatic(t, binary, runtime.GOARCH)
	for _, arch := range []string{"amd64", "arm64"} {
		// Quick: it fails where a package has no files for the machine.
		deps := exec.Command("go", "list", "-deps", "github.com/gitring/gitring/cmd/gitring")
		deps.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		out, err := deps.CombinedOutput()
		require.NoError(t, err, "%s: %s", arch, out)
		if amount(t, "CROSS", 0, 1) == 0 {
			continue // builds everything anew
		}
		file := filepath.Join(t.TempDir(), arch)
		build := exec.Command("make", "-s", "-C", "..", "build", "OUT="+file)
		build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch)
		out, err = build.CombinedOutput()
		require.NoError(t, err, "%s: %s", arch, out)
		isStatic(t, file, arch)
	}
}

func isStatic(t *testing.T, file, arch string) {
	t.Helper()
	f, err := elf.Open(file)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch], f.Machine)
	for _, p := range f.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "%s asks for a loader", file)
	}
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries)
}
