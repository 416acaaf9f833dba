package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A module whose tests fail as the case says: "once" fails in its first run alone.
func TestWhatFailedRunsOnceMoreAlone(t *testing.T) {
	once := `func Test%s(t *testing.T) { if _, err := os.Stat("seen%s"); err != nil { os.WriteFile("seen%s", nil, 0o600); t.Fatal("late") } }`
	for _, c := range []struct {
		name, body string
		passes     bool
		says       string
	}{
		{"a test that passes", `func TestA(t *testing.T) {}`, true, "ok"},
		{"one that failed once", named(once, "A") + "\nfunc TestB(t *testing.T) {}", true, "these failed first and passed alone"},
		{"one below another", `func TestA(t *testing.T) { t.Run("sub", func(t *testing.T) { if _, err := os.Stat("seen"); err != nil { os.WriteFile("seen", nil, 0o600); t.Fatal("late") } }) }`, true, "again TestA"},
		{"three that failed once", named(once, "A") + "\n" + named(once, "B") + "\n" + named(once, "C"), true, "passed alone"},
		{"four that failed once", named(once, "A") + "\n" + named(once, "B") + "\n" + named(once, "C") + "\n" + named(once, "D"), false, "FAIL"},
		{"one that always fails", `func TestA(t *testing.T) { t.Fatal("wrong") }`, false, "once more, alone"},
		{"a panic", `func TestA(t *testing.T) { if _, err := os.Stat("seen"); err != nil { os.WriteFile("seen", nil, 0o600); panic("oh") } }`, false, "panic"},
		{"an end before the tests", "func TestA(t *testing.T) {}\nfunc TestMain(m *testing.M) { m.Run(); os.Exit(3) }", false, "FAIL"},
		{"what does not build", `func TestA(t *testing.T) { undefined() }`, false, "build failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script, err := filepath.Abs("again.sh")
			require.NoError(t, err)
			write := func(name, text string) {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			write("go.mod", "module example.org/m\n\ngo 1.26\n")
			write("p/p_test.go", "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Stat\n\n"+c.body+"\n")
			write("q/q_test.go", "package q\n\nimport \"testing\"\n\nfunc TestQ(t *testing.T) {}\n")
			cmd := exec.CommandContext(t.Context(), "bash", script, "go", "test", "-count=1", "-timeout", "5m", "./...")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			require.Equal(t, c.passes, err == nil, "%s", out)
			if c.says == "again TestA" {
				require.Contains(t, string(out), "once more, alone: example.org/m/p TestA\n")
				return
			}
			require.Contains(t, string(out), c.says)
		})
	}
}

func named(text, name string) string { return strings.ReplaceAll(text, "%s", name) }
