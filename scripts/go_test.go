package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stranger without Go, or with the Go of an old distribution, reads one line and what to do.
func TestMakeSaysThatGoIsMissing(t *testing.T) {
	const hint = "hint: install it from https://go.dev/doc/install, and open a new shell so that go is on the PATH\n"
	for _, c := range []struct{ name, version, want string }{
		{"none", "", "error: Go is missing: gitring is built with Go 1.26\n" + hint},
		{"Debian 12's", "go1.19.8", "error: go1.19.8 is too old: gitring is built with Go 1.26\n" + hint},
		{"the one of go.mod", "go1.26.0", ""},
		{"a later one", "go1.30rc1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, debian)
			for from, to := range map[string]string{"go.sh": "scripts/go.sh", "../go.mod": "go.mod"} {
				b, err := os.ReadFile(from)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(m.dir, to), b, 0o755))
			}
			if c.version != "" {
				m.program("go", "echo "+c.version)
			}
			code, out, _ := m.run("go.sh")
			require.Equal(t, c.want, out)
			require.Equal(t, c.want != "", code != 0)
		})
	}
}

// Every target that compiles asks first.
func TestTargetsThatCompileAskForGo(t *testing.T) {
	bin := t.TempDir()
	for _, tool := range []string{"bash", "sed", "dirname", "git", "make", "grep"} {
		at, err := exec.LookPath(tool)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(at, filepath.Join(bin, tool)))
	}
	for _, target := range []string{"build", "unit", "compose", "sim", "mutants", "fuzz", "lint", "image", "dist", "dist-check", "man"} {
		cmd := exec.Command(filepath.Join(bin, "make"), "-C", "..", "--no-print-directory", target)
		cmd.Env = []string{"PATH=" + bin, "SBIN=" + bin}
		out, err := cmd.CombinedOutput()
		require.Error(t, err, target)
		require.Contains(t, string(out), "error: Go is missing: gitring is built with Go 1.26\nhint: ", target)
	}
}
